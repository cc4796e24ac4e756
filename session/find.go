package session

import (
	"context"
	"sync"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// Find gives a session that exists, with what the store knows of it, and does not touch it: a cold one stays cold. Errors: *eventlog.NotFoundError,
// ErrClosed, what the store says.
func (t *Set) Find(ctx context.Context, id string) (*Session, eventlog.Info, error) {
	if t.closed.Load() {
		return nil, eventlog.Info{}, ErrClosed
	}
	info, err := t.store.Info(ctx, id)
	if err != nil {
		return nil, eventlog.Info{}, err
	}
	return t.handle(info.Header, info.Incarnation), info, nil
}

// List pages over the sessions, latest commit first, and touches none. See eventlog.Store.
func (t *Set) List(ctx context.Context, q eventlog.ListQuery) (eventlog.ListPage, error) {
	if t.closed.Load() {
		return eventlog.ListPage{}, ErrClosed
	}
	return t.store.List(ctx, q)
}

// End says which store the sessions are in, and the commit position that was given last. Whoever reads a session from now on sees all events up to there.
func (t *Set) End(ctx context.Context) (storeID string, position int64, err error) {
	if t.closed.Load() {
		return "", 0, ErrClosed
	}
	page, err := t.store.Tail(ctx, eventlog.TailQuery{After: event.MaxInteger, Types: []string{}})
	return t.store.Identity().StoreID, page.End, err
}

// Tail gives events of all sessions in the order of their commit positions. See eventlog.Store.
func (t *Set) Tail(ctx context.Context, q eventlog.TailQuery) (eventlog.TailPage, error) {
	if t.closed.Load() {
		return eventlog.TailPage{}, ErrClosed
	}
	return t.store.Tail(ctx, q)
}

// Live says whether a life of a session is live now, without touching it.
func (t *Set) Live(l eventlog.Life) bool {
	t.mu.Lock()
	sl := t.slots[l.ID]
	t.mu.Unlock()
	if sl == nil || sl.ended() {
		return false
	}
	select {
	case <-sl.ready:
		return sl.err == nil && sl.incarnation == l.Incarnation
	default:
		return false
	}
}

// Keep is Hold that also says when the hold has become void: lost is closed then. It is the way to hear of a deletion, or of a session that went cold
// all the same; calling Keep again tells which.
func (s *Session) Keep(ctx context.Context) (lost <-chan struct{}, release func(), err error) {
	c, err := s.touch(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer c.slot.release()
	sl := c.slot // not c, which a session gone cold must not keep
	sl.users.Add(oneHold)
	return sl.gone, sync.OnceFunc(func() { sl.users.Add(-oneHold) }), nil
}
