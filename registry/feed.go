package registry

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
)

// Change is one entry of the feed or of the pull.
type Change struct {
	// Session and its Incarnation are empty for the kinds that are about a unit in all sessions.
	Session, Incarnation string
	Kind                 ChangeKind
	Key                  string
	Value                json.RawMessage
	// Seq is the event that caused the change; for KindUnavailable what the key did reach.
	Seq int64
	Rev int64
	// Unavailable is set for KindUnavailable.
	Unavailable *Unavailable
}

// ChangeKind is what happened.
type ChangeKind uint8

const (
	// KindValue is a new value of a key in a session.
	KindValue ChangeKind = iota
	// KindUnavailable is a key of a session that trails or failed; a KindValue with a new revision follows when it recovers.
	KindUnavailable
	// KindRemoved is a key that a live session does not have any more.
	KindRemoved
	// KindUnitAdded, KindUnitRemoved and KindUnitReplaced are about a key in the whole registry: some set has it now, or has it no more, or it is folded
	// by another definition.
	KindUnitAdded
	KindUnitRemoved
	KindUnitReplaced
)

// String is the kind's name, for logs.
func (k ChangeKind) String() string {
	names := [...]string{"value", "unavailable", "removed", "unit added", "unit removed", "unit replaced"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// OnChange adds a listener, called on a goroutine of its own, one change at a time. Per session and key the order is that of seqs, and
// when the listener falls behind only the latest waits, in the place of the one that it supersedes: memory is bounded by
// keys × sessions, and nobody waits for it. A panic of the listener is logged and ends nothing.
//
// remove takes it away: a call that is running may still end after it, no other begins. It does not wait and may be called
// from within the listener.
func (r *Registry) OnChange(f func(Change)) (remove func()) {
	m := &mailbox{wake: make(chan struct{}, 1), gone: make(chan struct{}), waiting: map[place]*post{}}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return func() {}
	}
	r.feed.add(m)
	r.wg.Go(func() { r.listen(m, f) })
	return func() { r.feed.remove(m) }
}

// feed is the list of listeners, replaced whole under mu and read without it.
type feed struct {
	mu   sync.Mutex
	list atomic.Pointer[[]*mailbox]
}

// listening says whether anybody would hear a change. Without a listener no view is computed for the feed.
func (d *feed) listening() bool {
	l := d.list.Load()
	return l != nil && len(*l) > 0
}

// post hands a change to every listener. It takes no lock but those of the mailboxes.
func (d *feed) post(p *post) {
	l := d.list.Load()
	if l == nil {
		return
	}
	for _, m := range *l {
		m.put(p)
	}
}

func (d *feed) add(m *mailbox) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var now []*mailbox
	if l := d.list.Load(); l != nil {
		now = slices.Clone(*l)
	}
	now = append(now, m)
	d.list.Store(&now)
}

func (d *feed) remove(m *mailbox) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.list.Load(); l != nil {
		now := slices.DeleteFunc(slices.Clone(*l), func(o *mailbox) bool { return o == m })
		d.list.Store(&now)
	}
	m.stop()
}

// forget takes away what waits to be heard of a session.
func (d *feed) forget(session string) {
	if l := d.list.Load(); l != nil {
		for _, m := range *l {
			m.forget(session)
		}
	}
}

func (d *feed) close() {
	if l := d.list.Load(); l != nil {
		for _, m := range *l {
			d.remove(m)
		}
	}
}

// post is a change on its way. A value is checked against its schema when it is delivered: one that is superseded before
// needs no check.
type post struct {
	change Change
	value  *value
	cell   *cell
	s      *Session
}

type place struct{ session, key string }

// mailbox is what one listener has not heard yet. mu is a leaf.
type mailbox struct {
	wake chan struct{}
	gone chan struct{}

	mu      sync.Mutex
	stopped bool
	order   []place
	waiting map[place]*post
}

func (m *mailbox) put(p *post) {
	at := place{p.change.Session, p.change.Key}
	m.mu.Lock()
	if m.stopped {
		m.mu.Unlock()
		return
	}
	if m.waiting[at] == nil {
		m.order = append(m.order, at)
	}
	m.waiting[at] = p
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *mailbox) take() *post {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped || len(m.order) == 0 {
		return nil
	}
	at := m.order[0]
	m.order[0] = place{}
	m.order = m.order[1:]
	if len(m.order) == 0 {
		m.order = nil
	}
	p := m.waiting[at]
	delete(m.waiting, at)
	return p
}

func (m *mailbox) forget(session string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.order = slices.DeleteFunc(m.order, func(at place) bool { return at.session == session })
	maps.DeleteFunc(m.waiting, func(at place, _ *post) bool { return at.session == session })
}

func (m *mailbox) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.stopped {
		m.stopped, m.order, m.waiting = true, nil, nil
		close(m.gone)
	}
}

func (r *Registry) listen(m *mailbox, f func(Change)) {
	for {
		for p := m.take(); p != nil; p = m.take() {
			c := p.change // other listeners may be told of the same post
			if p.value != nil {
				view, err := p.value.leave(r.o.MaxViewBytes)
				if err != nil {
					p.s.condemn(p.cell, p.value, err)
					continue
				}
				c.Value = view
			}
			r.tell(f, c)
		}
		select {
		case <-m.wake:
		case <-m.gone:
			return
		}
	}
}

func (r *Registry) tell(f func(Change), c Change) {
	defer func() {
		if v := recover(); v != nil {
			r.o.Logger.Error("a listener of the change feed panicked", "session", c.Session, "unit", c.Key, "seq", c.Seq, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	f(c)
}
