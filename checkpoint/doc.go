// Package checkpoint is the durable projection cache: when rows are written, and how the values of a session that is not live are read from them.
//
// A row is a shortcut and never an authority. It is written after the events that it covers, one write of a session at a time, and nobody waits for
// it; a write that fails is logged, counted and tried again with the next. What is read is checked before it counts: here its checksum and that it is
// within the log, by the registry's algebra the life of the log, the definition, the event it stands on, the schema of the state. Any doubt folds
// again from the log.
//
// A Track says when the rows of a live session are due, a Writer writes them, a Reader answers for the cold ones and hands the Writer what it found.
package checkpoint
