package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/unit"
)

// goal is a plugin of this process: a unit that counts, a tool that sets a goal, and the event type of that.
func goal(name string) host.Resident {
	return host.Resident{
		Name:   name,
		Events: []host.OwnedEvent{{Type: "goal/set", Schema: json.RawMessage(`{"type":"object","properties":{"goal":{"type":"string"}},"required":["goal"]}`)}},
		Units:  []unit.Definition{number("goals")},
		Tools: []unit.Tool{{Name: "set_goal", Description: "sets a goal", ArgumentSchema: json.RawMessage(`{"type":"object"}`), Reads: []string{"goals"},
			Call: func(_ context.Context, c unit.ToolCall) (unit.ToolResult, error) {
				switch text := string(event.Lookup(c.Arguments, "goal")); text {
				case `"refuse"`:
					return unit.ToolResult{}, errors.New("no such goal")
				case `"panic"`:
					panic("no goal")
				default:
					return unit.ToolResult{Text: "goals: " + string(c.Values["goals"]), Events: []unit.ToolEvent{{Type: "goal/set", Data: fmt.Appendf(nil, `{"goal":%s}`, text)}}}, nil
				}
			}}},
	}
}

// refusedEvent says whether an append of a goal that is none is refused at the door.
func refusedEvent(t *testing.T, s *session.Session) bool {
	t.Helper()
	_, err := s.Append(t.Context(), "goal/set", map[string]int{"goal": 7}, session.Intent{})
	var rule *event.Error
	switch {
	case err == nil:
		return false
	case errors.As(err, &rule) && rule.Code == host.CodeEventSchema && rule.Path == "$.data.goal":
		return true
	}
	t.Fatal(err)
	return false
}

func TestAResidentPluginIsGuardedAndCalledLikeAnyOther(t *testing.T) {
	h := host.New(host.Options{})
	defer h.Close()
	remove, err := h.Add(goal("goal"))
	if err != nil {
		t.Fatal(err)
	}
	s := newSession(t, h, "s")
	step(t, s, 1)
	same(t, "its value", value(t, h, s, "goals"), "1")
	same(t, "a bad event is refused", refusedEvent(t, s), true)
	if _, err := s.Append(t.Context(), "goal/set", map[string]string{"goal": "rest"}, session.Intent{}); err != nil {
		t.Error(err)
	}
	call := func(goal string) (host.ToolResult, error) {
		return h.CallTool(t.Context(), s, "set_goal", fmt.Appendf(nil, `{"goal":%q}`, goal))
	}
	if r, err := call("sleep"); err != nil || r.IsError || r.Text != "goals: 1" || len(r.Events) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := call("refuse"); err != nil || !r.IsError || r.Text != "no such goal" {
		t.Errorf("%+v, %v", r, err)
	}
	var broken *host.ToolBrokenError
	if _, err := call("panic"); !errors.As(err, &broken) {
		t.Error(err)
	}
	p := plugin(t, h, "goal")
	same(t, "its state", p.State, host.PluginReady)
	same(t, "what it has", fmt.Sprint(len(p.Units), len(p.Tools), len(p.Events), len(h.Tools())), "1 1 1 1")

	remove()
	remove()
	same(t, "a bad event is refused once it is gone", refusedEvent(t, s), false)
	var unknown *host.UnknownToolError
	if _, err := call("sleep"); !errors.As(err, &unknown) {
		t.Error(err)
	}
	if remove, err = h.Add(goal("goal")); err != nil {
		t.Fatal(err)
	}
	remove()
}

// TestAResidentPluginIsAddedWholeOrNotAtAll: given one with something wrong, Add says what, and nothing of it is there.
func TestAResidentPluginIsAddedWholeOrNotAtAll(t *testing.T) {
	type check func(error) bool
	is := func(target any) check { return func(err error) bool { return errors.As(err, target) } }
	other := func(change func(*host.Resident)) host.Resident {
		r := goal("other")
		r.Events, r.Units, r.Tools[0].Reads = []host.OwnedEvent{{Type: "other/thing"}}, []unit.Definition{number("others")}, nil
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		plugin host.Resident
		is     check
	}{
		"the name of another":          {other(func(r *host.Resident) { r.Name = "goal" }), is(new(*host.PluginNameError))},
		"an event type of another":     {other(func(r *host.Resident) { r.Events = goal("").Events }), is(new(*host.OwnedError))},
		"an event type of the core":    {other(func(r *host.Resident) { r.Events[0].Type = event.TurnStart }), func(err error) bool { return err != nil }},
		"a unit of another version":    {other(func(r *host.Resident) { r.Units[0].Key, r.Units[0].StateVersion = "goals", 9 }), is(new(*registry.VersionConflictError))},
		"a unit that is none":          {other(func(r *host.Resident) { r.Units[0].StateSchema = nil }), is(new(*unit.DefinitionError))},
		"a unit twice":                 {other(func(r *host.Resident) { r.Units = append(r.Units, r.Units[0]) }), is(new(*unit.DefinitionError))},
		"a tool without a call":        {other(func(r *host.Resident) { r.Tools[0].Call = nil }), is(new(*unit.ToolError))},
		"a tool that reads of another": {other(func(r *host.Resident) { r.Tools[0].Reads = []string{"goals"} }), is(new(*unit.ToolError))},
	} {
		t.Run(name, func(t *testing.T) {
			h := host.New(host.Options{})
			defer h.Close()
			if _, err := h.Add(goal("goal")); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Add(c.plugin); !c.is(err) {
				t.Errorf("the error is %v", err)
			}
			s := newSession(t, h, "s")
			block, err := h.Snapshot(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "keys", fmt.Sprint(len(block.Values), len(block.Unavailable)), "1 0")
			same(t, "plugins", len(h.Plugins(t.Context())), 1)
			same(t, "tools", len(h.Tools()), 1)
		})
	}
}

// TestAResidentPluginComesBeforeProcesses: given a process that claims the same, what this process has stays where it is.
func TestAResidentPluginComesBeforeProcesses(t *testing.T) {
	h := openHost(t, plugs{"wrong": wrong(t, "owns=goal/set")})
	var owned *host.OwnedError
	if _, err := h.Add(goal("a")); !errors.As(err, &owned) || owned.Owner != "wrong" {
		t.Errorf("a type that a process owns already: %v", err)
	}
	r := goal("a")
	r.Events[0].Type, r.Tools[0].Name = "goal/other", "stats"
	if _, err := h.Add(r); err != nil {
		t.Fatal(err)
	}
	for _, tool := range plugin(t, h, "wrong").Tools {
		if tool.Name == "stats" {
			same(t, "the process's tool is shadowed by", tool.ShadowedBy, "a")
		}
	}
	var taken *host.PluginNameError
	if _, err := h.Add(goal("wrong")); !errors.As(err, &taken) {
		t.Errorf("the name of a process: %v", err)
	}
}
