package sdk

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/foldhost/foldhost/unit"
)

// Unit is what a plugin offers under a key: a ProjectionDefinition, or a Raw.
type Unit interface {
	// Definition checks the unit and returns it as the host takes it.
	Definition() (unit.Definition, error)
}

// Raw is a unit that was written against the host's own contract, without the SDK.
type Raw unit.Definition

// Definition checks the unit and returns it as it is.
func (r Raw) Definition() (unit.Definition, error) {
	d := unit.Definition(r)
	if _, err := unit.Compile(d); err != nil {
		return unit.Definition{}, err
	}
	return d, nil
}

// ProjectionDefinition is one unit in its author's eyes: State is what is kept, View what clients see.
type ProjectionDefinition[State, View any] struct {
	// Key names the unit: 1 to 64 characters out of [A-Za-z0-9._/-].
	Key string
	// StateVersion is ≥ 0. Raise it when the state's shape or the fold's meaning changes: stored states of another version are
	// not used, the log is folded again.
	StateVersion int64
	// Init gives the state of the empty log; nil gives the zero State.
	Init func() State
	// On are the handlers by event type. Types without one cost the unit nothing.
	On Handlers[State]
	// OnAny handles every type that On does not name; nil handles none. A unit that has it is sent every event.
	OnAny Handler[State]
	// View makes the client value. It reads the state, and what never changes while the process lives. It is called from several
	// goroutines, for different states.
	View func(State) View
	// HostOnly says that the unit has no client value, and so no View: it is kept and never served.
	HostOnly bool
	// ConfigBound says that the fold depends on the plugin's config, and ConfigDigest tells one config from another.
	ConfigBound  bool
	ConfigDigest string
	// StateSchema and ViewSchema are JSON Schemas (2020-12) written by hand; nil makes them of the Go types.
	StateSchema, ViewSchema json.RawMessage
}

// Same is the View of a unit whose clients see the state itself.
func Same[State any](s State) State { return s }

// Definition checks the unit and returns it as the host takes it. It runs Init and View and holds what they give against the
// schemas, so that a mistake in a type is found at start. Errors: *SchemaError, *unit.DefinitionError, *unit.ValueError, or an
// error of Init or View.
func (d ProjectionDefinition[State, View]) Definition() (unit.Definition, error) {
	none := unit.Definition{}
	if d.HostOnly != (d.View == nil) {
		reason := "there is no View; write one (sdk.Same shows the state), or say HostOnly"
		if d.HostOnly {
			reason = "it is HostOnly and has a View; drop one of the two"
		}
		return none, &unit.DefinitionError{Key: d.Key, Rule: "fold", Reason: reason}
	}
	for typ, h := range d.On {
		if h.apply == nil {
			return none, &unit.DefinitionError{Key: d.Key, Rule: "fold", Reason: fmt.Sprintf("the handler of %q is empty; make it with sdk.On, sdk.OnEvent or sdk.OnRaw", typ)}
		}
	}
	def := unit.Definition{
		Key: d.Key, StateVersion: d.StateVersion,
		StateSchema: d.StateSchema, ViewSchema: d.ViewSchema,
		Events:      d.events(),
		ConfigBound: d.ConfigBound, ConfigDigest: d.ConfigDigest,
		Inline: newFold(d),
	}
	var err error
	if def.StateSchema == nil {
		if def.StateSchema, err = schemaOf[State](d.Key, "State"); err != nil {
			return none, err
		}
	}
	if def.ViewSchema == nil && !d.HostOnly {
		if def.ViewSchema, err = schemaOf[View](d.Key, "View"); err != nil {
			return none, err
		}
	}
	c, err := unit.Compile(def)
	if err != nil {
		return none, err
	}
	if err := tryInit(c); err != nil {
		return none, fmt.Errorf("unit %q: the empty log: %w", d.Key, err)
	}
	return def, nil
}

// events are the types that have a handler, sorted; nil where every type has one.
func (d ProjectionDefinition[State, View]) events() []string {
	if d.OnAny.apply != nil {
		return nil
	}
	types := make([]string, 0, len(d.On))
	for typ := range d.On {
		types = append(types, typ)
	}
	slices.Sort(types)
	return types
}

// tryInit holds the state and the view of the empty log against the schemas, also after a way through JSON.
func tryInit(c *unit.Compiled) error {
	s, err := c.Inline.Init()
	if err != nil {
		return err
	}
	raw, err := c.Inline.Encode(s)
	if err != nil {
		return err
	}
	if err := c.CheckState(raw, 0); err != nil {
		return err
	}
	if _, err := c.Inline.Decode(raw); err != nil {
		return err
	}
	if c.HostOnly() {
		return nil
	}
	view, err := c.Inline.View(s)
	if err != nil {
		return err
	}
	return c.CheckView(view, 0)
}
