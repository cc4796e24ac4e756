package render

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/discover"
)

// pluginJSON is a plugin as programs read it.
type pluginJSON struct {
	Name         string          `json:"name"`
	Path         string          `json:"path,omitempty"`
	State        string          `json:"state,omitempty"`
	Reason       string          `json:"reason,omitempty"`
	Title        string          `json:"title,omitempty"`
	Version      string          `json:"version,omitempty"`
	Summary      string          `json:"summary,omitempty"`
	BuiltWith    string          `json:"builtWith,omitempty"`
	Digest       string          `json:"sha256,omitempty"`
	Pid          int             `json:"pid,omitempty"`
	Restarts     int             `json:"restarts"`
	LastError    string          `json:"lastError,omitempty"`
	Format       string          `json:"format,omitempty"`
	Protocol     int             `json:"protocol,omitempty"`
	TookMs       *int64          `json:"tookMs,omitempty"`
	ConfigSchema json.RawMessage `json:"configSchema,omitempty"`
	Events       []eventJSON     `json:"ownedEvents,omitempty"`
	Units        []unitJSON      `json:"units,omitempty"`
	Tools        []toolJSON      `json:"tools,omitempty"`
	Presets      []string        `json:"presets,omitempty"`
	PresetOnly   bool            `json:"presetOnly,omitempty"`
	Refused      []string        `json:"refused,omitempty"`
	Warnings     []string        `json:"warnings,omitempty"`
	Stderr       string          `json:"stderr,omitempty"`
	Checks       []checkJSON     `json:"checks,omitempty"`
	OK           *bool           `json:"ok,omitempty"`
}

type eventJSON struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

type unitJSON struct {
	Key          string          `json:"key"`
	StateVersion int64           `json:"stateVersion"`
	Events       *[]string       `json:"events,omitempty"`
	ConfigBound  bool            `json:"configBound,omitempty"`
	StateSchema  json.RawMessage `json:"stateSchema,omitempty"`
	ViewSchema   json.RawMessage `json:"viewSchema,omitempty"`
}

type toolJSON struct {
	Name           string          `json:"name"`
	Description    string          `json:"description,omitempty"`
	Reads          []string        `json:"reads,omitempty"`
	RetryNever     bool            `json:"retryNever,omitempty"`
	ShadowedBy     string          `json:"shadowedBy,omitempty"`
	ArgumentSchema json.RawMessage `json:"argumentSchema,omitempty"`
	ResultSchema   json.RawMessage `json:"resultSchema,omitempty"`
}

type checkJSON struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail,omitempty"`
}

type passedJSON struct {
	Path    string `json:"path"`
	Rule    string `json:"rule"`
	Reason  string `json:"reason"`
	Remedy  string `json:"remedy,omitempty"`
	Refused bool   `json:"refused"`
}

func jsonOf(p *host.Plugin, schemas bool) pluginJSON {
	j := pluginJSON{Name: p.Name, Path: p.Path, State: string(p.State), Reason: p.Reason, Title: p.Title, Version: p.Version, Summary: p.Summary, BuiltWith: p.BuiltWith,
		Digest: p.Digest, Pid: p.Pid, Restarts: p.Restarts, LastError: p.LastError, Warnings: p.Warnings, Presets: p.Presets, PresetOnly: p.PresetOnly}
	for _, e := range p.Events {
		one := eventJSON{Type: e.Type}
		if schemas {
			one.Schema = e.Schema
		}
		j.Events = append(j.Events, one)
	}
	for _, u := range p.Units {
		one := unitJSON{Key: u.Key, StateVersion: u.StateVersion, ConfigBound: u.ConfigBound}
		if u.Events != nil {
			one.Events = &u.Events
		}
		if schemas {
			one.StateSchema, one.ViewSchema = u.StateSchema, u.ViewSchema
		}
		j.Units = append(j.Units, one)
	}
	for _, t := range p.Tools {
		one := toolJSON{Name: t.Name, Description: t.Description, Reads: t.Reads, RetryNever: t.RetryNever, ShadowedBy: t.ShadowedBy}
		if schemas {
			one.ArgumentSchema, one.ResultSchema = t.ArgumentSchema, t.ResultSchema
		}
		j.Tools = append(j.Tools, one)
	}
	for _, r := range p.Refused {
		j.Refused = append(j.Refused, r.String())
	}
	if schemas {
		j.ConfigSchema, j.Stderr = p.ConfigSchema, p.Tail
	}
	return j
}

