package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/foldhost/foldhost/event"
)

// ToolResult is what a tool says.
type ToolResult struct {
	Content []ToolContent `json:"content"`
	// Value is what it gives to programs, nil where there is none.
	Value json.RawMessage `json:"value,omitempty"`
	// IsError says that the arguments are wrong, or that the tool refuses: a model can put it right; or, of a Tool with RetryNever, that it is not known whether it was done. Nothing was appended then.
	IsError bool `json:"isError"`
	// Events are where those stand that it appended.
	Events []Place `json:"events"`
}

// ToolContent is a part of it. Type is "text".
type ToolContent struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// CallTool runs a tool for a session. arguments are as the Data of an Item. A Tool with RetryNever is asked once, however often the request has to be sent, unless Once.NoKey is set.
// After CodePluginUnavailable no tool is asked again: it may have begun before its plugin ended, and what it does besides its answer may not bear being done twice.
func (c *Client) CallTool(ctx context.Context, id, tool string, arguments any, o Once) (t ToolResult, err error) {
	doing := fmt.Sprintf("call tool %q for session %q", tool, id)
	name, err := segment(doing, tool)
	if err != nil {
		return t, err
	}
	path, err := sessionPath(doing, id, "/tools/"+name)
	if err != nil {
		return t, err
	}
	r := post(doing, path, nil)
	text, err := event.Encode(arguments)
	if err != nil {
		return t, fmt.Errorf("%s: %w", r.doing, err)
	}
	var f fields
	f.raw("arguments", text)
	r.body = f.body()
	r.once(o)
	r.final = CodePluginUnavailable // The tool may have been at work when its plugin ended: asked again, it would be at work once more.
	_, err = c.json(ctx, r, &t)
	return t, err
}

// Tool is one that can be called.
type Tool struct {
	Name        string `json:"name"`
	Plugin      string `json:"plugin"`
	Description string `json:"description"`
	// Reads are the keys that it sees, of its plugin.
	Reads []string `json:"reads,omitempty"`
	// RetryNever says that a call whose values were overtaken is not repeated, and that the tool runs once at most for one Once.Key.
	RetryNever     bool            `json:"retryNever,omitempty"`
	ArgumentSchema json.RawMessage `json:"argumentSchema"`
	ResultSchema   json.RawMessage `json:"resultSchema,omitempty"`
}

// Tools lists the tools that sessions without a preset can call, by name.
func (c *Client) Tools(ctx context.Context) ([]Tool, error) { return c.PresetTools(ctx, "") }

// PresetTools lists the tools that sessions of a preset can call; empty is the default set. One that there is not is a preset-unknown, as of the other lists.
func (c *Client) PresetTools(ctx context.Context, preset string) ([]Tool, error) {
	var in struct {
		Tools []Tool `json:"tools"`
	}
	_, err := c.json(ctx, ofPreset("list tools", "/v1/tools", preset), &in)
	return in.Tools, err
}

// ofPreset asks for a list of a set.
func ofPreset(doing, path, preset string) *request {
	if preset != "" {
		doing = fmt.Sprintf("%s of preset %q", doing, preset)
	}
	r := get(doing, path)
	if preset != "" {
		r.set("preset", preset)
	}
	return r
}

// Offer is a key that there is, and who computes it.
type Offer struct {
	Key          string `json:"key"`
	Plugin       string `json:"plugin"`
	StateVersion int64  `json:"stateVersion"`
	// Events are the types that it folds; nil is all.
	Events     []string        `json:"events,omitempty"`
	ViewSchema json.RawMessage `json:"viewSchema"`
}

// Offers lists the keys that sessions without a preset have values of.
func (c *Client) Offers(ctx context.Context) ([]Offer, error) { return c.PresetOffers(ctx, "") }

// PresetOffers lists the keys that sessions of a preset have values of; empty is the default set.
func (c *Client) PresetOffers(ctx context.Context, preset string) ([]Offer, error) {
	var in struct {
		Projections []Offer `json:"projections"`
	}
	_, err := c.json(ctx, ofPreset("list projections", "/v1/projections", preset), &in)
	return in.Projections, err
}

// Plugin is a plugin of the server at one time. Times are in milliseconds since the epoch, 0 where there is none.
type Plugin struct {
	Name string `json:"name"`
	Path string `json:"path,omitempty"`
	// State is one of docs/plugins.md; Since when, and Until when, if it is known. Reason says why it does not serve.
	State  string `json:"state"`
	Since  int64  `json:"since,omitempty"`
	Until  int64  `json:"until,omitempty"`
	Reason string `json:"reason,omitempty"`
	// What it says about itself, and of its file.
	Title     string `json:"title,omitempty"`
	Version   string `json:"version,omitempty"`
	Summary   string `json:"summary,omitempty"`
	BuiltWith string `json:"builtWith,omitempty"`
	SHA256    string `json:"sha256,omitempty"`
	// PID is 0 without a process, Restarts counts those after the first.
	PID         int64         `json:"pid,omitempty"`
	Restarts    int64         `json:"restarts"`
	LastError   string        `json:"lastError,omitempty"`
	OwnedEvents []PluginEvent `json:"ownedEvents,omitempty"`
	Units       []PluginUnit  `json:"units,omitempty"`
	Tools       []PluginTool  `json:"tools,omitempty"`
	// Presets are those that this process serves. PresetOnly says that it does not serve sessions without one: for those the plugin has another config.
	Presets    []string `json:"presets,omitempty"`
	PresetOnly bool     `json:"presetOnly,omitempty"`
	// Refused is what it offered and did not get, Warnings what an operator should change.
	Refused  []string `json:"refused,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// PluginEvent is an event type that a plugin owns.
type PluginEvent struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

// PluginUnit is a unit of a plugin. Events are the types that it folds; nil is all.
type PluginUnit struct {
	Key          string   `json:"key"`
	StateVersion int64    `json:"stateVersion"`
	Events       []string `json:"events,omitempty"`
	ConfigBound  bool     `json:"configBound,omitempty"`
	HostOnly     bool     `json:"hostOnly,omitempty"`
}

// PluginTool is a tool of a plugin. ShadowedBy is the plugin that has one of the name and is asked instead.
type PluginTool struct {
	Name       string `json:"name"`
	ShadowedBy string `json:"shadowedBy,omitempty"`
}

// Plugins lists the plugins of the default set, by name.
func (c *Client) Plugins(ctx context.Context) ([]Plugin, error) { return c.PresetPlugins(ctx, "") }

// PresetPlugins lists the plugins of a preset, as they are with the config that it gives them; empty is the default set.
func (c *Client) PresetPlugins(ctx context.Context, preset string) ([]Plugin, error) {
	var in struct {
		Plugins []Plugin `json:"plugins"`
	}
	_, err := c.json(ctx, ofPreset("list plugins", "/v1/plugins", preset), &in)
	return in.Plugins, err
}

// RestartPlugin brings up a new process of a plugin, which takes over without a gap. It is not waited for. A plugin that has several configs gets one for each; what
// is given is that of the default set.
func (c *Client) RestartPlugin(ctx context.Context, name string) (p Plugin, err error) {
	doing := fmt.Sprintf("restart plugin %q", name)
	at, err := segment(doing, name)
	if err != nil {
		return p, err
	}
	r := post(doing, "/v1/plugins/"+at+"/restart", nil)
	_, err = c.json(ctx, r, &p)
	return p, err
}
