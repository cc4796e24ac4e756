package session

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// Fork says how to fork: Boundary, an inclusive seq, nil is the last event; Child empty is an id made up.
type Fork struct {
	Boundary *int64
	Child    string
}

// Fork makes a child from the events of a session up to and with the boundary seq, and leaves it live. The child has the source's cwd, the source as its
// parent, and nothing else of its header. The source is read from the store and stays as it is, live or cold. Errors: *ForkError, *event.Error for an
// id that no session can have, and as for Create.
func (t *Set) Fork(ctx context.Context, source string, f Fork) (*Session, error) {
	return t.fork(ctx, source, f.Child, false, Once{}, func(ctx context.Context, src eventlog.Info) (int64, error) {
		return t.cutAt(ctx, src, f.Boundary)
	})
}

// fork makes a child from as many events of the source as cut says.
func (t *Set) fork(ctx context.Context, source, child string, keepPreset bool, once Once, cut func(context.Context, eventlog.Info) (int64, error)) (*Session, error) {
	if child == "" {
		child = rand.Text()
	}
	h := event.Header{ID: child, CreatedAt: t.o.Now().UnixMilli(), ParentSession: source}
	if err := h.Check(); err != nil {
		return nil, err
	}
	var missing *eventlog.NotFoundError
	switch _, err := t.store.Info(ctx, child); {
	case err == nil:
		return nil, childExists(child, nil)
	case !errors.As(err, &missing):
		return nil, err
	}
	src, err := t.store.Info(ctx, source)
	if err != nil {
		return nil, sourceGone(source, err)
	}
	n, err := cut(ctx, src)
	if err != nil {
		return nil, sourceGone(source, err)
	}
	h.CWD, h.SeedLength = src.Header.CWD, &n
	if keepPreset {
		h.AgentPreset = clonePointer(src.Header.AgentPreset)
	}
	b := newBeginning(t)
	life := eventlog.Life{ID: source, Incarnation: src.Incarnation}
	s, err := t.commitCreation(ctx, eventlog.Creation{Header: h, FirstLiveSeq: n, Events: b.inherited(ctx, life, n), Key: once.Key, Digest: once.digest}, b.planner)
	var exists *eventlog.ExistsError
	if errors.As(err, &exists) {
		return nil, childExists(child, err)
	}
	return s, sourceGone(source, err)
}

func childExists(child string, err error) error {
	return &ForkError{Code: ForkChildExists, Session: child, Err: err,
		Reason: fmt.Sprintf("session %q already exists: choose another id for the child", child)}
}

// sourceGone tells an unknown or deleted source as a *ForkError; other errors pass.
func sourceGone(source string, err error) error {
	var missing *eventlog.NotFoundError
	if !errors.As(notFound(err), &missing) || missing.ID != source {
		return err
	}
	return &ForkError{Code: ForkSourceNotFound, Session: source, Err: missing, Reason: missing.Error()}
}

// cutAt is the length of the prefix that ends with the boundary.
func (t *Set) cutAt(ctx context.Context, src eventlog.Info, boundary *int64) (int64, error) {
	id, n := src.Header.ID, src.Seq
	if boundary != nil {
		if *boundary < 0 || *boundary >= src.Seq {
			last := "it has no events"
			if src.Seq > 0 {
				last = fmt.Sprintf("its last seq is %d", src.Seq-1)
			}
			return 0, &ForkError{Code: ForkInvalidBoundary, Session: id,
				Reason: fmt.Sprintf("seq %d is not an event of session %q: %s", *boundary, id, last)}
		}
		n = *boundary + 1
	}
	marker, err := t.lastTurnMarker(ctx, eventlog.Life{ID: id, Incarnation: src.Incarnation}, n)
	if err != nil {
		return 0, err
	}
	if marker != nil && marker.Type == event.TurnStart {
		return 0, &ForkError{Code: ForkOpenTurn, Session: id,
			Reason: fmt.Sprintf("seq %d of session %q is inside the turn that starts at seq %d: choose a boundary outside, or close the turn", n-1, id, marker.Seq)}
	}
	return n, nil
}
