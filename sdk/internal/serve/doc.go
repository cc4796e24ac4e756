// Package serve is the process side of a plugin: standard output and the lifeline, the handshake, the gRPC service, the fold stream.
//
// It knows units and tools as the host's contract has them and nothing of how an author wrote them. It must never let a print break
// the handshake, a panic end the process, or a message outgrow the protocol; and it never outlives its host.
//
// State: a service's phase is guarded by its mutex; the cells of one group belong to the goroutine that works on it (see folds). Every
// goroutine of a stream has ended when the stream's handler returns. The lifeline's runs as long as the process.
package serve
