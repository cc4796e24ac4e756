// Package titleunit is the unit of the title plugin: what the session is called.
//
// It owns the event type session/title. It holds no state of its own.
package titleunit

import "github.com/foldhost/foldhost/sdk"

// SetType is the event that gives a session its title.
const SetType = "session/title"

// Set is the data of a session/title.
type Set struct {
	Title Title `json:"title"`
}

// Title is not empty.
type Title string

// JSONSchema refuses the empty title.
func (Title) JSONSchema() *sdk.Schema {
	one := uint64(1)
	return &sdk.Schema{Type: "string", MinLength: &one}
}

// Projection is the last title that was set, null before the first.
var Projection = sdk.ProjectionDefinition[*Title, *Title]{
	Key:          "title",
	StateVersion: 1,
	On: sdk.Handlers[*Title]{
		SetType: sdk.On(func(_ *Title, s Set) *Title { return &s.Title }),
	},
	View: sdk.Same[*Title],
}
