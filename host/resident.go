package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/host/internal/supervise"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/unit"
)

// Resident is a plugin that runs in this process: its units, its tools, and the event types that it owns. Of one that the sdk has started
// they are what Running.Units, Tools and Events give.
type Resident struct {
	Name   string
	Events []OwnedEvent
	Units  []unit.Definition
	Tools  []unit.Tool
}

// PluginNameError: another plugin has the name.
type PluginNameError struct{ Name string }

func (e *PluginNameError) Error() string {
	return fmt.Sprintf("there is a plugin %q already; give this one another name", e.Name)
}

// Add takes in a plugin that runs in this process, whole or not at all. From then on its units fold, its tools can be called, and every append of its
// event types is checked, as for a plugin in a process of its own. It is of the default set, and of each preset that names it without a config. Its event types and the names of its tools win over those of processes that say
// later that they have the same. remove takes it away; more than once is harmless.
//
// Errors: *PluginNameError, *OwnedError, *unit.DefinitionError, *unit.ToolError, *registry.VersionConflictError, or what is wrong with an event type.
func (h *Host) Add(r Resident) (remove func(), err error) {
	s, err := statusOf(&r)
	if err != nil {
		return nil, fmt.Errorf("adding plugin %q: %w", r.Name, err)
	}
	var held []*registry.Registration
	release := func() {
		for _, one := range held {
			one.Release()
		}
	}
	for _, def := range r.Units {
		one, err := h.Register(r.Name, def)
		if err != nil {
			release()
			return nil, fmt.Errorf("adding plugin %q: %w", r.Name, err)
		}
		held = append(held, one)
	}
	if err := h.plugins.admit(s); err != nil {
		release()
		return nil, fmt.Errorf("adding plugin %q: %w", r.Name, err)
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			h.plugins.dismiss(r.Name)
			release()
			h.plugins.released()
		})
	}, nil
}

// statusOf checks a resident plugin and says what it is as if it had a process.
func statusOf(r *Resident) (s supervise.Status, err error) {
	s = supervise.Status{Name: r.Name, State: supervise.Ready, Since: time.Now()}
	said := &pluginproto.DescribeResponse{}
	for _, e := range r.Events {
		said.OwnedEvents = append(said.OwnedEvents, &pluginproto.OwnedEvent{Type: e.Type, DataSchema: e.Schema})
	}
	if s.Description, err = life.ReadDescription(said); err != nil {
		return s, err
	}
	keys := map[string]bool{}
	for _, def := range r.Units {
		c, err := unit.Compile(def)
		if err != nil {
			return s, err
		}
		if keys[c.Key] {
			return s, &unit.DefinitionError{Key: c.Key, Rule: "key", Reason: "it is offered twice"}
		}
		keys[c.Key] = true
		s.Units = append(s.Units, supervise.Unit{Key: c.Key, StateVersion: c.StateVersion, Events: c.Events, StateSchema: c.StateSchema, ViewSchema: c.ViewSchema,
			ConfigBound: c.ConfigBound})
	}
	names := map[string]bool{}
	for _, t := range r.Tools {
		if t.Call == nil {
			return s, &unit.ToolError{Name: t.Name, Rule: "call", Reason: "there is nothing to call"}
		}
		if names[t.Name] {
			return s, &unit.ToolError{Name: t.Name, Rule: "name", Reason: "it is offered twice"}
		}
		names[t.Name] = true
		t.Call = contained(t.Call)
		tool, err := life.NewTool(t, keys)
		if err != nil {
			return s, err
		}
		s.Tools = append(s.Tools, tool)
	}
	return s, nil
}

// contained calls a tool of this process as one of another is called: its panics end there, and its errors are for the model.
func contained(call func(context.Context, unit.ToolCall) (unit.ToolResult, error)) func(context.Context, unit.ToolCall) (unit.ToolResult, error) {
	return func(ctx context.Context, c unit.ToolCall) (r unit.ToolResult, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = fmt.Errorf("it panicked: %v", v)
			}
		}()
		r, err = call(ctx, c)
		var gone *unit.GoneError
		var late *unit.DeadlineError
		if err == nil || ctx.Err() != nil || errors.As(err, &gone) || errors.As(err, &late) {
			return r, err
		}
		return r, &life.FailureError{Message: err.Error()}
	}
}

// admit takes a resident plugin into the tables.
func (p *plugins) admit(s supervise.Status) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	named := func(other supervise.Status) bool { return other.Name == s.Name }
	idle := slices.ContainsFunc(p.idle, func(other Plugin) bool { return other.Name == s.Name })
	if idle || len(p.find(s.Name)) > 0 || slices.ContainsFunc(p.resident, named) {
		return &PluginNameError{s.Name}
	}
	owners := p.tables.Load().standard.owners
	for _, o := range s.Description.Owned {
		if owner, owned := owners.byType[o.Type]; owned {
			return &OwnedError{o.Type, owner.plugin}
		}
	}
	p.resident = append(p.resident, s)
	p.changedLocked()
	return nil
}

// dismiss takes a resident plugin out of the tables.
func (p *plugins) dismiss(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resident = slices.DeleteFunc(slices.Clone(p.resident), func(s supervise.Status) bool { return s.Name == name })
	p.changedLocked()
}

func (p *plugins) residents() []supervise.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resident
}
