package plugintest

import (
	"encoding/json"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// Tool is a tool under test.
type Tool struct {
	t    TB
	name string
	call func(name string, call unit.ToolCall) (unit.ToolResult, error)
}

// Called calls the tool with arguments (JSON, or any value that encoding/json can write) and the values that it is to see, by key.
func (f *Tool) Called(args any, values map[string]any) *Called {
	f.t.Helper()
	encode := func(v any) json.RawMessage {
		raw, err := event.Encode(fromJSON(v))
		if err != nil {
			f.t.Fatalf("what the tool is called with: %v", err)
		}
		return raw
	}
	call := unit.ToolCall{Session: "plugintest", Seq: -1, Arguments: encode(args), Values: map[string]json.RawMessage{}}
	for key, v := range values {
		call.Values[key] = encode(v)
	}
	result, err := f.call(f.name, call)
	return &Called{t: f.t, Result: result, Err: err}
}

// Called is what a call gave.
type Called struct {
	t      TB
	Result unit.ToolResult
	Err    error
}

// ThenRefused says that the tool refuses.
func (c *Called) ThenRefused() *Called {
	c.t.Helper()
	if c.Err == nil {
		c.t.Errorf("the tool says %q, want a refusal", c.Result.Text)
	}
	return c
}

// ThenText says what it shows.
func (c *Called) ThenText(want string) *Called {
	c.t.Helper()
	if c.worked() && c.Result.Text != want {
		c.t.Errorf("the tool says %q, want %q", c.Result.Text, want)
	}
	return c
}

// ThenValue says what its structured value is, compared as JSON.
func (c *Called) ThenValue(want any) *Called {
	c.t.Helper()
	if c.worked() {
		c.same("value", c.Result.Value, want)
	}
	return c
}

// ThenAppends says which events it wants appended, in order.
func (c *Called) ThenAppends(want ...Input) *Called {
	c.t.Helper()
	if !c.worked() {
		return c
	}
	if len(c.Result.Events) != len(want) {
		c.t.Errorf("the tool appends %d events, want %d", len(c.Result.Events), len(want))
		return c
	}
	for i, e := range c.Result.Events {
		if e.Type != want[i].Type {
			c.t.Errorf("event %d is a %s, want %s", i, e.Type, want[i].Type)
			continue
		}
		c.same("data of "+e.Type, e.Data, want[i].Data)
	}
	return c
}

func (c *Called) worked() bool {
	c.t.Helper()
	if c.Err != nil {
		c.t.Errorf("the tool refuses: %v", c.Err)
	}
	return c.Err == nil
}

func (c *Called) same(what string, got json.RawMessage, want any) {
	c.t.Helper()
	w, err := event.Encode(fromJSON(want))
	if err != nil {
		c.t.Fatalf("the %s that is wanted: %v", what, err)
	}
	if !event.Equal(got, w) {
		c.t.Errorf("the %s is %s, want %s", what, got, w)
	}
}
