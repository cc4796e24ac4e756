package session

import (
	"context"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// Recover appends the closers of an interrupted turn and returns them; nothing when there is none. The host never does so by itself: whoever calls
// says that the program which owned the turn is gone. Errors are as for AppendBatch.
func (s *Session) Recover(ctx context.Context) ([]event.Event, error) {
	_, events, err := s.RecoverOnce(ctx, Once{})
	return events, err
}

// RecoverOnce is Recover for a request with a key, and says where the events went: one that was carried out gives its events again and closes no later turn, also
// when there was nothing to close.
func (s *Session) RecoverOnce(ctx context.Context, once Once) (eventlog.Commit, []event.Event, error) {
	c, err := s.take(ctx)
	if err != nil {
		return eventlog.Commit{}, nil, err
	}
	defer c.leave()
	if once.Key != "" {
		if commit, events, known, err := c.repeated(ctx, once); known || err != nil {
			return commit, events, err
		}
	}
	closers, err := c.closers(ctx)
	if err != nil {
		return eventlog.Commit{}, nil, err
	}
	if n := c.seq(); len(closers) == 0 {
		commit := eventlog.Commit{First: n, Seq: n}
		if once.Key != "" {
			commit, err = c.set.store.Append(ctx, eventlog.Batch{Life: c.life(), Key: once.Key, Digest: once.Digest})
		}
		return commit, nil, notFound(err)
	}
	drafts := make([]event.Draft, len(closers))
	for i := range closers {
		drafts[i].Event = closers[i]
	}
	return c.append(ctx, drafts, condition{once: once})
}

// closers reads the turn in which the log ends. The turn is held.
func (c *core) closers(ctx context.Context) ([]event.Event, error) {
	n := c.seq()
	marker, err := c.set.lastTurnMarker(ctx, c.life(), n)
	if err != nil || marker == nil || marker.Type != event.TurnStart {
		return nil, notFound(err)
	}
	last, err := c.set.readOne(ctx, c.life(), n-1)
	if err != nil {
		return nil, notFound(err)
	}
	return Closers(c.s.Scan(ctx, marker.Seq, n, CloserTypes()), &last)
}

// firstLookBack is how many events before the end the search for a turn marker begins with; a turn of an agent that streams is some hundred long.
const firstLookBack = 512

// lastTurnMarker is the last turn/start or turn/end among the first n events of a log, nil when there is none. It looks back in ranges that double, so
// that it costs what the last turn costs and not what the log does.
func (t *Set) lastTurnMarker(ctx context.Context, life eventlog.Life, n int64) (last *event.Event, err error) {
	for to, width := n, int64(firstLookBack); to > 0 && last == nil; width *= 2 {
		q := eventlog.Query{Life: life, From: max(0, to-width), To: to, Types: []string{event.TurnStart, event.TurnEnd}}
		for ev, err := range eventlog.Scan(ctx, t.store, q) {
			if err != nil {
				return nil, err
			}
			last = &ev
		}
		to = q.From
	}
	return last, nil
}
