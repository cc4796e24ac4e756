package supervise

import (
	"errors"
	"slices"
	"strings"

	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/unit"
)

// register brings the registrations in line with what a process offers. arrives says that it is a process that has not served yet. What the
// registry refuses is named; the rest serves.
func (p *Plugin) register(l *life.Life, set *life.Set, arrives bool) {
	refused := slices.Clone(set.Refused)
	offered := map[string]bool{}
	for _, def := range set.Units {
		offered[def.Key] = true
	}
	p.offer, p.conflicted = set, false
	released := false
	for key, r := range p.regs {
		if !offered[key] {
			r.Release()
			delete(p.regs, key)
			released = true
		}
	}
	if released {
		p.d.Released()
	}
	var units []Unit
	for _, def := range set.Units {
		if err := p.registerOne(def, arrives); err != nil {
			refused = append(refused, life.Refusal{What: "unit", Name: def.Key, Err: err})
			var conflict *registry.VersionConflictError
			p.conflicted = p.conflicted || errors.As(err, &conflict)
			p.d.Logger.Error("a plugin's unit is refused; its others serve", "plugin", p.spec.Plugin, "unit", def.Key, "error", err)
			continue
		}
		c := p.regs[def.Key].unit
		units = append(units, Unit{Key: c.Key, StateVersion: c.StateVersion, Events: c.Events, StateSchema: c.StateSchema, ViewSchema: c.ViewSchema,
			ConfigBound: c.ConfigBound})
	}
	slices.SortFunc(units, func(a, b Unit) int { return strings.Compare(a.Key, b.Key) })
	for _, r := range set.Refused {
		p.d.Logger.Error("something that a plugin offers is refused; the rest serves", "plugin", p.spec.Plugin, "what", r.What, "name", r.Name, "error", r.Err)
	}
	p.mu.Lock()
	p.status.Units, p.status.Tools, p.status.Refused = units, set.Tools, refused
	p.mu.Unlock()
	if !arrives {
		p.d.Changed()
	}
}

func (p *Plugin) registerOne(def unit.Definition, arrives bool) error {
	c, err := unit.Compile(def)
	if err != nil {
		return err
	}
	r := p.regs[def.Key]
	switch {
	case r == nil:
		reg, err := p.d.Registry.Register(p.by, def)
		if err != nil {
			return err
		}
		p.regs[def.Key] = &registration{reg, c}
		return nil
	case r.unit.StateVersion == c.StateVersion && r.unit.Digest == c.Digest && r.unit.HostOnly() == c.HostOnly():
		if arrives {
			r.unit = c
			r.Resume(def.Instance)
		}
		return nil
	}
	if err := p.d.Registry.Replace(r.Registration, def); err != nil {
		// The process that computed the old one is gone, or offers it no more.
		r.Release()
		delete(p.regs, def.Key)
		return err
	}
	r.unit = c
	return nil
}
