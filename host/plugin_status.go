package host

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foldhost/foldhost/host/discover"
	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/host/internal/supervise"
	"github.com/foldhost/foldhost/unit"
)

// PluginState is how a plugin stands.
type PluginState string

// The states. The first six follow each other; a plugin that is disabled or missing is listed and never started.
const (
	PluginStarting PluginState = PluginState(supervise.Starting)
	PluginReady    PluginState = PluginState(supervise.Ready)
	// PluginBackoff waits for its next start, at Plugin.Until.
	PluginBackoff PluginState = PluginState(supervise.Backoff)
	// PluginParked starts again only when somebody asks; Plugin.Reason says why.
	PluginParked   PluginState = PluginState(supervise.Parked)
	PluginDraining PluginState = PluginState(supervise.Draining)
	PluginStopped  PluginState = PluginState(supervise.Stopped)
	// PluginDisabled is switched off by the configuration; PluginMissing is named by it and not there.
	PluginDisabled PluginState = "disabled"
	PluginMissing  PluginState = "missing"
)

// Plugin is a plugin at one time.
type Plugin struct {
	Name, Path string
	State      PluginState
	// Since is when it came into the state; Until when a backoff ends; both are zero where there is no such time.
	Since, Until time.Time
	// Reason says why it does not serve; empty when it does.
	Reason string
	// Pid is 0 without a process.
	Pid int
	// Restarts counts processes after the first, LastError is the last failure of any of them, Tail the end of what it wrote to stderr, at most 64 KiB.
	Restarts        int
	LastError, Tail string
	// Digest is the SHA-256 of the file in hex, where it could be read.
	Digest string
	// What it says about itself, once it was asked.
	Title, Version, Summary, BuiltWith string
	ConfigSchema                       json.RawMessage
	Events                             []OwnedEvent
	Units                              []PluginUnit
	Tools                              []PluginTool
	// Refused is what it offered and did not get; Warnings are what an operator should change.
	Refused  []RefusedOffer
	Warnings []string
}

// OwnedEvent is an event type that belongs to a plugin. Schema is nil where any data will do.
type OwnedEvent = unit.OwnedEvent

// PluginUnit is a unit that is registered.
type PluginUnit struct {
	Key          string
	StateVersion int64
	// Events are the types that it folds; nil is every type.
	Events []string
	// ViewSchema is nil for a host-only unit.
	StateSchema, ViewSchema json.RawMessage
	ConfigBound             bool
}

// PluginTool is a tool that can be called. ShadowedBy names the plugin whose tool of the same name serves instead; empty for the one that serves.
type PluginTool struct {
	Name, Description            string
	ArgumentSchema, ResultSchema json.RawMessage
	Reads                        []string
	// RetryNever says that a call whose values were overtaken is not repeated.
	RetryNever bool
	ShadowedBy string
}

// RefusedOffer is something that a plugin offered and did not get. What is "unit", "tool" or "event type".
type RefusedOffer struct {
	What, Name string
	Err        error
}

func (r RefusedOffer) String() string { return fmt.Sprintf("%s %q: %v", r.What, r.Name, r.Err) }

// Plugins lists every plugin, those that are disabled or missing or run in this process included, sorted by name. It hashes files that were not hashed yet, until ctx ends.
func (h *Host) Plugins(ctx context.Context) []Plugin {
	all := slices.Clone(h.plugins.idle)
	owners, tools := h.plugins.owners.Load(), h.plugins.tools.Load()
	for _, one := range h.plugins.list {
		p := pluginOf(one.Status(), owners, tools)
		p.Digest, _ = one.Digest(ctx)
		p.Warnings = h.plugins.warnings[p.Name]
		all = append(all, p)
	}
	for _, s := range h.plugins.residents() {
		all = append(all, pluginOf(s, owners, tools))
	}
	slices.SortFunc(all, func(a, b Plugin) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// PassedFiles are the files of the plugin directory that are no plugins, with the reasons.
func (h *Host) PassedFiles() []discover.Passed {
	return h.plugins.passed
}

// WaitPlugins waits until the first start of every plugin has ended, well or not. The error is ctx's.
func (h *Host) WaitPlugins(ctx context.Context) error {
	return h.plugins.wait(ctx)
}

// UnknownPluginError: there is no plugin of this name, or it is not one that is started.
type UnknownPluginError struct{ Name string }

func (e *UnknownPluginError) Error() string {
	return fmt.Sprintf("there is no plugin %q that is started here", e.Name)
}

// RestartPlugin brings up a new process of a plugin, which takes over without a gap once it is up; one that waits or is parked starts at
// once, and its failures are forgotten. It does not wait. The error is *UnknownPluginError.
func (h *Host) RestartPlugin(name string) error {
	one := h.plugins.find(name)
	if one == nil {
		return &UnknownPluginError{name}
	}
	one.Restart()
	return nil
}

// StopPlugin stops a plugin for good: its units are released, so that the next plugin by name takes over those that it has as well, and its
// process is asked to end, or killed when ctx ends. Its event types stay guarded. Errors: *UnknownPluginError, that of ctx.
func (h *Host) StopPlugin(ctx context.Context, name string) error {
	one := h.plugins.find(name)
	if one == nil {
		return &UnknownPluginError{name}
	}
	one.Stop(ctx)
	return ctx.Err()
}

func pluginOf(s supervise.Status, owners *owners, tools *tools) Plugin {
	p := Plugin{Name: s.Name, Path: s.Path, State: PluginState(s.State), Since: s.Since, Until: s.Until, Reason: s.Reason, Pid: s.Pid, Restarts: s.Restarts,
		LastError: s.LastError, Tail: s.Tail}
	p.describe(s.Description)
	for _, u := range s.Units {
		p.Units = append(p.Units, PluginUnit{Key: u.Key, StateVersion: u.StateVersion, Events: u.Events, StateSchema: u.StateSchema, ViewSchema: u.ViewSchema, ConfigBound: u.ConfigBound})
	}
	for i := range s.Tools {
		t := toolOf(&s.Tools[i])
		if first := tools.find(t.Name); first != nil && first.plugin != s.Name {
			t.ShadowedBy = first.plugin
		}
		p.Tools = append(p.Tools, t)
	}
	for _, r := range slices.Concat(s.Refused, owners.refused[s.Name]) {
		p.Refused = append(p.Refused, RefusedOffer(r))
	}
	slices.SortFunc(p.Refused, func(a, b RefusedOffer) int {
		return cmp.Or(strings.Compare(a.What, b.What), strings.Compare(a.Name, b.Name))
	})
	return p
}

func (p *Plugin) describe(d *life.Description) {
	if d == nil {
		return
	}
	p.Title, p.Version, p.Summary, p.BuiltWith = d.Name, d.Version, d.Summary, d.BuiltWith
	if d.Config != nil {
		p.ConfigSchema = d.Config.Text
	}
	for _, o := range d.Owned {
		e := OwnedEvent{Type: o.Type}
		if o.Schema != nil {
			e.Schema = o.Schema.Text
		}
		p.Events = append(p.Events, e)
	}
}

func toolOf(t *life.Tool) PluginTool {
	return PluginTool{Name: t.Name, Description: t.Description, ArgumentSchema: t.ArgumentSchema, ResultSchema: t.ResultSchema, Reads: t.Reads, RetryNever: t.Retry != 0}
}