// Plugins prints a list of plugins, and the files that are none.
func Plugins(w io.Writer, plugins []host.Plugin, passed []discover.Passed, asJSON bool) error {
	if asJSON {
		out := struct {
			Plugins []pluginJSON `json:"plugins"`
			Passed  []passedJSON `json:"passed,omitempty"`
		}{Plugins: []pluginJSON{}}
		for i := range plugins {
			out.Plugins = append(out.Plugins, jsonOf(&plugins[i], false))
		}
		for _, p := range passed {
			out.Passed = append(out.Passed, passedJSON{p.Path, p.Rule, p.Reason, p.Remedy, p.Refused})
		}
		return writeJSON(w, out)
	}
	b := bufio.NewWriter(w)
	if len(plugins) == 0 {
		all := "" // Whoever was told of files of each kind has asked for all.
		if !slices.ContainsFunc(passed, func(p discover.Passed) bool { return !p.Refused }) {
			all = "; --all says of each file there why it is none"
		}
		Printf(b, "There are no plugins. Name their directory with --plugins, or as pluginDir in foldhost.yaml%s.\n", all)
	}
	if err := pluginTable(b, plugins); err != nil {
		return err
	}
	files(b, "Files that are refused:", passed, true)
	files(b, "Files that are no plugins:", passed, false)
	return b.Flush()
}

// ServedPlugins prints the plugins of a server.
func ServedPlugins(w io.Writer, plugins []client.Plugin, asJSON bool) error {
	if asJSON {
		return writeJSON(w, struct {
			Plugins []client.Plugin `json:"plugins"`
		}{plugins})
	}
	b := bufio.NewWriter(w)
	if len(plugins) == 0 {
		Printf(b, "The server has no plugins.\n")
	}
	list := make([]host.Plugin, len(plugins))
	for i := range plugins {
		list[i] = servedPlugin(&plugins[i])
	}
	if err := pluginTable(b, list); err != nil {
		return err
	}
	for i := range plugins {
		for _, text := range plugins[i].Refused {
			Printf(b, "\n%s: refused %s\n", plugins[i].Name, text)
		}
	}
	return b.Flush()
}

// servedPlugin is a plugin of a server as far as a table shows it.
func servedPlugin(p *client.Plugin) host.Plugin {
	l := host.Plugin{Name: p.Name, State: host.PluginState(p.State), Reason: p.Reason, Version: p.Version, Digest: p.SHA256, Presets: p.Presets, PresetOnly: p.PresetOnly, Warnings: p.Warnings}
	for _, u := range p.Units {
		l.Units = append(l.Units, host.PluginUnit{Key: u.Key})
	}
	for _, t := range p.Tools {
		l.Tools = append(l.Tools, host.PluginTool{Name: t.Name, ShadowedBy: t.ShadowedBy})
	}
	return l
}

