// Package supervise keeps one plugin up: it starts its process, hands what it offers to the registry, and starts it again, waits or parks
// when it fails. restart says when; life says how; this package is what runs between them.
//
// There is one way up, for a first start, a restart and an exchange of a running process by another. Each plugin has one goroutine that does
// everything in order: nothing of one plugin ever waits for another. Registrations belong to that goroutine. Plugin.mu guards what others
// may look at, is a leaf, and is held across nothing that waits.
package supervise
