// Package surface owns the ordered surface of a session: the list of seqs of the events that a model would see, and the
// one rule set by which an event may append to it or replace a range of it.
//
// Planning never changes anything and applying never refuses. The package does no I/O of its own and takes no locks: a
// Manager belongs to one owner, who calls it serially. Slices that Nodes has handed out may be read by anybody meanwhile.
package surface
