// Package host composes the core: a store, the set of sessions over it, and the registry of units that fold them. It is
// what a program embeds, and what the foldhost binary is made of.
//
// It holds no rules of its own. Acceptance is session's, values are registry's, durability is the store's; host says in
// which order they start, hear of an event, and end.
//
// State: the table of live sessions in driver.go, guarded by its own mutex, which is never held across a call.
package host
