// Package titleunit is the unit of the title plugin: what the session is called.
//
// It owns the event type session/title. It holds no state of its own.
package titleunit

import "github.com/foldhost/foldhost/sdk"

// SetType is the event that gives a session its title.
const SetType = "session/title"

// Set is the data of a session/title.
type Set struct {
	Title string `json:"title" jsonschema:"minLength=1"`
}

// Projection is the last title that was set, null before the first.
var Projection = sdk.ProjectionDefinition[*string, *string]{
	Key:          "title",
	StateVersion: 1,
	On: sdk.Handlers[*string]{
		SetType: sdk.On(func(_ *string, s Set) *string { return &s.Title }),
	},
	View: sdk.Same[*string],
}
