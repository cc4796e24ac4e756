package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// Description is what describe --json prints: the plugin without a host.
type Description struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Summary   string `json:"summary,omitempty"`
	BuiltWith string `json:"builtWith"`
	// Protocols are the protocol versions that it speaks.
	Protocols []int `json:"protocols"`
	// ConfigSchema is absent where no config is taken.
	ConfigSchema json.RawMessage  `json:"configSchema,omitempty"`
	OwnedEvents  []DescribedEvent `json:"ownedEvents"`
	Units        []DescribedUnit  `json:"units"`
	Tools        []DescribedTool  `json:"tools"`
	// NeedsConfig says why the plugin cannot say what it offers without a config. Units and tools are empty then.
	NeedsConfig []ConfigProblem `json:"needsConfig,omitempty"`
}

// DescribedEvent is an event type that the plugin owns.
type DescribedEvent struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

// DescribedUnit is a unit; ViewSchema is absent where it is host-only, Events where it folds every type.
type DescribedUnit struct {
	Key          string          `json:"key"`
	StateVersion int64           `json:"stateVersion"`
	Events       *[]string       `json:"events,omitempty"`
	ConfigBound  bool            `json:"configBound,omitempty"`
	StateSchema  json.RawMessage `json:"stateSchema"`
	ViewSchema   json.RawMessage `json:"viewSchema,omitempty"`
}

// DescribedTool is a tool; ResultSchema is absent where it gives no structured value.
type DescribedTool struct {
	Name           string          `json:"name"`
	Description    string          `json:"description,omitempty"`
	Reads          []string        `json:"reads,omitempty"`
	RetryNever     bool            `json:"retryNever,omitempty"`
	ArgumentSchema json.RawMessage `json:"argumentSchema"`
	ResultSchema   json.RawMessage `json:"resultSchema,omitempty"`
}

// Describe says what the plugin is, and what it offers with a config; nil is none. What is wrong with the config is in NeedsConfig;
// the error is for what is wrong with the plugin itself.
func (p Plugin) Describe(config json.RawMessage) (*Description, error) {
	c, err := p.check()
	if err != nil {
		return nil, err
	}
	d := &Description{
		Name: p.Name, Version: c.version, Summary: p.Summary, BuiltWith: builtWith(), Protocols: pluginproto.Versions(),
		ConfigSchema: p.Configure.schema,
		OwnedEvents:  []DescribedEvent{}, Units: []DescribedUnit{}, Tools: []DescribedTool{},
	}
	for _, o := range p.Owns {
		d.OwnedEvents = append(d.OwnedEvents, DescribedEvent{o.Type, o.Schema})
	}
	running, err := p.start(c, StartOptions{Config: config})
	var refused *ConfigError
	switch {
	case errors.As(err, &refused):
		d.NeedsConfig = refused.Problems
		return d, nil
	case err != nil:
		return nil, err
	}
	defer running.registrar.stopSoon()
	for _, u := range running.Units() {
		du := DescribedUnit{Key: u.Key, StateVersion: u.StateVersion, ConfigBound: u.ConfigBound, StateSchema: u.StateSchema, ViewSchema: u.ViewSchema}
		if u.Events != nil {
			du.Events = &u.Events
		}
		d.Units = append(d.Units, du)
	}
	for _, t := range running.Tools() {
		d.Tools = append(d.Tools, DescribedTool{
			Name: t.Name, Description: t.Description, Reads: t.Reads, RetryNever: t.Retry == unit.RetryNever,
			ArgumentSchema: t.ArgumentSchema, ResultSchema: t.ResultSchema,
		})
	}
	return d, nil
}

// commandLine is a plugin that was started by hand. It returns the exit code.
func commandLine(p Plugin, args []string, stdout, stderr io.Writer) int {
	file := "plugin"
	if len(args) > 0 {
		file, args = args[0], args[1:]
	}
	switch {
	case len(args) == 1 && args[0] == "--version":
		c, err := p.check()
		if err != nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
		fmt.Fprintf(stdout, "%s %s (%s)\n", p.Name, c.version, builtWith())
		return 0
	case len(args) == 2 && args[0] == "describe" && args[1] == "--json":
		d, err := p.Describe(nil)
		if err == nil {
			enc := json.NewEncoder(stdout)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			err = enc.Encode(d)
		}
		if err != nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
		return 0
	}
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
		usage(p, file, stdout)
		return 0
	}
	usage(p, file, stderr)
	return 1
}

// usage says what the program is and how it is run.
func usage(p Plugin, file string, to io.Writer) {
	what := p.Name
	if p.Summary != "" {
		what += ": " + p.Summary
	}
	name := filepath.Base(file)
	fmt.Fprintf(to, `%s

This is a plugin for foldhost. It is started by its host, and does nothing by itself. Put it into the host's plugin directory, or try
it on a recorded session:

  foldhost replay --plugins %s SESSION.jsonl

By itself it answers:

  %s --version
  %s describe --json
`, what, filepath.Dir(file), name, name)
}