// pluginTable has a line for each plugin, and below it what is wrong with it.
func pluginTable(b *bufio.Writer, plugins []host.Plugin) error {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	// A column of its own where there are presets.
	sets := slices.ContainsFunc(plugins, func(p host.Plugin) bool { return len(p.Presets) > 0 })
	switch {
	case sets:
		Printf(t, "NAME\tSTATE\tVERSION\tSHA256\tUNITS\tTOOLS\tSETS\n")
	case len(plugins) > 0:
		Printf(t, "NAME\tSTATE\tVERSION\tSHA256\tUNITS\tTOOLS\n")
	}
	for i := range plugins {
		p := &plugins[i]
		var keys, tools []string
		for _, u := range p.Units {
			keys = append(keys, u.Key)
		}
		for _, tool := range p.Tools {
			name := tool.Name
			if tool.ShadowedBy != "" {
				name += " (shadowed by " + tool.ShadowedBy + ")"
			}
			tools = append(tools, name)
		}
		Printf(t, "%s\t%s\t%s\t%s\t%s\t%s", p.Name, p.State, or(p.Version), or(p.Digest[:min(12, len(p.Digest))]), or(strings.Join(keys, ", ")), or(strings.Join(tools, ", ")))
		if sets {
			Printf(t, "\t%s", setsOf(p))
		}
		Printf(t, "\n")
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range plugins {
		p := &plugins[i]
		if p.Reason != "" {
			Printf(b, "\n%s\n", Trouble(p))
		}
		notes(b, p)
	}
	return nil
}

// files lists the passed files that are refused, or those that are not.
func files(w io.Writer, title string, passed []discover.Passed, refused bool) {
	first := true
	for _, p := range passed {
		if p.Refused != refused {
			continue
		}
		if first {
			Printf(w, "\n%s\n", title)
			first = false
		}
		Printf(w, "  %s\n", Passed(p))
	}
}

// setsOf names the sets that a plugin serves.
func setsOf(p *host.Plugin) string {
	sets := p.Presets
	if !p.PresetOnly {
		sets = append([]string{"(default)"}, sets...) // In brackets: a preset may be called default.
	}
	return strings.Join(sets, ", ")
}

// Trouble says in one line what is wrong with a plugin that is not up.
func Trouble(p *host.Plugin) string {
	// Errors of a start name the plugin for those who have nothing else to know it by.
	reason := strings.TrimPrefix(p.Reason, fmt.Sprintf("plugin %q ", p.Name))
	if p.PresetOnly {
		return fmt.Sprintf("%s of preset %s (%s): %s", p.Name, strings.Join(p.Presets, ", "), p.State, reason)
	}
	return fmt.Sprintf("%s (%s): %s", p.Name, p.State, reason)
}

// Passed says in one line why a file is no plugin.
func Passed(p discover.Passed) string {
	text := p.Path + ": " + p.Reason
	if p.Remedy != "" && p.Refused {
		text += "; " + p.Remedy
	}
	return text
}

func notes(w io.Writer, p *host.Plugin) {
	for _, r := range p.Refused {
		Printf(w, "\n%s: refused %v\n", p.Name, r)
	}
	for _, text := range p.Warnings {
		Printf(w, "\n%s: warning: %s\n", p.Name, text)
	}
}

// Inspection prints everything about one plugin.
func Inspection(w io.Writer, in *host.Inspection, asJSON bool) error {
	if asJSON {
		return writeJSON(w, inspectionJSON(in))
	}
	b := bufio.NewWriter(w)
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fact := func(name, value string) {
		if value != "" {
			Printf(t, "%s\t%s\n", name, value)
		}
	}
	fact("name", in.Name)
	if in.Title != in.Name {
		fact("calls itself", in.Title)
	}
	fact("version", in.Version)
	fact("summary", in.Summary)
	fact("built with", in.BuiltWith)
	fact("file", in.Path)
	fact("format", in.Format)
	fact("sha256", in.Digest)
	if in.Protocol > 0 {
		fact("protocol", fmt.Sprintf("version %d", in.Protocol))
		fact("started in", in.Took.Round(time.Millisecond).String())
	}
	fact("config", string(in.ConfigSchema))
	if err := t.Flush(); err != nil {
		return err
	}
	for _, e := range in.Events {
		Printf(b, "\nowns %s\n  data %s\n", e.Type, or(string(e.Schema)))
	}
	for _, u := range in.Units {
		folds := "every event"
		if u.Events != nil {
			folds = or(strings.Join(u.Events, ", "))
		}
		Printf(b, "\nunit %s, version %d\n  folds %s\n  state %s\n  view  %s\n", u.Key, u.StateVersion, folds, u.StateSchema, or(string(u.ViewSchema)))
	}
	for _, tool := range in.Tools {
		Printf(b, "\ntool %s\n  %s\n  arguments %s\n  result    %s\n", tool.Name, tool.Description, tool.ArgumentSchema, or(string(tool.ResultSchema)))
	}
	notes(b, &in.Plugin)
	if in.Tail != "" {
		Printf(b, "\nIt wrote to stderr:\n")
		Block(b, strings.TrimRight(in.Tail, "\n"))
	}
	return b.Flush()
}

func inspectionJSON(in *host.Inspection) pluginJSON {
	j := jsonOf(&in.Plugin, true)
	j.State, j.Format, j.Protocol = "", in.Format, in.Protocol
	if in.Protocol > 0 {
		ms := in.Took.Milliseconds()
		j.TookMs = &ms
	}
	return j
}

// Report prints what Validate found.
func Report(w io.Writer, r *host.Report, asJSON bool) error {
	if asJSON {
		j, ok := inspectionJSON(r.Inspection), r.OK()
		j.OK = &ok
		for _, c := range r.Checks {
			j.Checks = append(j.Checks, checkJSON(c))
		}
		return writeJSON(w, j)
	}
	verdict := "would load"
	if r.Err != nil {
		verdict = "would not load"
	} else if !r.OK() {
		verdict = "would load, and breaks rules"
	}
	b := bufio.NewWriter(w)
	Printf(b, "%s: %s\n", r.Path, verdict)
	for _, c := range r.Checks {
		mark := map[string]string{"ok": "✓", "failed": "✗", "skipped": "·"}[c.State]
		Printf(b, "  %s %-9s %s\n", mark, c.Name, c.Detail)
	}
	for _, text := range r.Warnings {
		Printf(b, "  ! warning   %s\n", text)
	}
	return b.Flush()
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func or(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
