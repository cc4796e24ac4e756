package session

import (
	"context"
	"errors"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// surfaceTypes are the types that can touch a surface: opening a log reads no others.
var surfaceTypes = []string{event.UserMessage, event.AssistantMessage, event.ToolResult}

// load makes the core of a session from the store.
func (t *Set) load(ctx context.Context, id string) (*core, error) {
	info, err := t.store.Info(ctx, id)
	if err != nil {
		return nil, err
	}
	life := eventlog.Life{ID: id, Incarnation: info.Incarnation}
	p := t.storedSurface(ctx, life, info.Seq)
	stored := p.m.Next()
	if err := t.foldSurface(ctx, p, life, info.Seq); err != nil {
		return nil, notFound(err)
	}
	c := newCore(t, t.handle(info.Header, info.Incarnation), p)
	if p.m.Next() > stored {
		c.keeper.changes = 1 // the row is behind the log
	}
	return c, nil
}

// foldSurface brings a planner from where it stands to the seq that follows the first n events of a log.
func (t *Set) foldSurface(ctx context.Context, p *planner, life eventlog.Life, n int64) error {
	if p.m.Next() >= n {
		return nil
	}
	read := func(seq int64) (event.Event, error) { return t.readOne(ctx, life, seq) }
	for ev, err := range eventlog.Scan(ctx, t.store, eventlog.Query{Life: life, From: p.m.Next(), To: n, Types: surfaceTypes}) {
		if err != nil {
			return err
		}
		p.m.Advance(ev.Seq)
		if err := p.accept(&event.Draft{Event: ev}, read); err != nil {
			return damage(life.ID, ev.Seq, err)
		}
	}
	p.m.Advance(n)
	return nil
}

// damage says that a stored event breaks a rule, which acceptance would never have let in; other errors pass.
func damage(id string, seq int64, err error) error {
	var rule *event.Error
	if errors.As(err, &rule) {
		return &eventlog.CorruptError{ID: id, Seq: seq, Reason: rule.Error()}
	}
	return err
}

// notFound tells a handle that its life is over, whichever way the store says so.
func notFound(err error) error {
	var other *eventlog.IncarnationError
	if errors.As(err, &other) {
		return &eventlog.NotFoundError{ID: other.ID}
	}
	return err
}
