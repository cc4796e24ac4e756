package registry

import (
	"slices"

	"github.com/foldhost/foldhost/unit"
)

// Registrant is who registers: a plugin with one config. Variant is the config's digest, or empty.
type Registrant struct{ Plugin, Variant string }

// Registration is one reference to a key. Its methods may be called concurrently.
type Registration struct {
	r *Registry
	// b is the definition that stands; nil once released. Guarded by Registry.mu.
	b *binding
}

// Register adds a definition. Registrations of one key and one stateVersion share it, whoever makes them; the key lives until the
// last is released. Variants of one plugin share nothing and may differ in their versions. A definition with an Instance is served by it at once; Suspend says otherwise.
// Errors: *unit.DefinitionError, *VersionConflictError, ErrClosed.
func (r *Registry) Register(by Registrant, def unit.Definition) (*Registration, error) {
	compiled, err := unit.Compile(def)
	if err != nil {
		return nil, err
	}
	g := &Registration{r: r}
	r.mu.Lock()
	if err := r.admitLocked(by, compiled, nil); err != nil {
		r.mu.Unlock()
		return nil, err
	}
	first := len(r.units[def.Key]) == 0
	g.b = r.bindLocked(by, compiled)
	r.units[def.Key] = append(r.units[def.Key], g.b)
	did := r.replanLocked()
	if first || did.gained {
		r.feed.post(&post{change: Change{Kind: KindUnitAdded, Key: def.Key, Seq: -1, Rev: g.b.revision()}})
	}
	r.mu.Unlock()
	if did.moved() {
		r.follow()
	}
	return g, nil
}

// Replace moves a registration to another definition of the same key, whatever its version, cell by cell, each once the new cell has
// reached the last seq published for that key; until then the old value is served. It returns before that.
// Errors: *unit.DefinitionError, *VersionConflictError when somebody else holds the old version and the new one differs, ErrReleased.
func (r *Registry) Replace(reg *Registration, def unit.Definition) error {
	compiled, err := unit.Compile(def)
	if err != nil {
		return err
	}
	r.mu.Lock()
	old := reg.b
	if old == nil {
		r.mu.Unlock()
		return ErrReleased
	}
	if old.Key != compiled.Key {
		r.mu.Unlock()
		return &unit.DefinitionError{Key: compiled.Key, Rule: "key", Reason: "the registration is of key " + old.Key + "; register the other key on its own"}
	}
	if err := r.admitLocked(old.by, compiled, old); err != nil {
		r.mu.Unlock()
		return err
	}
	reg.b = r.bindLocked(old.by, compiled)
	bs := slices.Clone(r.units[old.Key])
	bs[slices.Index(bs, old)] = reg.b
	r.units[old.Key] = bs
	r.retireLocked(old)
	r.replanLocked()
	r.feed.post(&post{change: Change{Kind: KindUnitReplaced, Key: old.Key, Seq: -1, Rev: reg.b.revision()}})
	r.mu.Unlock()
	r.follow()
	return nil
}

// Release gives the reference back; more than once is harmless. With the last one the key and its cells are gone.
func (g *Registration) Release() {
	r := g.r
	r.mu.Lock()
	b := g.b
	if b == nil {
		r.mu.Unlock()
		return
	}
	g.b = nil
	bs := slices.DeleteFunc(slices.Clone(r.units[b.Key]), func(o *binding) bool { return o == b })
	r.units[b.Key] = bs
	if len(bs) == 0 {
		delete(r.units, b.Key)
	}
	r.retireLocked(b)
	if did := r.replanLocked(); len(bs) == 0 || did.lost {
		r.feed.post(&post{change: Change{Kind: KindUnitRemoved, Key: b.Key, Seq: -1, Rev: r.revs.Add(1)}})
	}
	r.mu.Unlock()
	r.follow()
}

// Suspend says that the instance cannot be asked now: code is starting, restarting or parked. Values that are current stay so;
// what trails is waited for only while starting. restarting and parked also mean that the process is gone: every batch in flight
// is one that it did not survive. Inline registrations and released ones are left alone.
func (g *Registration) Suspend(code UnavailableCode, message string) {
	b := g.binding()
	if b == nil || b.inline() {
		return
	}
	b.mu.Lock()
	p := b.proc
	b.down = &Unavailable{Code: code, Message: message}
	b.mu.Unlock()
	if code != Starting {
		p.die(code, message)
	}
	g.r.changed(b)
}

// Resume says that this instance serves from now on: the first, or the one after a crash, or the successor of a live one. What the
// one before it still says is dropped; calls for one registrant come in the order of its processes. Cells are opened in it from their last
// rows and folded up to what was published. The successor of a live one may be another program, so it is given the faulted cells as well;
// after a crash they stay faulted until somebody asks, see Session.Retry. Inline registrations and released ones are left alone.
func (g *Registration) Resume(in unit.Instance) {
	r := g.r
	r.mu.Lock()
	b := g.b
	if b == nil || b.inline() || in == nil {
		r.mu.Unlock()
		return
	}
	p := r.processLocked(b.by, in)
	b.mu.Lock()
	before, down := b.proc, b.down
	b.proc, b.down = p, nil
	b.mu.Unlock()
	r.unbindLocked(before)
	r.mu.Unlock()
	if p != before && down == nil && before.death() == nil {
		r.poison.retire(b)
		r.each(func(s *Session) { s.succeeded(b) })
	}
	r.changed(b)
}

func (g *Registration) binding() *binding {
	g.r.mu.Lock()
	defer g.r.mu.Unlock()
	return g.b
}

// admitLocked refuses a version that differs from one that somebody else than except holds. Variants of one plugin may differ: they are never in
// one set, and while the plugin is upgraded one of them is ahead of the others. r.mu is held.
func (r *Registry) admitLocked(by Registrant, c *unit.Compiled, except *binding) error {
	if r.closed {
		return ErrClosed
	}
	for _, b := range r.units[c.Key] {
		variants := b.by.Plugin == by.Plugin && b.by.Variant != by.Variant
		if b != except && !variants && b.StateVersion != c.StateVersion {
			return &VersionConflictError{Key: c.Key, Have: b.StateVersion, Want: c.StateVersion, By: b.by}
		}
	}
	return nil
}

func (r *Registry) bindLocked(by Registrant, c *unit.Compiled) *binding {
	b := &binding{Compiled: c, by: by, rev: r.revs.Add(1), counts: r.countLocked(countKey{by.Plugin, c.Key})}
	if c.Instance != nil {
		b.proc = r.processLocked(by, c.Instance)
	}
	return b
}

// retireLocked forgets what is kept for a binding that nobody registers any more. Cells that still serve by it until their successors can
// go on. r.mu is held.
func (r *Registry) retireLocked(b *binding) {
	p, _ := b.process()
	r.unbindLocked(p)
	r.uncountLocked(b)
	r.poison.retire(b)
}

// changed lets every session that computes with the binding look again at who serves it. No lock is held.
func (r *Registry) changed(b *binding) { r.each(func(s *Session) { s.changed(b) }) }
