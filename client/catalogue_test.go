package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
	"github.com/foldhost/foldhost/unit"
)

// A session can be made with a preset, and lists are of presets. One that there is not is a preset-unknown.
func TestPresets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("all read,append,admin\nlook read\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := api.ReadTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, nil, api.Options{Tokens: tokens}, func(o *host.Options) {
		o.Plugins = &host.PluginOptions{Dir: t.TempDir(), SocketDir: t.TempDir(), Config: &config.File{Presets: map[string]config.Preset{"steps": {"test": nil}, "lost": {"ghost": nil}}}}
	})
	with := func(token string) *client.Client { return s.client(func(o *client.Options) { o.Token = token }) }
	c, ctx := with("all"), bounded(t)
	one, created, err := c.Create(ctx, client.NewSession{ID: "s", Preset: "steps"})
	if err != nil || !created || one.Header.AgentPreset == nil || *one.Header.AgentPreset != "steps" {
		t.Errorf("%+v %v", one, err)
	}
	for preset, keys := range map[string]int{"": 1, "steps": 1, "lost": 0} {
		if offers, err := c.PresetOffers(ctx, preset); err != nil || len(offers) != keys {
			t.Errorf("%s: %+v %v", preset, offers, err)
		}
	}
	if tools, err := c.PresetTools(ctx, "lost"); err != nil || len(tools) != 0 {
		t.Errorf("%+v %v", tools, err)
	}
	if plugins, err := c.PresetPlugins(ctx, "lost"); err != nil || len(plugins) != 1 || plugins[0].Name != "ghost" || !plugins[0].PresetOnly || !slices.Equal(plugins[0].Presets, []string{"lost"}) {
		t.Errorf("%+v %v", plugins, err)
	}
	if ready, err := c.Ready(ctx); err != nil || !slices.ContainsFunc(ready.Missing, func(m client.Missing) bool { return m.Plugin == "ghost" && slices.Equal(m.Presets, []string{"lost"}) }) {
		t.Errorf("%+v %v", ready, err)
	}
	// Why it is missing is told to those who may know.
	for token, told := range map[string]bool{"": false, "look": false, "all": true} {
		ready, err := with(token).Ready(ctx)
		if err != nil || slices.ContainsFunc(ready.Missing, func(m client.Missing) bool { return (m.Reason != "") != told }) {
			t.Errorf("with the token %q: %+v %v", token, ready, err)
		}
	}
	_, _, made := c.Create(ctx, client.NewSession{Preset: "none"})
	_, offers := c.PresetOffers(ctx, "none")
	_, tools := c.PresetTools(ctx, "none")
	_, plugins := c.PresetPlugins(ctx, "none")
	for what, err := range map[string]error{"create": made, "offers": offers, "tools": tools, "plugins": plugins} {
		if code(err) != client.CodePresetUnknown {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A tool that must not run twice runs once for one call, whatever becomes of it: what the server keeps is what the call gives.
func TestAToolThatMustNotRunTwice(t *testing.T) {
	s := serve(t, nil, api.Options{})
	runs := 0
	remove, err := s.host.Add(host.Resident{Name: "pay", Tools: []unit.Tool{{Name: "pay", Description: "pays", ArgumentSchema: json.RawMessage(`{"type":"object"}`), Retry: unit.RetryNever,
		Call: func(context.Context, unit.ToolCall) (unit.ToolResult, error) {
			runs++
			return unit.ToolResult{}, &unit.DeadlineError{Reason: "it is late"}
		}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	c, ctx := s.client(), bounded(t)
	fill(t, c, "s", 1)
	if r, err := c.CallTool(ctx, "s", "pay", struct{}{}, client.Once{}); err != nil || !r.IsError || len(r.Content) != 1 || runs != 1 {
		t.Errorf("%+v, %v, %d runs", r, err, runs)
	}
}

// What plugins offer can be listed, and their tools called.
func TestPluginsAndTools(t *testing.T) {
	s := serve(t, nil, api.Options{})
	remove, err := s.host.Add(host.Resident{
		Name:   "goal",
		Events: []host.OwnedEvent{{Type: "goal/set", Schema: json.RawMessage(`{"type":"object"}`)}},
		Tools: []unit.Tool{{Name: "set_goal", Description: "sets a goal", ArgumentSchema: json.RawMessage(`{"type":"object"}`), ResultSchema: json.RawMessage(`{"type":"integer"}`),
			Call: func(_ context.Context, c unit.ToolCall) (unit.ToolResult, error) {
				goal := event.Lookup(c.Arguments, "goal")
				if goal == nil {
					return unit.ToolResult{}, errors.New("no goal")
				}
				return unit.ToolResult{Text: "set", Value: json.RawMessage("7"), Events: []unit.ToolEvent{{Type: "goal/set", Data: json.RawMessage(`{"goal":` + string(goal) + `}`)}}}, nil
			}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	c, ctx := s.client(), bounded(t)
	fill(t, c, "s", 1)
	r, err := c.CallTool(ctx, "s", "set_goal", map[string]string{"goal": "<x>"}, client.Once{})
	if err != nil || r.IsError || string(r.Value) != "7" || len(r.Events) != 1 || r.Events[0].Seq != 1 || !slices.Equal(r.Content, []client.ToolContent{{Type: "text", Text: "set"}}) {
		t.Errorf("%+v %v", r, err)
	}
	if page, err := c.EventPage(ctx, "s", client.EventsQuery{From: 1}); err != nil || string(page.Events[len(page.Events)-1].Data) != `{"goal":"<x>"}` {
		t.Errorf("%+v %v", page, err)
	}
	if r, err := c.CallTool(ctx, "s", "set_goal", struct{}{}, client.Once{NoKey: true}); err != nil || !r.IsError || len(r.Events) != 0 {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := c.CallTool(ctx, "s", "a/b", nil, client.Once{}); code(err) != client.CodeToolNotFound {
		t.Errorf("a tool that is not there: %v", err)
	}
	if tools, err := c.Tools(ctx); err != nil || len(tools) != 1 || tools[0].Name != "set_goal" || tools[0].Plugin != "goal" || tools[0].ArgumentSchema == nil {
		t.Errorf("%+v %v", tools, err)
	}
	if offers, err := c.Offers(ctx); err != nil || len(offers) != 1 || offers[0].Key != "steps" || offers[0].Plugin != "test" || !slices.Equal(offers[0].Events, []string{"step", "break"}) {
		t.Errorf("%+v %v", offers, err)
	}
	plugins, err := c.Plugins(ctx)
	if err != nil || !slices.ContainsFunc(plugins, func(p client.Plugin) bool {
		return p.Name == "goal" && len(p.Tools) == 1 && len(p.OwnedEvents) == 1 && p.OwnedEvents[0].Type == "goal/set"
	}) {
		t.Errorf("%+v %v", plugins, err)
	}
	if _, err := c.RestartPlugin(ctx, "none"); code(err) != client.CodeNotFound {
		t.Errorf("a plugin that is not there: %v", err)
	}
}
