package plugintest_test

import (
	"fmt"

	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/sdk/plugintest"
)

// Pinned is the list of what is pinned to a session.
type Pinned struct {
	Items []string `json:"items" jsonschema:"nonnull"`
}

var pins = sdk.ProjectionDefinition[Pinned, Pinned]{
	Key: "pins", StateVersion: 1,
	Init: func() Pinned { return Pinned{Items: []string{}} },
	On: sdk.Handlers[Pinned]{
		"pins/set": sdk.On(func(_ Pinned, all Pinned) Pinned { return all }),
	},
	View: sdk.Same[Pinned],
}

// In a plugin this is the body of a test, and t its *testing.T. Here t prints what a test would fail with.
func ExampleUnit() {
	t := &printer{}
	u := plugintest.Unit(t, pins)
	given := u.Given(
		plugintest.Event("pins/set", Pinned{Items: []string{"readme"}}),
		plugintest.Event("turn/start", nil),
	)
	given.Then(plugintest.JSON(`{"items":["readme"]}`)) // as JSON
	given.Then(Pinned{Items: []string{"readme"}})       // or as a Go value
	given.Then(plugintest.JSON(`{"items":[]}`))         // this one is wrong
	u.Given(plugintest.Event("pins/set", "readme")).ThenFault(0)
	// Output:
	// unit "pins": the value after event 0 is {"items":["readme"]}, want {"items":[]}
}

// printer stands for a *testing.T.
type printer struct{}

func (*printer) Helper()                           {}
func (*printer) Cleanup(func())                    {}
func (*printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (*printer) Fatalf(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// replace is the data of a pins/replace.
type replace struct {
	At int `json:"at"`
}

// A program looks at the report itself.
func ExampleCheck() {
	def, err := sdk.ProjectionDefinition[[]string, []string]{
		Key: "pins", StateVersion: 1,
		On: sdk.Handlers[[]string]{
			"pins/replace": sdk.On(func(all []string, p replace) []string {
				all[p.At] = "" // changes the old state: slices.Clone(all) first
				return all
			}),
			"pins/add": sdk.On(func(all []string, item string) []string { return append(all, item) }),
		},
		View: sdk.Same[[]string],
	}.Definition()
	if err != nil {
		fmt.Println(err)
		return
	}
	report := plugintest.Check(def, []sdk.Event{
		{Type: "pins/add", Seq: 0, Data: []byte(`"readme"`)},
		{Type: "pins/replace", Seq: 1, Data: []byte(`{"at":0}`)},
	})
	for _, v := range report.Violations {
		fmt.Println(v.Law, "at", v.Seq)
	}
	// Output:
	// keeps-old-state at 1
}
