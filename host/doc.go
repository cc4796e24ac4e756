// Package host composes the core: a store, the set of sessions over it, the registry of units that fold them, and the plugin processes that
// units live in. It is what a program embeds, and what the foldhost binary is made of.
//
// It holds no rules of sessions or units. Acceptance is session's, values are registry's, durability is the store's, a process is
// launch's; host says in which order they start, hear of an event, and end. What it decides itself is what follows from having plugins:
//
//	host/config       what an operator says (foldhost.yaml)
//	host/discover     which files are plugins
//	host/launch       one process, from its file to its end
//	internal/life     the one way up: start, describe, configure, register, fold stream
//	internal/remote   the fold stream behind unit.Instance: windows, deadlines, strict answers
//	internal/restart  when to start again and when to park, as a function of timestamps
//	internal/supervise  one plugin kept up, its registrations in line with what it offers
//	host              all plugins together, set by set: who owns an event type, whose tool serves, calls of tools; sessions, replays
//
// State: the table of live sessions in driver.go, guarded by its own mutex, which is never held across a call; the tables of owners and
// tools, immutable and swapped whole. No lock is held across an RPC, a start or I/O.
package host
