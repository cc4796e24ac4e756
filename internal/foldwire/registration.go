package foldwire

import (
	"fmt"

	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// Unit makes the message of a definition: all of it but the fold and the config's digest.
func Unit(d *unit.Definition) *pluginproto.Unit {
	m := &pluginproto.Unit{
		Key:          d.Key,
		StateVersion: d.StateVersion,
		StateSchema:  d.StateSchema,
		ViewSchema:   d.ViewSchema,
		ConfigBound:  d.ConfigBound,
	}
	if d.Events != nil {
		m.EventTypes = &pluginproto.EventTypes{Types: d.Events}
	}
	return m
}

// ReadUnit reads the message of a unit. Its fields are judged by unit.Compile; only what Go could not express is refused here, with a
// *ProtocolError. The fold and the config's digest are the caller's to set.
func ReadUnit(m *pluginproto.Unit) (unit.Definition, error) {
	if m == nil {
		return unit.Definition{}, &ProtocolError{"RegistrationSet", "units", "holds a null"}
	}
	if !inRange(m.StateVersion, 0) {
		return unit.Definition{}, &ProtocolError{"Unit", "state_version", fmt.Sprintf("of unit %q: %s", text(m.Key), notASeq(m.StateVersion, 0))}
	}
	d := unit.Definition{Key: m.Key, StateVersion: m.StateVersion, ConfigBound: m.ConfigBound}
	if len(m.StateSchema) > 0 {
		d.StateSchema = m.StateSchema
	}
	if len(m.ViewSchema) > 0 {
		d.ViewSchema = m.ViewSchema
	}
	if m.EventTypes != nil {
		d.Events = m.EventTypes.Types
		if d.Events == nil {
			d.Events = []string{}
		}
	}
	return d, nil
}
