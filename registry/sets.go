package registry

import (
	"slices"
	"sync/atomic"
)

// set is a named set of registrants. members is guarded by Registry.mu; plan is swapped whole and read without a lock.
type set struct {
	name string
	// declared is false for a name that was never given members: every registrant with an empty variant then.
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
	t := r.setLocked(name)
	t.declared, t.members = true, slices.Clone(members)
	r.replanLocked()
	r.mu.Unlock()
	r.follow()
}

// setLocked finds or makes a set. r.mu is held.
func (r *Registry) setLocked(name string) *set {
	t := r.sets[name]
	if t == nil {
		t = &set{name: name}
		t.plan.Store(resolve(r.gen, r.units, t.member))
		r.sets[name] = t
	}
	return t
}

// replanLocked makes the plans of all sets anew under the next generation. r.mu is held. A binding that a key gets anew has a
// new revision: whatever it computes, cold sessions included, must count as newer than what the one before it said, and than the
// removal of the key.
func (r *Registry) replanLocked() {
	r.gen++
	for _, t := range r.sets {
		old, now := t.plan.Load(), resolve(r.gen, r.units, t.member)
		for _, b := range now.units {
			// Also where nobody computed it just before: who did earlier may have had a higher one.
			if old.binding(b.Key) != b {
				b.raise(r.revs.Add(1))
			}
		}
		t.plan.Store(now)
	}
}

// follow lets every live session come to terms with the present plans. No lock is held. Sessions check again at every publish
// and read, so one that attaches meanwhile misses nothing.
func (r *Registry) follow() {
	for _, s := range r.live() {
		s.mu.Lock()
		s.follow()
		s.mu.Unlock()
	}
}

// setBindings gives the computing bindings of a named set, sorted by key.
func (r *Registry) setBindings(name string) []*binding {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.sets[name]; t != nil {
		return t.plan.Load().units
	}
	// A set that nobody opened a session in is not kept: names of cold sessions must not pile up.
	return resolve(r.gen, r.units, (&set{name: name}).member).units
}
