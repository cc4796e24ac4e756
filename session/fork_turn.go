package session

import (
	"context"
	"fmt"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// TurnFork says how to fork by turns: AtSeq nil is the last turn that has ended, Child empty is an id made up. Once says whose fork it is, for Session.Committed of
// the child.
type TurnFork struct {
	AtSeq *int64
	Child string
	Once  Once
}

// ForkTurn makes a child that ends with the turn which contains AtSeq, and with what follows it before the next turn/start, so that a title made after the
// turn is inherited. An AtSeq between two turns belongs to the one before it, one before all turns to the first, one past the end to the last. The child carries
// the source's preset too. The error is as for Fork, with ForkUnavailable when that turn has not ended, or none has, and ForkInvalidBoundary only for an AtSeq below 0.
func (t *Set) ForkTurn(ctx context.Context, source string, f TurnFork) (*Session, error) {
	return t.fork(ctx, source, f.Child, true, f.Once, func(ctx context.Context, src eventlog.Info) (int64, error) {
		return t.cutAfterTurn(ctx, src, f.AtSeq)
	})
}

// cutAfterTurn is the length of the shortest prefix that contains atSeq, ends outside of a turn, has a whole one, and goes up to the next turn/start.
func (t *Set) cutAfterTurn(ctx context.Context, src eventlog.Info, atSeq *int64) (int64, error) {
	id := src.Header.ID
	if atSeq != nil && *atSeq < 0 {
		return 0, &ForkError{Code: ForkInvalidBoundary, Session: id, Reason: fmt.Sprintf("%d is no seq of session %q: they count from 0", *atSeq, id)}
	}
	cut, ended := int64(-1), false
	if src.Seq > 0 {
		q := eventlog.Query{Life: eventlog.Life{ID: id, Incarnation: src.Incarnation}, To: src.Seq, Types: []string{event.TurnStart, event.TurnEnd}}
		for ev, err := range eventlog.Scan(ctx, t.store, q) {
			if err != nil {
				return 0, err
			}
			if ev.Type == event.TurnStart && ended {
				if cut = ev.Seq; atSeq != nil && cut > *atSeq {
					return cut, nil
				}
			}
			ended = ev.Type == event.TurnEnd
		}
		if ended {
			cut = src.Seq
		}
	}
	switch {
	case cut < 0:
		return 0, &ForkError{Code: ForkUnavailable, Session: id, Reason: fmt.Sprintf("session %q has no turn that has ended", id)}
	case atSeq != nil && *atSeq >= cut && *atSeq < src.Seq:
		return 0, &ForkError{Code: ForkUnavailable, Session: id,
			Reason: fmt.Sprintf("session %q has not completed the turn that contains seq %d: wait for its end, or choose an earlier seq", id, *atSeq)}
	}
	return cut, nil
}
