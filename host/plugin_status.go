package host

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
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
	// Presets are those that it serves, sorted; PresetOnly says that it does not serve the default set. A plugin with another config in a preset is listed once more,
	// with the process that has that config.
	Presets    []string
	PresetOnly bool
	// Restarts counts processes after the first, LastError is the last failure of any of them, Tail the end of what it wrote to stderr, at most 64 KiB.
	Restarts        int
	LastError, Tail string
	// Digest is the SHA-256 in hex of the file that the process was started from, or without a process of the one that is there; empty where it could not be read.
	Digest string
	// What it says about itself, once it was asked.
	Title, Version, Summary, BuiltWith string
	ConfigSchema                       json.RawMessage
	Events                             []OwnedEvent
	Units                              []PluginUnit
	Tools                              []PluginTool
	// Refused is what it offered and did not get; Warnings are what an operator should change, such as what kept a new process from coming up.
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
	// RetryNever says that a call whose values were overtaken is not repeated, and that the tool is asked once for a key.
	RetryNever bool
	ShadowedBy string
}

// RefusedOffer is something that a plugin offered and did not get. What is "unit", "tool" or "event type".
type RefusedOffer struct {
	What, Name string
	Err        error
}

func (r RefusedOffer) String() string { return fmt.Sprintf("%s %q: %v", r.What, r.Name, r.Err) }

// Plugins lists every plugin of every set, those that are disabled or missing or run in this process included, sorted by name. One that has several configs is
// listed with each, that of the default set first. It hashes files that were not hashed yet, until ctx ends.
func (h *Host) Plugins(ctx context.Context) []Plugin {
	return h.allPlugins(func(one *instance, set string) Plugin { return h.plugins.listed(ctx, one, set) })
}

// PluginStates are Plugins without what costs: neither Digest, for which files are read, nor Tail of a process that lives. Anybody may ask for it as often as they like.
func (h *Host) PluginStates() []Plugin {
	return h.allPlugins(func(one *instance, set string) Plugin { return h.plugins.placed(one, one.Facts(), set) })
}

func (h *Host) allPlugins(listed func(one *instance, set string) Plugin) []Plugin {
	all := h.setPlugins("", listed)
	for _, one := range h.plugins.list {
		if !one.standard {
			all = append(all, listed(one, one.presets[0]))
		}
	}
	residents := h.plugins.residents()
	for _, preset := range h.plugins.presets {
		all = append(all, preset.lacking(residents)...)
	}
	sortPlugins(all)
	return all
}

// PresetPlugins is Plugins for one set: with the config that each has there. Empty is the default set. The error is an *UnknownPresetError.
func (h *Host) PresetPlugins(ctx context.Context, preset string) ([]Plugin, error) {
	if err := h.CheckPreset(preset); err != nil {
		return nil, err
	}
	all := h.setPlugins(h.plugins.set(preset), func(one *instance, set string) Plugin { return h.plugins.listed(ctx, one, set) })
	sortPlugins(all)
	return all, nil
}

// setPlugins are those of one set, in no order.
func (h *Host) setPlugins(set string, listed func(one *instance, set string) Plugin) (all []Plugin) {
	residents := h.plugins.residents()
	preset := h.plugins.presets[set]
	if preset == nil {
		all = slices.Clone(h.plugins.idle)
	} else {
		all = preset.lacking(residents)
	}
	for _, one := range h.plugins.list {
		if one.serves(set) {
			all = append(all, listed(one, set))
		}
	}
	for _, s := range residents {
		if preset == nil || preset.has(s.Name) {
			p := pluginOf(s, h.plugins.tables.Load().of(set))
			for name, other := range h.plugins.presets {
				if other.has(s.Name) {
					p.Presets = append(p.Presets, name)
				}
			}
			slices.Sort(p.Presets)
			all = append(all, p)
		}
	}
	return all
}

// listed is an instance as it stands in a set, with all that is known of it.
func (p *plugins) listed(ctx context.Context, one *instance, set string) Plugin {
	l := p.placed(one, one.Status(), set)
	l.Digest, _ = one.Digest(ctx)
	return l
}

// placed is an instance of that status in a set.
func (p *plugins) placed(one *instance, s supervise.Status, set string) Plugin {
	l := pluginOf(s, p.tables.Load().of(set))
	l.Warnings = p.warnings[l.Name]
	if s.Successor != "" {
		// Errors of a start name the plugin, as the list does.
		l.Warnings = append(slices.Clip(l.Warnings), "its new process did not come up, and the one before serves on: "+strings.TrimPrefix(s.Successor, fmt.Sprintf("plugin %q ", l.Name)))
	}
	l.Presets, l.PresetOnly = one.presets, !one.standard
	return l
}

// lacking are the plugins that a preset names and does not have, with those that run in this process as they are.
func (p *preset) lacking(residents []supervise.Status) []Plugin {
	return slices.DeleteFunc(slices.Clone(p.missing), func(m Plugin) bool {
		return p.has(m.Name) && slices.ContainsFunc(residents, func(s supervise.Status) bool { return s.Name == m.Name })
	})
}

func sortPlugins(all []Plugin) {
	slices.SortStableFunc(all, func(a, b Plugin) int {
		order := func(p *Plugin) string {
			if !p.PresetOnly {
				return ""
			}
			return presetsText(p.Presets)
		}
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(order(&a), order(&b)))
	})
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
// once, and its failures are forgotten. One that has several configs gets a new process for each. It does not wait. The error is *UnknownPluginError.
func (h *Host) RestartPlugin(name string) error {
	all := h.plugins.find(name)
	if len(all) == 0 {
		return &UnknownPluginError{name}
	}
	for _, one := range all {
		one.Restart()
	}
	return nil
}

// StopPlugin stops a plugin for good, in every set: its units are released, so that the next plugin by name takes over those that it has as well, and its
// process is asked to end, or killed when ctx ends. Its event types stay guarded. Errors: *UnknownPluginError, that of ctx.
func (h *Host) StopPlugin(ctx context.Context, name string) error {
	all := h.plugins.find(name)
	if len(all) == 0 {
		return &UnknownPluginError{name}
	}
	var stops sync.WaitGroup
	for _, one := range all {
		stops.Go(func() { one.Stop(ctx) })
	}
	stops.Wait()
	return ctx.Err()
}

// pluginOf is a plugin as it stands in a set.
func pluginOf(s supervise.Status, in *table) Plugin {
	p := Plugin{Name: s.Name, Path: s.Path, State: PluginState(s.State), Since: s.Since, Until: s.Until, Reason: s.Reason, Pid: s.Pid, Restarts: s.Restarts,
		LastError: s.LastError, Tail: s.Tail}
	p.describe(s.Description)
	for _, u := range s.Units {
		p.Units = append(p.Units, PluginUnit{Key: u.Key, StateVersion: u.StateVersion, Events: u.Events, StateSchema: u.StateSchema, ViewSchema: u.ViewSchema, ConfigBound: u.ConfigBound})
	}
	for i := range s.Tools {
		t := toolOf(&s.Tools[i])
		if first := in.tools.find(t.Name); first != nil && first.plugin != s.Name {
			t.ShadowedBy = first.plugin
		}
		p.Tools = append(p.Tools, t)
	}
	for _, r := range slices.Concat(s.Refused, in.owners.refused[s.Name]) {
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
