package sdk_test

import (
	"errors"
	"fmt"
	"slices"

	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/sdk/plugintest"
)

// Priority has few values.
type Priority string

// JSONSchema names them.
func (Priority) JSONSchema() *sdk.Schema { return sdk.Enum[Priority]("low", "high") }

// Note is one entry.
type Note struct {
	Text     string   `json:"text" jsonschema:"minLength=1"`
	Priority Priority `json:"priority"`
}

// Raise is the data of a notes/raise. Keys are matched exactly, so each field has its tag.
type Raise struct {
	Index int `json:"index"`
}

// Notes is the state. Clients see how many there are.
type Notes struct {
	All []Note `json:"all" jsonschema:"nonnull"`
}

// NoteCount is the value.
type NoteCount struct {
	Low  int `json:"low"`
	High int `json:"high"`
}

// A unit with two handlers, and a value that is not the state.
func ExampleProjectionDefinition() {
	notes := sdk.ProjectionDefinition[Notes, NoteCount]{
		Key:          "notes",
		StateVersion: 1,
		Init:         func() Notes { return Notes{All: []Note{}} },
		On: sdk.Handlers[Notes]{
			// The event carries all notes: the whole-value rule.
			"notes/write": sdk.On(func(_ Notes, all Notes) Notes { return all }),
			// An element of a slice is not written in place: the old state holds it too.
			"notes/raise": sdk.OnEvent(func(s Notes, p Raise, _ *sdk.Event) (Notes, error) {
				if p.Index < 0 || p.Index >= len(s.All) {
					return s, errors.New("there is no such note")
				}
				s.All = slices.Clone(s.All)
				s.All[p.Index].Priority = "high"
				return s, nil
			}),
		},
		View: func(s Notes) (c NoteCount) {
			for _, n := range s.All {
				if n.Priority == "high" {
					c.High++
				} else {
					c.Low++
				}
			}
			return c
		},
	}
	def, err := notes.Definition()
	if err != nil {
		fmt.Println(err)
		return
	}
	report := plugintest.Check(def, []sdk.Event{
		{Type: "notes/write", Seq: 0, Data: []byte(`{"all":[{"text":"a","priority":"low"},{"text":"b","priority":"low"}]}`)},
		{Type: "notes/raise", Seq: 1, Data: []byte(`{"index":1}`)},
	})
	fmt.Println(def.Events, report)
	for _, s := range report.Steps {
		fmt.Printf("%d %s\n", s.Seq, s.View)
	}
	// Output:
	// [notes/raise notes/write] unit "notes" keeps the contract
	// -1 {"low":0,"high":0}
	// 0 {"low":2,"high":0}
	// 1 {"low":1,"high":1}
}

func ExampleSchemaOf() {
	schema, err := sdk.SchemaOf[[]string]()
	fmt.Println(string(schema), err)

	_, err = sdk.SchemaOf[struct {
		Size int `json:"size" jsonschema:"minimun=1"`
	}]()
	var field *sdk.FieldError
	fmt.Println(errors.As(err, &field), field.Path)
	// Output:
	// {"$schema":"https://json-schema.org/draft/2020-12/schema","anyOf":[{"items":{"type":"string"},"type":"array"},{"type":"null"}]} <nil>
	// true struct.Size
}
