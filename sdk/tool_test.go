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

	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/unit"
)

// called starts a plugin with one tool, which owns test/tick, and calls it.
func called(t *testing.T, tool sdk.AnyTool, call unit.ToolCall) (unit.ToolResult, string, error) {
	t.Helper()
	var out bytes.Buffer
	p := sdk.Plugin{Name: "p", Owns: []sdk.OwnedEvent{sdk.Owns[tick]("test/tick"), {Type: "test/any"}}, Tools: []sdk.AnyTool{tool}}
	running, err := p.Start(sdk.StartOptions{Logger: hclog.New(&hclog.LoggerOptions{Output: &out})})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Stop(t.Context())
	if call.Arguments == nil {
		call.Arguments = json.RawMessage(`{"n":1}`)
	}
	result, err := running.Tools()[0].Call(t.Context(), call)
	return result, out.String(), err
}

// calling is a tool that does something with its call.
func calling(f func(*sdk.Call)) sdk.AnyTool {
	return sdk.Tool[tick, sdk.None]{Name: "t", Call: func(_ context.Context, c *sdk.Call, _ tick) (sdk.None, error) {
		f(c)
		return sdk.None{}, nil
	}}
}

func TestWhatAToolGivesBack(t *testing.T) {
	full := sdk.Tool[tick, tick]{Name: "t", Call: func(_ context.Context, c *sdk.Call, a tick) (tick, error) {
		var v int
		if ok, err := c.Value("sum", &v); !ok || err != nil {
			t.Errorf("the value is not there: %v", err)
		}
		if ok, err := c.Value("other", &v); ok || err != nil {
			t.Errorf("a value that is not there: %v, %v", ok, err)
		}
		if _, err := c.Value("text", &v); err == nil {
			t.Error("a value of another type is decoded")
		}
		c.Append("test/tick", tick{a.N + v})
		c.Append("test/any", []string{"<&>"})
		return tick{a.N}, nil
	}}
	r, _, err := called(t, full, unit.ToolCall{Session: "s", Seq: 3, Values: map[string]json.RawMessage{"sum": json.RawMessage("40"), "text": json.RawMessage(`"x"`)}})
	if err != nil {
		t.Fatal(err)
	}
	if string(r.Value) != `{"n":1}` || r.Text != `{"n":1}` {
		t.Errorf("got value %s, text %q", r.Value, r.Text)
	}
	if len(r.Events) != 2 || string(r.Events[0].Data) != `{"n":41}` || string(r.Events[1].Data) != `["<&>"]` {
		t.Errorf("got events %v", r.Events)
	}

	said, _, err := called(t, calling(func(c *sdk.Call) { c.Say("%s at %d", c.Session(), c.Seq()) }), unit.ToolCall{Session: "s", Seq: 3})
	if err != nil || said.Text != "s at 3" || said.Value != nil {
		t.Errorf("got %+v, %v", said, err)
	}
}

