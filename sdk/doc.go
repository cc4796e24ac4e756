// Package sdk is what the author of a Go plugin imports.
//
// A unit is a pure fold over one session's log. Its author names the event types that change the state, with a function
// for each, and a function that turns the state into the value that clients see:
//
//	var Goal = sdk.ProjectionDefinition[State, string]{
//		Key:          "goal",
//		StateVersion: 1,
//		On: sdk.Handlers[State]{
//			"goal/set":  sdk.On(func(s State, p Set) State { s.Goal = p.Goal; return s }),
//			"goal/done": sdk.On(func(s State, p Done) State { s.Done++; return s }),
//		},
//		View: func(s State) string { return s.Goal },
//	}
//
// Everything else is done here: payloads are decoded, schemas are made of the Go types, states are compared.
//
// # Rules of a fold
//
// The whole-value rule: an event that carries state carries the whole new state, never a difference. It is what makes the
// latest value final, and a lost or repeated frame harmless.
//
// A fold is deterministic: it reads the state and the event and nothing else, no clock, no randomness, no file. Where the
// config decides what the fold does, and not only what the view shows, say ConfigBound.
//
// A state is a value: a handler returns a new one and leaves the one it was given as it was. Assigning to fields of a
// struct that was passed by value is fine. Writing through a pointer, into a map, or into the elements of a slice that the
// old state holds is not: copy them first (slices.Clone, maps.Clone). plugintest finds those who forget.
//
// A state survives JSON: what is not exported, or left out by its tags, is lost when a session is read again from a row.
//
// # What changes nothing
//
// An event type without a handler costs nothing: the host does not even send it. A handler that returns an equal state has
// changed nothing; the SDK compares, so that nobody has to remember to say so. Nothing is sent to clients either when the
// state changed and its view did not.
//
// The package keeps no state. Definitions are values; what they make is safe for concurrent use as far as the author's
// functions are.
package sdk
