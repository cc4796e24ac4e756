package plugintest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/unit"
)

// Plugin is a whole plugin under test: in this process (Start), or in one of its own (Process). Cases are the same for both.
type Plugin struct {
	t       TB
	fixture func(key string) *Fixture
	call    func(name string, call unit.ToolCall) (unit.ToolResult, error)
}

// stopTimeout is how long the goroutines of a plugin may take to end.
const stopTimeout = 10 * time.Second

// Start starts a plugin in this process with a config (nil, JSON, or any value that encoding/json can write), and stops it when the test
// ends. One that does not start ends the test, with the reason.
func Start(t TB, p sdk.Plugin, with any) *Plugin {
	t.Helper()
	running, err := p.Start(sdk.StartOptions{Config: configOf(t, with)})
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		if err := running.Stop(ctx); err != nil {
			t.Errorf("%v", err)
		}
	})
	return &Plugin{
		t: t,
		fixture: func(key string) *Fixture {
			for _, def := range running.Units() {
				if def.Key == key {
					return &Fixture{t: t, def: def, check: Check}
				}
			}
			t.Fatalf("the plugin offers no unit %q", key)
			return nil
		},
		call: func(name string, call unit.ToolCall) (unit.ToolResult, error) {
			for _, tool := range running.Tools() {
				if tool.Name == name {
					return tool.Call(context.Background(), call)
				}
			}
			t.Fatalf("the plugin offers no tool %q", name)
			return unit.ToolResult{}, nil
		},
	}
}

// Unit is a unit of the plugin, for the same cases as one that stands alone.
func (p *Plugin) Unit(key string) *Fixture {
	p.t.Helper()
	return p.fixture(key)
}

// Tool is a tool of the plugin.
func (p *Plugin) Tool(name string) *Tool { return &Tool{t: p.t, name: name, call: p.call} }

func configOf(t TB, with any) json.RawMessage {
	t.Helper()
	if with == nil {
		return nil
	}
	raw, err := event.Encode(fromJSON(with))
	if err != nil {
		t.Fatalf("the config: %v", err)
	}
	return raw
}
