// Package render prints for people: a replay as it goes, what is known of plugins, and whatever else a command has to say. It decides nothing.
//
// Texts in logs, names of files and all that plugins say come from strangers: whatever could steer a terminal is shown as an escape, never sent to
// it. So text for people goes out through Printf alone, of this package and of the commands; what is painted is made harmless as it is painted. What is
// for programs is JSON, and exact.
//
// A Replay belongs to one goroutine. The rest is functions.
package render
