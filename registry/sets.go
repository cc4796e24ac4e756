package registry

import (
	"slices"
	"sync/atomic"
)

// set is a set of registrants: one that was given members, or the one that all other names share. members is guarded by
// Registry.mu; plan is swapped whole and read without a lock.
type set struct {
	// declared is false for the set of the names that were never given members: every registrant with an empty variant.
	declared bool
	members  []Registrant
	plan     atomic.Pointer[plan]
}

func (t *set) member(by Registrant) bool {
	if !t.declared {
		return by.Variant == ""
	}
	return slices.Contains(t.members, by)
}

// SetMembers says which registrants make up a named set, in any order. A name that was never set means every registrant with
// an empty Variant. Open sessions follow before it returns, or as soon as their cells can.
func (r *Registry) SetMembers(name string, members []Registrant) {
	r.mu.Lock()
	t := r.sets[name]
	if t == nil {
		t = &set{declared: true}
		// So that what changes hands by this is seen to do so.
		t.plan.Store(r.undeclared.plan.Load())
		r.sets[name] = t
		for s := range r.sessions {
			if s.setName == name {
				s.set.Store(t)
			}
		}
	}
	t.members = slices.Clone(members)
	r.replanLocked()
	r.mu.Unlock()
	r.follow()
}

// Declared says whether a name was given members. A session of one that was not sees what every such session sees.
func (r *Registry) Declared(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sets[name] != nil
}

// setLocked finds a set. A name without members costs nothing: names come with sessions, and must not pile up. r.mu is held.
func (r *Registry) setLocked(name string) *set {
	if t := r.sets[name]; t != nil {
		return t
	}
	return &r.undeclared
}

// replanned is what became of keys in some set.
type replanned struct{ gained, lost, handed bool }

// moved says that a key left a set or changed hands: then live sessions are to be told, while a new key waits for the next time that they look.
func (p replanned) moved() bool { return p.lost || p.handed }

// replanLocked makes the plans of all sets anew under the next generation, and says what became of keys. A binding that a key gets anew has a
// new revision: whatever it computes, cold sessions included, must count as newer than what the one before it said, and than the
// removal of the key. r.mu is held.
func (r *Registry) replanLocked() (did replanned) {
	r.gen++
	replan := func(t *set) {
		old, now := t.plan.Load(), resolve(r.gen, r.units, t.member)
		for _, b := range now.units {
			// Also where nobody computed it just before: who did earlier may have had a higher one.
			was := old.binding(b.Key)
			if was != b {
				b.raise(r.revs.Add(1))
			}
			did.gained = did.gained || was == nil
			did.handed = did.handed || was != nil && was != b
		}
		for _, b := range old.units {
			did.lost = did.lost || now.binding(b.Key) == nil
		}
		t.plan.Store(now)
	}
	replan(&r.undeclared)
	for _, t := range r.sets {
		replan(t)
	}
	return did
}

// follow lets every live session come to terms with the present plans. No lock is held. Sessions check again at every publish
// and read, so one that attaches meanwhile misses nothing.
func (r *Registry) follow() { r.each((*Session).follow) }

// setBindings gives the computing bindings of a named set, sorted by key.
func (r *Registry) setBindings(name string) []*binding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.setLocked(name).plan.Load().units
}

// Keys are the keys that a named set offers at present, host-only ones too, sorted.
func (r *Registry) Keys(set string) []string {
	bindings := r.setBindings(set)
	keys := make([]string, len(bindings))
	for i, b := range bindings {
		keys[i] = b.Key
	}
	return keys
}
