package api

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// hub is where those who wait for a session hear that it may have moved. It keeps of each key of a followed session the latest change, so its memory is
// bounded by what is followed and not by what happens.
//
// mu guards topics, users and the listener; topic.mu guards one topic. They are held for memory work only, in this order. Under mu the registry is asked for a listener,
// which takes the registry's own lock for as long; the registry never calls the hub with a lock held.
type hub struct {
	sessions *session.Set
	registry *registry.Registry
	unwatch  func()

	mu     sync.RWMutex
	topics map[string]*topic
	// readers are the followers that want changes. While there are none nobody listens to the registry, which then need not compute what changed.
	readers  int
	unlisten func()
	// listener numbers the listeners: what an earlier one has still to say comes too late.
	listener int
}

// topic is a session that is followed, by id. A successor of the same id has the same topic; changes say whom they are about.
type topic struct {
	mu        sync.Mutex
	followers map[*follower]struct{}
	// version counts the changes; latest has the last one of each key.
	version uint64
	latest  map[string]stamped
	// units counts the changes of registrations, about which a session that is not live is told nothing else.
	units uint64
}

type stamped struct {
	registry.Change
	version uint64
}

// follower is one who waits. bell has one place, and may be that of several followers: it says that there may be something, and never what.
type follower struct {
	hub   *hub
	id    string
	topic *topic
	// reads says that it wants changes.
	reads bool
	bell  chan struct{}
	// seen and units are how far take has come.
	seen, units uint64
}

func newHub(sessions *session.Set, r *registry.Registry) *hub {
	h := &hub{sessions: sessions, registry: r, topics: map[string]*topic{}}
	h.unwatch = sessions.AddObserver(func(_ context.Context, s *session.Session, _ []event.Event) { h.ring(s.ID()) })
	return h
}

// close ends it; nobody follows any more.
func (h *hub) close() {
	h.unwatch()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unlisten != nil {
		h.unlisten()
	}
}

// newBell makes one.
func newBell() chan struct{} { return make(chan struct{}, 1) }

// follow makes a follower of a session, whether there is one or not. What happens from now on rings the bell, until it leaves.
func (h *hub) follow(id string, reads bool, bell chan struct{}) *follower {
	f := &follower{hub: h, id: id, reads: reads, bell: bell}
	h.mu.Lock()
	defer h.mu.Unlock()
	if reads {
		if h.readers++; h.readers == 1 {
			h.listener++
			mine := h.listener
			h.unlisten = h.registry.OnChange(func(c registry.Change) { h.changed(mine, c) })
		}
	}
	t := h.topics[id]
	if t == nil {
		t = &topic{followers: map[*follower]struct{}{}, latest: map[string]stamped{}}
		h.topics[id] = t
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f.topic, f.seen, f.units = t, t.version, t.units
	t.followers[f] = struct{}{}
	return f
}

// leave ends following.
func (f *follower) leave() {
	h := f.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	f.topic.mu.Lock()
	delete(f.topic.followers, f)
	last := len(f.topic.followers) == 0
	f.topic.mu.Unlock()
	if last {
		delete(h.topics, f.id)
	}
	if f.reads {
		if h.readers--; h.readers == 0 {
			h.unlisten()
			h.unlisten = nil
		}
	}
}

// ring says that a session may have moved.
func (h *hub) ring(id string) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if t := h.topics[id]; t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.ring()
	}
}

func (t *topic) ring() {
	for f := range t.followers {
		select {
		case f.bell <- struct{}{}:
		default:
		}
	}
}

// changed takes a change of the feed. It is called by one listener at a time, in the order of each key.
func (h *hub) changed(listener int, c registry.Change) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if listener != h.listener {
		return
	}
	if c.Session == "" {
		for _, t := range h.topics {
			t.mu.Lock()
			t.units++
			t.ring()
			t.mu.Unlock()
		}
		return
	}
	if t := h.topics[c.Session]; t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.version++
		t.latest[c.Key] = stamped{c, t.version}
		t.ring()
	}
}

// take gives what has changed in a life of the session since the last call, the latest of each key, by seq and then key. units says that registrations changed.
func (f *follower) take(incarnation string) (changes []registry.Change, units bool) {
	t := f.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.latest {
		if c.version > f.seen && c.Incarnation == incarnation {
			changes = append(changes, c.Change)
		}
	}
	units = t.units > f.units
	f.seen, f.units = t.version, t.units
	slices.SortFunc(changes, func(a, b registry.Change) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Key, b.Key)) })
	return changes, units
}
