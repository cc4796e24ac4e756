package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/unit"
)

// Greeted is the data of a greeting/sent.
type Greeted struct {
	Name string `json:"name" jsonschema:"minLength=1"`
}

// GreetConfig is the config of the plugin below. A field with a default may be left out.
type GreetConfig struct {
	Greeting string `json:"greeting" jsonschema:"default=hello"`
	Loud     bool   `json:"loud"`
}

// lastGreeted is who was greeted last.
var lastGreeted = sdk.ProjectionDefinition[string, string]{
	Key: "lastGreeted", StateVersion: 1,
	On:   sdk.Handlers[string]{"greeting/sent": sdk.On(func(_ string, g Greeted) string { return g.Name })},
	View: sdk.Same[string],
}

// greeter is a whole plugin. Its main would be sdk.Serve(greeter).
var greeter = sdk.Plugin{
	Name:    "greeter",
	Version: "1.0.0",
	Owns:    []sdk.OwnedEvent{sdk.Owns[Greeted]("greeting/sent")},
	Units:   []sdk.Unit{lastGreeted},
	Configure: sdk.Configured(func(r *sdk.Registrar, c GreetConfig) error {
		_, err := r.Tool(sdk.Tool[Greeted, sdk.None]{
			Name: "greet",
			Call: func(_ context.Context, call *sdk.Call, g Greeted) (sdk.None, error) {
				call.Append("greeting/sent", g)
				call.Say("%s, %s", c.Greeting, g.Name)
				return sdk.None{}, nil
			},
		})
		return err
	}),
}

// The same value that Serve serves runs in any program.
func ExamplePlugin_Start() {
	running, err := greeter.Start(sdk.StartOptions{Config: json.RawMessage(`{"loud":false}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer running.Stop(context.Background())
	for _, e := range running.Events() {
		fmt.Println("owns", e.Type)
	}
	for _, u := range running.Units() {
		fmt.Println("unit", u.Key, "folds", u.Events)
	}
	greet := running.Tools()[0]
	result, err := greet.Call(context.Background(), unit.ToolCall{Session: "s1", Seq: -1, Arguments: json.RawMessage(`{"name":"Ada"}`)})
	fmt.Println(result.Text, err)
	for _, e := range result.Events {
		fmt.Println("appends", e.Type, string(e.Data))
	}
	_, err = greet.Call(context.Background(), unit.ToolCall{Session: "s1", Seq: -1, Arguments: json.RawMessage(`{"nick":"Ada"}`)})
	fmt.Println(err)
	// Output:
	// owns greeting/sent
	// unit lastGreeted folds [greeting/sent]
	// hello, Ada <nil>
	// appends greeting/sent {"name":"Ada"}
	// the arguments are wrong: $.name: missing required value; $.nick: no such key is known here
}

// Everything that is wrong with a config is said at once, each at its place.
func ExampleConfigError() {
	_, err := greeter.Start(sdk.StartOptions{Config: json.RawMessage(`{"greeting":7,"volume":11}`)})
	var refused *sdk.ConfigError
	if errors.As(err, &refused) {
		for _, p := range refused.Problems {
			fmt.Println(p.Path, "-", p.Message)
		}
	}
	// Output:
	// $.greeting - expected string, got number
	// $.loud - missing required value
	// $.volume - no such key is known here
}

// Defaults that are values: a config says what differs from them.
func ExampleConfiguredFrom() {
	type limits struct {
		MaxBytes int      `json:"maxBytes" jsonschema:"minimum=1"`
		Types    []string `json:"types" jsonschema:"nonnull"`
	}
	p := sdk.Plugin{Name: "limits", Configure: sdk.ConfiguredFrom(limits{MaxBytes: 1 << 20, Types: []string{"image/png"}},
		func(_ *sdk.Registrar, l limits) error {
			fmt.Println(l.MaxBytes, l.Types)
			return nil
		})}
	running, err := p.Start(sdk.StartOptions{Config: json.RawMessage(`{"maxBytes":512}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	running.Stop(context.Background())
	// Output: 512 [image/png]
}
