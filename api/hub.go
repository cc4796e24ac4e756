package api

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// hub is where those who wait for a session hear that it may have moved. It keeps of each key of a followed session the latest change, and the end of its log for those who read as fast as
// it grows, so its memory is bounded by what is followed and not by what happens.
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
	tail     tail
	// listener numbers the listeners: what an earlier one has still to say comes too late.
	listener int
}

// topic is a session that is followed, by id. A successor of the same id has the same topic; changes say whom they are about.
type topic struct {
	mu        sync.Mutex
	followers map[*follower]struct{}
	// version counts the changes; latest has the last one of each key. commits counts what was published.
	version, commits uint64
	latest           map[string]*stamped
	// recent is kept while some of the followers want events, which listeners counts.
	recent    recent
	listeners int
	// placed is kept while some are streams of many sessions that want events, which rows counts.
	placed placed
	rows   int
	// lent are large events that streams have read from the log and are sending, by the marks of their frames.
	lent map[mark]*lent
	// units counts the changes of registrations, about which a session that is not live is told nothing else.
	units uint64
}

// stamped is a change that many streams of its session send.
type stamped struct {
	registry.Change
	version uint64

	once  sync.Once
	bytes []byte
}

// frame gives the change as a frame, which nobody changes. It is made by the first who asks.
func (s *stamped) frame(f frames) []byte {
	s.once.Do(func() { s.bytes = f.change(nil, &s.Change) })
	return s.bytes
}

// wants is what a follower wants to hear of beside the bell.
type wants struct {
	events, values bool
	// positions says that the commit positions of the events are wanted too.
	positions bool
}

// follower is one who waits. bell has one place, and may be that of several followers: it says that there may be something, and never what.
type follower struct {
	hub   *hub
	id    string
	topic *topic
	wants wants
	bell  chan struct{}
	// seen, commits and units are how far take has come.
	seen, commits, units uint64
}

func newHub(sessions *session.Set, r *registry.Registry) *hub {
	h := &hub{sessions: sessions, registry: r, topics: map[string]*topic{}, tail: tail{end: -1, seen: -1}}
	h.unwatch = sessions.AddObserver(func(_ context.Context, s *session.Session, events []event.Event) { h.published(s, events) })
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
func (h *hub) follow(id string, w wants, bell chan struct{}) *follower {
	f := &follower{hub: h, id: id, wants: w, bell: bell}
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.values {
		if h.readers++; h.readers == 1 {
			h.listener++
			mine := h.listener
			h.unlisten = h.registry.OnChange(func(c registry.Change) { h.changed(mine, c) })
		}
	}
	t := h.topics[id]
	if t == nil {
		t = &topic{followers: map[*follower]struct{}{}, latest: map[string]*stamped{}}
		h.topics[id] = t
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f.topic, f.seen, f.commits, f.units = t, t.version, t.commits, t.units
	t.followers[f] = struct{}{}
	switch {
	case w.events && w.positions:
		if t.rows++; t.rows == 1 {
			t.placed = placed{from: h.tail.end}
		}
	case w.events:
		t.listeners++
	}
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
	switch {
	case f.wants.events && f.wants.positions:
		if f.topic.rows--; f.topic.rows == 0 {
			f.topic.placed = placed{}
		}
	case f.wants.events:
		if f.topic.listeners--; f.topic.listeners == 0 {
			f.topic.recent = recent{}
		}
	}
	f.topic.mu.Unlock()
	if last {
		delete(h.topics, f.id)
	}
	if f.wants.values {
		if h.readers--; h.readers == 0 {
			h.unlisten()
			h.unlisten = nil
		}
	}
}

// published takes what was committed. It is called for one commit of a session at a time, in the order of the log.
func (h *hub) published(s *session.Session, events []event.Event) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if t := h.topics[s.ID()]; t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.commits++
		if t.listeners > 0 {
			t.recent.add(s.Incarnation(), events)
		}
		if t.rows > 0 {
			h.tail.heard.Add(1)
		}
		t.ring()
	}
}

// ring says that a session may have moved in another way.
func (h *hub) ring(id string) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if t := h.topics[id]; t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.ring()
	}
}

// ringAll says that every session may have moved, or that the server stops.
func (h *hub) ringAll() {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, t := range h.topics {
		t.mu.Lock()
		t.ring()
		t.mu.Unlock()
	}
}

func (t *topic) ring() {
	for f := range t.followers {
		ring(f.bell)
	}
}

// ring rings a bell, unless it is rung already.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
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
		t.latest[c.Key] = &stamped{Change: c, version: t.version}
		t.ring()
	}
}

// take gives what has changed in a life of the session since the last call, the latest of each key, by seq and then key. events says that something was published, and units that registrations
// changed.
func (f *follower) take(incarnation string) (changes []*stamped, events, units bool) {
	t := f.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.latest {
		if c.version > f.seen && c.Incarnation == incarnation {
			changes = append(changes, c)
		}
	}
	events, units = t.commits > f.commits, t.units > f.units
	f.seen, f.commits, f.units = t.version, t.commits, t.units
	slices.SortFunc(changes, func(a, b *stamped) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Key, b.Key)) })
	return changes, events, units
}

// recent gives the events of a life behind a seq, if all up to least are held; else the log has to be read.
func (f *follower) recent(incarnation string, seq, least int64) (events []*sharedEvent, ok bool) {
	t := f.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recent.after(incarnation, seq, least)
}

// rest lets go of what nobody needs where nothing has happened for some time.
func (f *follower) rest(quiet time.Duration) {
	f.hub.mu.RLock()
	defer f.hub.mu.RUnlock()
	t := f.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	if time.Since(t.recent.added) >= quiet {
		t.recent = recent{}
	}
	if time.Since(t.placed.added) >= quiet {
		t.placed = placed{from: f.hub.tail.end}
	}
}
