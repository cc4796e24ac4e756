package session

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// Session is a handle on one life of one session. It stays good while the session goes cold and live again; after a deletion every call
// gives *eventlog.NotFoundError. Safe for concurrent use.
//
// A call that touches the session opens it when it is cold, so beside its own errors it may give *eventlog.CorruptError for a log that no session
// would have accepted, *PanicError from the driver, ErrClosed, what the store says, and the context's error while it waits.
type Session struct {
	set         *Set
	id          string
	incarnation string
	header      event.Header
	surface     Surface
	// slot is where the session was live last.
	slot atomic.Pointer[slot]
}

func (t *Set) handle(h event.Header, incarnation string) *Session {
	s := &Session{set: t, id: h.ID, incarnation: incarnation, header: cloneHeader(h)}
	s.surface.s = s
	return s
}

// Open gives a session that exists, live or cold.
func (t *Set) Open(ctx context.Context, id string) (*Session, error) {
	c, err := t.touch(ctx, id, "")
	if err != nil {
		return nil, err
	}
	defer c.slot.release()
	return c.s, nil
}

// ID is the session's id.
func (s *Session) ID() string { return s.id }

// Incarnation tells the lives of one id apart.
func (s *Session) Incarnation() string { return s.incarnation }

// Header is a copy of what was fixed when the session was made.
func (s *Session) Header() event.Header { return cloneHeader(s.header) }

func (s *Session) life() eventlog.Life {
	return eventlog.Life{ID: s.id, Incarnation: s.incarnation}
}

// Info is the session as the store has it. It does not touch the session.
func (s *Session) Info(ctx context.Context) (eventlog.Info, error) {
	info, err := s.set.store.Info(ctx, s.id)
	if err == nil && info.Incarnation != s.incarnation {
		return eventlog.Info{}, &eventlog.NotFoundError{ID: s.id}
	}
	return info, err
}

// Live says whether the session is live now, without touching it.
func (s *Session) Live() bool { return s.set.Live(s.life()) }

// Hold keeps the session from going idle until release is called; calling that twice does nothing. A deletion, Detach and Close do not wait for a hold,
// nor does a drive that panicked or a store that could not say what it holds: when the session is opened again after one of these, the hold is void.
func (s *Session) Hold(ctx context.Context) (release func(), err error) {
	_, release, err = s.Keep(ctx)
	return release, err
}

// touch gives the session's core, held: slot.release ends the touch.
func (s *Session) touch(ctx context.Context) (*core, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if sl := s.slot.Load(); sl != nil && sl.hold() {
		return sl.core, nil
	}
	c, err := s.set.touch(ctx, s.id, s.incarnation)
	if err != nil {
		return nil, err
	}
	s.slot.Store(c.slot)
	return c, nil
}

// take gives the session's core with the turn; leave ends both.
func (s *Session) take(ctx context.Context) (*core, error) {
	if s.within(ctx) {
		return nil, &ReentrantError{ID: s.id}
	}
	for {
		c, err := s.touch(ctx)
		if err != nil {
			return nil, err
		}
		if err := c.takeTurn(ctx); err != nil {
			c.slot.release()
			return nil, err
		}
		if !c.ended && !s.set.closed.Load() {
			return c, nil
		}
		c.leave() // it went cold, was deleted or closed while we queued: the next look tells
		if s.set.closed.Load() {
			return nil, ErrClosed
		}
	}
}

func (c *core) leave() {
	if c.broken {
		c.finish(false)
	}
	c.giveTurn()
	c.slot.release()
}

// Read gives a page of the events with from ≤ seq < to; to 0 or less is the end. types nil is every type. It does not touch the session.
func (s *Session) Read(ctx context.Context, from, to int64, types []string) (eventlog.Page, error) {
	return s.Page(ctx, eventlog.Query{From: from, To: to, Types: types})
}

// Page is Read by a query, whose life is that of the session.
func (s *Session) Page(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
	q.Life = s.life()
	page, err := s.set.store.Read(ctx, q)
	return page, notFound(err)
}

// Scan gives all events of a range, as Read does page by page; the end is fixed when the first page is read.
func (s *Session) Scan(ctx context.Context, from, to int64, types []string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for ev, err := range eventlog.Scan(ctx, s.set.store, eventlog.Query{Life: s.life(), From: from, To: to, Types: types}) {
			if !yield(ev, notFound(err)) {
				return
			}
		}
	}
}

// Detach lets the session go cold now: after the appends that are before it in the queue, and before those behind it, which open the session again.
func (s *Session) Detach(ctx context.Context) error {
	if s.within(ctx) {
		return &ReentrantError{ID: s.id}
	}
	if !s.Live() {
		_, err := s.Info(ctx)
		return err
	}
	c, err := s.take(ctx)
	if err != nil {
		return err
	}
	defer c.leave()
	c.finish(false)
	return nil
}

// Delete removes a session and its log. What is queued behind it gets *eventlog.NotFoundError. When the store fails to delete, the
// session goes cold and the next touch finds what the store has.
func (t *Set) Delete(ctx context.Context, id string) error {
	if err := t.begin(); err != nil {
		return err
	}
	defer t.running.Done()
	// At its end too, for the creations that began meanwhile.
	t.overtakeCreation(id)
	defer t.overtakeCreation(id)
	for {
		again, err := t.deleteOnce(ctx, id)
		if !again {
			return err
		}
	}
}

// deleteOnce deletes unless the slot of the id was on its way out.
func (t *Set) deleteOnce(ctx context.Context, id string) (again bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	t.mu.Lock()
	sl := t.slots[id]
	if sl == nil {
		sl = newSlot(id) // keeps everybody else away from the id
		sl.err = &eventlog.NotFoundError{ID: id}
		close(sl.ready)
		sl.end()
		t.slots[id] = sl
		t.mu.Unlock()
		defer t.remove(sl)
		t.deleted(id)
		defer t.deleted(id)
		return false, t.store.Delete(ctx, eventlog.Life{ID: id})
	}
	held := sl.hold()
	t.mu.Unlock()
	if !held {
		err := wait(ctx, sl.gone)
		return err == nil, err
	}
	if err := t.awaitReady(ctx, sl); err != nil {
		return false, err
	}
	defer sl.release()
	if sl.err != nil { // it could not be opened, so it is not live: delete it as it lies
		return true, nil
	}
	c := sl.core
	if c.s.within(ctx) {
		return false, &ReentrantError{ID: id}
	}
	if err := c.takeTurn(ctx); err != nil {
		return false, err
	}
	defer c.giveTurn()
	if c.ended {
		return true, nil
	}
	c.slot.end() // whoever comes now waits until the deletion is over
	t.deleted(id)
	err = notFound(t.store.Delete(ctx, c.life()))
	var gone *eventlog.NotFoundError
	c.detach(err == nil || errors.As(err, &gone))
	return false, err
}

// deleted tells of a deletion.
func (t *Set) deleted(id string) {
	if t.o.Deleted != nil {
		t.o.Deleted(id)
	}
}

func (t *Set) overtakeCreation(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.overtake(id)
}

// cloneHeader copies a header with what it points to.
func cloneHeader(h event.Header) event.Header {
	h.SeedLength = clonePointer(h.SeedLength)
	h.DelegationDepth = clonePointer(h.DelegationDepth)
	h.AgentPreset = clonePointer(h.AgentPreset)
	return h
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}
