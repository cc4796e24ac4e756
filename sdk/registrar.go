package sdk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"

	"github.com/foldhost/foldhost/unit"
)

// Registrar is what a plugin has while it runs: it offers units and tools and takes them back, and has the plugin's log and context.
// Safe for concurrent use, also from goroutines that outlive Configure.
type Registrar struct {
	ctx    context.Context
	cancel context.CancelFunc
	logger hclog.Logger
	digest string
	owned  map[string]*unit.Schema
	busy   sync.WaitGroup

	// mu guards what follows. changed is closed and replaced with each change.
	mu      sync.Mutex
	units   []*Registration
	tools   []*Registration
	stopped bool
	changed chan struct{}
}

func newRegistrar(logger hclog.Logger, digest string, owned map[string]*unit.Schema) *Registrar {
	r := &Registrar{logger: logger, digest: digest, owned: owned, changed: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Context ends when the plugin is asked to stop. In a process of its own it may also be killed without notice.
func (r *Registrar) Context() context.Context { return r.ctx }

// Logger is the plugin's log. In a process of its own it goes to the host's, under the plugin's name.
func (r *Registrar) Logger() hclog.Logger { return r.logger }

// ConfigDigest tells the plugin's config from another one. A unit that is ConfigBound has it as its ConfigDigest.
func (r *Registrar) ConfigDigest() string { return r.digest }

// Go runs f on a goroutine that the plugin waits for when it stops. f returns soon after its context ends. A panic of f ends the
// process, as that of any goroutine does.
func (r *Registrar) Go(f func(context.Context)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	r.busy.Go(func() { f(r.ctx) })
}

// ErrStopped is what registering says after the plugin was asked to stop.
var ErrStopped = errors.New("the plugin is stopping")

// Unit offers a unit until the registration is released. Errors: those of Definition; *unit.DefinitionError where the key is offered
// already; ErrStopped.
func (r *Registrar) Unit(u Unit) (*Registration, error) {
	def, err := u.Definition()
	if err != nil {
		return nil, err
	}
	if def.Inline != nil {
		def.Inline = contain(def.Inline, r.logger.With("unit", def.Key))
	}
	c, err := unit.Compile(def)
	if err != nil {
		return nil, err
	}
	if c.Inline == nil {
		return nil, &unit.DefinitionError{Key: c.Key, Rule: "fold", Reason: "Inline is not set; a plugin has nothing else to fold with"}
	}
	return r.add(&r.units, &Registration{registrar: r, name: c.Key, unit: c}, func() error {
		return &unit.DefinitionError{Key: c.Key, Rule: "key", Reason: "this plugin offers the key already; release that registration first"}
	})
}

// Tool offers a tool until the registration is released. Errors: those of Definition; *unit.ToolError where the name is offered
// already; ErrStopped.
func (r *Registrar) Tool(t AnyTool) (*Registration, error) {
	def, err := t.Definition()
	if err == nil {
		def, err = guardTool(def, r.owned, r.logger.With("tool", def.Name))
	}
	if err != nil {
		return nil, err
	}
	return r.add(&r.tools, &Registration{registrar: r, name: def.Name, tool: &def}, func() error {
		return &unit.ToolError{Name: def.Name, Rule: "name", Reason: "this plugin offers the name already; release that registration first"}
	})
}

func (r *Registrar) add(list *[]*Registration, reg *Registration, taken func() error) (*Registration, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return nil, ErrStopped
	}
	for _, other := range *list {
		if other.name == reg.name {
			return nil, taken()
		}
	}
	*list = append(*list, reg)
	r.change()
	return reg, nil
}

// change wakes those who wait; mu is held.
func (r *Registrar) change() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// Registration is one unit or tool on offer.
type Registration struct {
	registrar *Registrar
	name      string
	unit      *unit.Compiled
	tool      *unit.Tool
}

// Release takes it back: the host forgets the unit's cells, or the tool. More than once is harmless.
func (g *Registration) Release() {
	r := g.registrar
	r.mu.Lock()
	defer r.mu.Unlock()
	list := &r.units
	if g.tool != nil {
		list = &r.tools
	}
	if i := slices.Index(*list, g); i >= 0 {
		*list = slices.Delete(slices.Clone(*list), i, i+1)
		r.change()
	}
}

// offer is what is on offer now, and a channel that is closed when that changes.
func (r *Registrar) offer() (units []*unit.Compiled, tools []unit.Tool, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	units, tools = make([]*unit.Compiled, len(r.units)), make([]unit.Tool, len(r.tools))
	for i, g := range r.units {
		units[i] = g.unit
	}
	for i, g := range r.tools {
		tools[i] = *g.tool
	}
	return units, tools, r.changed
}

// stop ends the context and waits for what Go has started, as long as ctx allows.
func (r *Registrar) stop(ctx context.Context) error {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.cancel()
	done := make(chan struct{})
	go func() {
		r.busy.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the plugin's goroutines: %w", context.Cause(ctx))
	}
}
