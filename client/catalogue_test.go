package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/unit"
)

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