func TestArgumentsAreCheckedBeforeATool(t *testing.T) {
	never := sdk.Tool[tick, sdk.None]{Name: "t", Call: func(context.Context, *sdk.Call, tick) (sdk.None, error) {
		t.Error("it is called")
		return sdk.None{}, nil
	}}
	for name, args := range map[string]string{
		"missing": `{}`, "another type": `{"n":"x"}`, "an unknown key": `{"n":1,"m":2}`, "another case": `{"N":1}`, "not an object": `[]`,
		"null": `null`, "not JSON": `{`, "too large for the Go type": `{"n":1e30}`, "empty": ` `,
	} {
		_, _, err := called(t, never, unit.ToolCall{Arguments: json.RawMessage(args)})
		var wrong *sdk.ArgumentError
		if !errors.As(err, &wrong) || len(wrong.Mismatches) == 0 || !strings.HasPrefix(wrong.Mismatches[0].Path, "$") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAToolThatGivesWhatItMustNotIsAnErrorResultAndInTheLog(t *testing.T) {
	raw := func(r unit.ToolResult, schema string) sdk.AnyTool {
		d := sdk.RawTool{Name: "t", ArgumentSchema: json.RawMessage("{}"), Call: func(context.Context, unit.ToolCall) (unit.ToolResult, error) { return r, nil }}
		if schema != "" {
			d.ResultSchema = json.RawMessage(schema)
		}
		return d
	}
	for name, tool := range map[string]sdk.AnyTool{
		"an event of another's type":      calling(func(c *sdk.Call) { c.Append("turn/start", tick{}) }),
		"an event against its own schema": calling(func(c *sdk.Call) { c.Append("test/tick", map[string]string{"n": "x"}) }),
		"a panic":                         calling(func(c *sdk.Call) { panic("in a tool") }),
		"a value without a schema":        raw(unit.ToolResult{Value: json.RawMessage("1")}, ""),
		"no value in spite of a schema":   raw(unit.ToolResult{}, `{"type":"integer"}`),
		"a value against its schema":      raw(unit.ToolResult{Value: json.RawMessage(`"x"`)}, `{"type":"integer"}`),
		"a value that is no JSON":         raw(unit.ToolResult{Value: json.RawMessage(`{`)}, `true`),
		"more text than anybody reads":    raw(unit.ToolResult{Text: strings.Repeat("x", unit.MaxToolText+1)}, ""),
		"more events than anybody needs":  raw(unit.ToolResult{Events: slices.Repeat([]unit.ToolEvent{{Type: "test/any", Data: json.RawMessage("1")}}, unit.MaxToolEvents+1)}, ""),
	} {
		r, log, err := called(t, tool, unit.ToolCall{})
		if err == nil || r.Events != nil || r.Text != "" {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
		if !strings.Contains(log, "ERROR") {
			t.Errorf("%s: the log says %q", name, log)
		}
	}
	most := slices.Repeat([]unit.ToolEvent{{Type: "test/any", Data: json.RawMessage("1")}}, unit.MaxToolEvents)
	if r, _, err := called(t, raw(unit.ToolResult{Text: strings.Repeat("x", unit.MaxToolText), Events: most}, ""), unit.ToolCall{}); err != nil || len(r.Events) != len(most) {
		t.Errorf("as much as is allowed: %d events, %v", len(r.Events), err)
	}
	// What JSON cannot carry never becomes an event.
	if _, _, err := called(t, calling(func(c *sdk.Call) { c.Append("test/any", func() {}) }), unit.ToolCall{}); err == nil {
		t.Error("an event of a function is taken")
	}
}

func TestARefusalIsWhatTheToolSays(t *testing.T) {
	refusal := errors.New("not today")
	tool := sdk.Tool[tick, tick]{Name: "t", Call: func(_ context.Context, c *sdk.Call, _ tick) (tick, error) {
		c.Append("test/tick", tick{1})
		return tick{}, refusal
	}}
	r, _, err := called(t, tool, unit.ToolCall{})
	if !errors.Is(err, refusal) || r.Events != nil {
		t.Errorf("got %+v, %v", r, err)
	}
}

// todoArgs are arguments as a tool of lists has them.
type todoArgs struct {
	Todos []string `json:"todos"`
}

// TestKeysOfArgumentsAreMatchedAsTheyAreWritten: given a key in other letters, the schema that is made of the type refuses it; where the author's own
// schema lets it through, it fills no field. The same holds for values that a tool reads.
func TestKeysOfArgumentsAreMatchedAsTheyAreWritten(t *testing.T) {
	var got todoArgs
	tool := sdk.Tool[todoArgs, sdk.None]{Name: "t", Call: func(_ context.Context, c *sdk.Call, a todoArgs) (sdk.None, error) {
		var read todoArgs
		if _, err := c.Value("list", &read); err != nil || len(read.Todos) > 0 {
			t.Errorf("it reads %v, %v", read, err)
		}
		got = a
		return sdk.None{}, nil
	}}
	list := map[string]json.RawMessage{"list": json.RawMessage(`{"TODOS":["a"]}`)}
	var refused *sdk.ArgumentError
	for _, args := range []string{`{"TODOS":["a"]}`, `{"todos":[],"Todos":["a"]}`} {
		if _, _, err := called(t, tool, unit.ToolCall{Arguments: json.RawMessage(args), Values: list}); !errors.As(err, &refused) {
			t.Errorf("%s: %v", args, err)
		}
	}
	tool.ArgumentSchema = json.RawMessage(`{"type":"object"}`)
	for args, want := range map[string]int{`{"TODOS":["a"]}`: 0, `{"todos":["a","b"],"TODOS":[]}`: 2} {
		if _, _, err := called(t, tool, unit.ToolCall{Arguments: json.RawMessage(args), Values: list}); err != nil || len(got.Todos) != want {
			t.Errorf("%s: %v, %v", args, got, err)
		}
	}
}
