package session

import (
	"context"
	"errors"
	"slices"

	"github.com/foldhost/foldhost/eventlog"
)

// Check folds the surface of a session from the whole of its log, live or not and without touching it, and compares a stored surface with it. Errors: *eventlog.CorruptError for
// an event that acceptance would have refused, or for a stored surface that would be taken for another than the log gives; *eventlog.NotFoundError, ErrClosed, the context's, what the store
// says.
func (t *Set) Check(ctx context.Context, id string) error {
	if err := t.begin(); err != nil {
		return err
	}
	defer t.running.Done()
	info, err := t.store.Info(ctx, id)
	if err != nil {
		return err
	}
	life := eventlog.Life{ID: id, Incarnation: info.Incarnation}
	// The row before the log: it may be replaced meanwhile, and what comes later was not there when the length was asked for.
	stored := newPlanner()
	if t.rows != nil && info.Seq > 0 {
		p, err := t.loadSurface(ctx, life, info.Seq)
		var gone *eventlog.NotFoundError
		switch {
		case err == nil:
			stored = p
		case ctx.Err() != nil || errors.As(err, &gone):
			return err
		} // else nobody would use it
	}
	folded := newPlanner()
	at := stored.m.Next()
	if err := t.foldSurface(ctx, folded, life, at); err != nil {
		return notFound(err)
	}
	if at > 0 && (!slices.Equal(stored.m.Nodes(), folded.m.Nodes()) || stored.m.ReplaceGeneration() != folded.m.ReplaceGeneration()) {
		return &eventlog.CorruptError{ID: id, Seq: at - 1, Reason: "the stored surface is not what the log gives"}
	}
	return notFound(t.foldSurface(ctx, folded, life, info.Seq))
}
