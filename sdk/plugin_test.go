package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/unit"
)

type tick struct {
	N int `json:"n"`
}

func ticks(key string) sdk.ProjectionDefinition[int, int] {
	return sdk.ProjectionDefinition[int, int]{
		Key: key, StateVersion: 1,
		On: sdk.Handlers[int]{
			"test/tick": sdk.On(func(n int, t tick) int {
				if t.N < 0 {
					panic("negative")
				}
				return n + t.N
			}),
		},
		View: sdk.Same[int],
	}
}

func echo(name string) sdk.Tool[tick, tick] {
	return sdk.Tool[tick, tick]{Name: name, Call: func(_ context.Context, _ *sdk.Call, t tick) (tick, error) { return t, nil }}
}

// elsewhere is a unit that a plugin has nothing to fold with.
type elsewhere struct{}

func (elsewhere) Definition() (unit.Definition, error) {
	d, err := ticks("a").Definition()
	d.Inline, d.Instance = nil, &unit.Local{}
	return d, err
}

func TestAPluginOfAnyRightNameStarts(t *testing.T) {
	for _, name := range []string{"azAZ09._-", "x", strings.Repeat("x", 64)} {
		running, err := sdk.Plugin{Name: name}.Start(sdk.StartOptions{})
		if err != nil {
			t.Error(err)
			continue
		}
		if err := running.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestWhatAToolLacksIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		tool sdk.AnyTool
		rule string
	}{
		"no Call":              {sdk.Tool[tick, tick]{Name: "a"}, "call"},
		"no Call, raw":         {sdk.RawTool{Name: "a", ArgumentSchema: json.RawMessage("{}")}, "call"},
		"no object":            {sdk.Tool[[]int, tick]{Name: "a", Call: func(context.Context, *sdk.Call, []int) (tick, error) { return tick{}, nil }}, "argument-schema"},
		"a schema that is off": {sdk.Tool[tick, tick]{Name: "a", ArgumentSchema: json.RawMessage("5"), Call: echo("a").Call}, "argument-schema"},
	} {
		_, err := c.tool.Definition()
		var wrong *unit.ToolError
		if !errors.As(err, &wrong) || wrong.Rule != c.rule || wrong.Name != "a" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Schemas that are written by hand are kept.
func TestSchemasOfAToolThatAreWrittenByHandAreKept(t *testing.T) {
	tool := echo("a")
	tool.ArgumentSchema, tool.ResultSchema = json.RawMessage(`{"type":"object","title":"arguments"}`), json.RawMessage(`{"title":"result"}`)
	def, err := tool.Definition()
	if err != nil || string(def.ArgumentSchema) != string(tool.ArgumentSchema) || string(def.ResultSchema) != string(tool.ResultSchema) {
		t.Errorf("%s, %s, %v", def.ArgumentSchema, def.ResultSchema, err)
	}
	def, err = echo("a").Definition()
	if err != nil || def.ResultSchema == nil {
		t.Errorf("%s, %v", def.ResultSchema, err)
	}
}

func TestAPluginThatIsWrongInItselfDoesNotStart(t *testing.T) {
	for name, p := range map[string]sdk.Plugin{
		"no name":                              {},
		"a name with a space":                  {Name: "a b"},
		"a name with a slash":                  {Name: "a/b"},
		"a name of letters of others":          {Name: "ä"},
		"a name that is too long":              {Name: strings.Repeat("x", 65)},
		"a unit that folds elsewhere":          {Name: "p", Units: []sdk.Unit{elsewhere{}}},
		"a tool of a result without a schema":  {Name: "p", Tools: []sdk.AnyTool{sdk.Tool[tick, chan int]{Name: "a", Call: func(context.Context, *sdk.Call, tick) (chan int, error) { return nil, nil }}}},
		"a tool of arguments without a schema": {Name: "p", Tools: []sdk.AnyTool{sdk.Tool[struct{ C chan int }, tick]{Name: "a", Call: func(context.Context, *sdk.Call, struct{ C chan int }) (tick, error) { return tick{}, nil }}}},
		"a type owned twice":                   {Name: "p", Owns: []sdk.OwnedEvent{sdk.Owns[tick]("t"), sdk.Owns[tick]("t")}},
		"an owned event without a type":        {Name: "p", Owns: []sdk.OwnedEvent{sdk.Owns[tick]("")}},
		"a payload without a schema":           {Name: "p", Owns: []sdk.OwnedEvent{sdk.Owns[chan int]("t")}},
		"a schema that does not compile":       {Name: "p", Owns: []sdk.OwnedEvent{{Type: "t", Schema: json.RawMessage(`{"type":7}`)}}},
		"a unit that is refused":               {Name: "p", Units: []sdk.Unit{ticks("a key with spaces")}},
		"a key offered twice":                  {Name: "p", Units: []sdk.Unit{ticks("a"), ticks("a")}},
		"a tool that is refused":               {Name: "p", Tools: []sdk.AnyTool{echo("a b")}},
		"a name of a tool twice":               {Name: "p", Tools: []sdk.AnyTool{echo("a"), echo("a")}},
		"a tool without Call":                  {Name: "p", Tools: []sdk.AnyTool{sdk.Tool[tick, tick]{Name: "a"}}},
		"a raw tool without Call":              {Name: "p", Tools: []sdk.AnyTool{sdk.RawTool{Name: "a", ArgumentSchema: json.RawMessage("{}")}}},
		"a tool without an object":             {Name: "p", Tools: []sdk.AnyTool{sdk.Tool[[]int, tick]{Name: "a", Call: func(context.Context, *sdk.Call, []int) (tick, error) { return tick{}, nil }}}},
	} {
		t.Run(name, func(t *testing.T) {
			if running, err := p.Start(sdk.StartOptions{}); err == nil {
				running.Stop(t.Context())
				t.Error("it starts")
			}
		})
	}
}

func keys(units []unit.Definition) (out []string) {
	for _, u := range units {
		out = append(out, u.Key)
	}
	return out
}

func TestUnitsAndToolsComeAndGoWhileAPluginRuns(t *testing.T) {
	var registrar *sdk.Registrar
	p := sdk.Plugin{Name: "p", Units: []sdk.Unit{ticks("always")}, Configure: sdk.Configured(func(r *sdk.Registrar, _ sdk.None) error {
		registrar = r
		return nil
	})}
	running, err := p.Start(sdk.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changes := func(what string, change func()) {
		t.Helper()
		changed := running.Changed()
		change()
		select {
		case <-changed:
		default:
			t.Errorf("%s: nobody is told", what)
		}
	}
	var a *sdk.Registration
	changes("a unit comes", func() {
		if a, err = registrar.Unit(ticks("a")); err != nil {
			t.Fatal(err)
		}
	})
	changes("a tool comes", func() {
		if _, err := registrar.Tool(echo("a")); err != nil {
			t.Fatal(err)
		}
	})
	if got := keys(running.Units()); !slices.Equal(got, []string{"always", "a"}) || len(running.Tools()) != 1 {
		t.Errorf("got %v and %d tools", got, len(running.Tools()))
	}
	var taken *unit.DefinitionError
	if _, err := registrar.Unit(ticks("a")); !errors.As(err, &taken) || taken.Rule != "key" {
		t.Errorf("a key that is taken: %v", err)
	}
	changes("a unit goes", a.Release)
	again := running.Changed()
	a.Release()
	select {
	case <-again:
		t.Error("a second release is told")
	default:
	}
	if got := keys(running.Units()); !slices.Equal(got, []string{"always"}) {
		t.Errorf("got %v", got)
	}
	if _, err := registrar.Unit(ticks("a")); err != nil {
		t.Errorf("the key is free again: %v", err)
	}

	// Stopping ends the context and waits for the goroutines.
	ended := false
	registrar.Go(func(ctx context.Context) {
		<-ctx.Done()
		ended = true
	})
	if err := running.Stop(t.Context()); err != nil || !ended {
		t.Errorf("stopped with %v, its goroutine ended: %v", err, ended)
	}
	if _, err := registrar.Unit(ticks("late")); !errors.Is(err, sdk.ErrStopped) {
		t.Errorf("got %v", err)
	}
	registrar.Go(func(context.Context) { t.Error("a goroutine starts after the stop") })
	if err := running.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAStopDoesNotWaitForEver(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	p := sdk.Plugin{Name: "p", Configure: sdk.Configured(func(r *sdk.Registrar, _ sdk.None) error {
		r.Go(func(context.Context) { <-release })
		return nil
	})}
	running, err := p.Start(sdk.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := running.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAPanicOfAFoldIsAnErrorWithItsStackInTheLog(t *testing.T) {
	var out bytes.Buffer
	running, err := sdk.Plugin{Name: "p", Units: []sdk.Unit{ticks("a")}}.Start(sdk.StartOptions{Logger: hclog.New(&hclog.LoggerOptions{Output: &out, JSONFormat: true})})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Stop(t.Context())
	fold := running.Units()[0].Inline
	s, err := fold.Init()
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = fold.Apply(s, &event.Event{Type: "test/tick", Seq: 9, Data: json.RawMessage(`{"n":-1}`)})
	var p *unit.PanicError
	if !errors.As(err, &p) {
		t.Fatalf("got %v", err)
	}
	if log := out.String(); !strings.Contains(log, "plugin_test.go") || !strings.Contains(log, `"seq":9`) || !strings.Contains(log, `"unit":"a"`) {
		t.Errorf("the log says %s", log)
	}
	if strings.Contains(err.Error(), "goroutine") {
		t.Error("the stack is in the error")
	}
}
