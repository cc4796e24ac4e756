package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/foldhost/foldhost/unit"
)

// StartOptions are what a host program gives to a plugin that it runs itself.
type StartOptions struct {
	// Config is JSON; nil is none.
	Config json.RawMessage
	// Logger is the plugin's log; nil discards it.
	Logger hclog.Logger
}

// Start runs the plugin in this process: what Serve does in one of its own. Errors: *ConfigError, or what is wrong with the plugin.
// Nothing runs on after an error. Stop it.
func (p Plugin) Start(o StartOptions) (*Running, error) {
	c, err := p.check()
	if err != nil {
		return nil, err
	}
	return p.start(c, o)
}

func (p *Plugin) start(c *checked, o StartOptions) (*Running, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	config, digest, err := p.Configure.accept(o.Config)
	if err != nil {
		return nil, err
	}
	r := newRegistrar(o.Logger, digest, c.owned)
	if err := p.register(r, config); err != nil {
		r.stopSoon()
		return nil, err
	}
	events := make([]unit.OwnedEvent, len(p.Owns))
	for i, o := range p.Owns {
		events[i] = unit.OwnedEvent{Type: o.Type, Schema: o.Schema}
	}
	return &Running{registrar: r, events: events}, nil
}

// stopTimeout bounds the waiting for goroutines of a plugin that is stopped right after its start. They were just told.
const stopTimeout = time.Second

func (r *Registrar) stopSoon() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := r.stop(ctx); err != nil {
		r.logger.Warn("the plugin stopped with work unfinished", "reason", err.Error())
	}
}

func (p *Plugin) register(r *Registrar, config json.RawMessage) (err error) {
	for _, u := range p.Units {
		if _, err := r.Unit(u); err != nil {
			return err
		}
	}
	for _, t := range p.Tools {
		if _, err := r.Tool(t); err != nil {
			return err
		}
	}
	if p.Configure.start == nil {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			r.logger.Error("Configure panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = fmt.Errorf("the plugin panicked in Configure: %.*s", maxPanicText, fmt.Sprint(v))
		}
	}()
	return p.Configure.start(r, config)
}

// Running is a plugin that runs in this process. Safe for concurrent use.
type Running struct {
	registrar *Registrar
	events    []unit.OwnedEvent
}

// Events are the event types that the plugin owns. They stay the same while it runs.
func (g *Running) Events() []unit.OwnedEvent { return slices.Clone(g.events) }

// Units are those on offer now, with folds that contain their panics.
func (g *Running) Units() []unit.Definition {
	units, _, _ := g.registrar.offer()
	defs := make([]unit.Definition, len(units))
	for i, u := range units {
		defs[i] = u.Definition
	}
	return defs
}

// Tools are those on offer now. They check arguments, results and events, and contain panics.
func (g *Running) Tools() []unit.Tool {
	_, tools, _ := g.registrar.offer()
	return tools
}

// Changed is closed when what is on offer is no longer what it was when Changed was called. Call it before Units and Tools.
func (g *Running) Changed() <-chan struct{} {
	_, _, changed := g.registrar.offer()
	return changed
}

// Stop ends the plugin's context and waits for its goroutines, as long as ctx allows. More than once is harmless.
func (g *Running) Stop(ctx context.Context) error { return g.registrar.stop(ctx) }
