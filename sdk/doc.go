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
// where Set is struct{ Goal string `json:"goal"` }: keys are matched exactly, so give every field of a payload its json tag.
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
// # A plugin
//
// A Plugin is a value that lists what it owns and offers. Serve makes it the main of a program; Start runs the same value inside
// another one; plugintest runs it both ways under the same cases:
//
//	func main() {
//		sdk.Serve(sdk.Plugin{
//			Name:  "goal",
//			Owns:  []sdk.OwnedEvent{sdk.Owns[Set]("goal/set")},
//			Units: []sdk.Unit{Goal},
//			Configure: sdk.Configured(func(r *sdk.Registrar, c Config) error {
//				_, err := r.Tool(setGoal(c))
//				return err
//			}),
//		})
//	}
//
// A Tool is what a model can call. It changes a session by appending events of types that its plugin owns, and by nothing else. A
// Registrar offers units and tools and takes them back while the plugin runs.
//
// docs/plugin-authors.md goes from an empty directory to a tested plugin.
//
// The package keeps no state. Definitions are values; what they make is safe for concurrent use as far as the author's
// functions are.
package sdk
