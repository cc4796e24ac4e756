// Package plugintest tests units, tools and whole plugins: given events, then a value. Unit tests a unit alone, Start a plugin in this
// process, and Process an executable, in any language, through the host's own launcher; cases are the same for all three.
//
// On every use it also holds the unit against the laws of the contract, each over every event that was given:
//
//	matches-schema       states and values match their schemas, that of the empty log too
//	repeatable-view      the same state gives the same bytes, as value and encoded
//	keeps-old-state      neither apply nor view changes the state that it is given
//	deterministic        the same log gives the same bytes twice
//	survives-json        a state that went through JSON gives the same bytes and the same value
//	resumes-anywhere     folding in two parts, through a row, equals folding in one, at every split
//	ignores-unrelated    an event of a type that the unit does not name changes nothing
//
// A law that cannot be told apart from one that is already broken is not looked at, so that one mistake gives one message.
//
// Of a process it is also asked that the last value alone is the last of all values (last-is-last), and that each kind of batch is answered with
// what it asks for (answers-batches); what it does to old states (keeps-old-state, repeatable-view) is not seen from outside.
//
// Check is the same without a *testing.T, for programs. The package keeps no state.
package plugintest
