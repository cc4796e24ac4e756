package serve

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/go-hclog"

	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// Plugin is what is served.
type Plugin struct {
	Name, Version, Summary, BuiltWith string
	// ConfigSchema is nil where no config is taken.
	ConfigSchema json.RawMessage
	Owned        []Owned
	// Start takes the config and begins. It is called once. Without problems there is an instance.
	Start func(config json.RawMessage, logger hclog.Logger) (Instance, []Problem)
}

// Owned is an event type of the plugin, with the schema of its data; nil allows any.
type Owned struct {
	Type   string
	Schema json.RawMessage
}

// Problem is one thing that is wrong with a config.
type Problem struct{ Path, Message string }

// Instance is a plugin with its config. Safe for concurrent use.
type Instance interface {
	// Offer is what is on offer now; changed is closed when that is no longer so. The folds and tools contain their panics.
	Offer() (units []*unit.Compiled, tools []unit.Tool, changed <-chan struct{})
	// Stop ends it and waits for its goroutines, as long as ctx allows.
	Stop(ctx context.Context) error
}

// describe is the answer to Describe.
func (p *Plugin) describe() *pluginproto.DescribeResponse {
	m := &pluginproto.DescribeResponse{
		Name: p.Name, Version: p.Version, Summary: p.Summary, BuiltWith: p.BuiltWith,
		ConfigSchema: p.ConfigSchema,
	}
	for _, o := range p.Owned {
		m.OwnedEvents = append(m.OwnedEvents, &pluginproto.OwnedEvent{Type: o.Type, DataSchema: o.Schema})
	}
	return m
}
