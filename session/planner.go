package session

import (
	"context"
	"errors"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/surface"
)

// errNotAtHand is what the surface hears while an event that it wants has not been read. It never leaves this file.
var errNotAtHand = errors.New("event not at hand")

// fetch reads one committed event.
type fetch func(ctx context.Context, seq int64) (event.Event, error)

// planner is the surface manager of a session, with what it takes to plan without I/O under a lock: a plan that needs an event
// that is not at hand says which, and is made again once it was read.
type planner struct {
	m *surface.Manager
	// known is the event last read for a plan. need is the seq that the plan being made asked for in vain, else −1.
	known *event.Event
	need  int64
}

func newPlanner() *planner {
	p := &planner{need: -1}
	p.m = surface.NewManager(0, func(seq int64) (event.Event, error) {
		if p.known != nil && p.known.Seq == seq {
			return *p.known, nil
		}
		p.need = seq
		return event.Event{}, errNotAtHand
	})
	return p
}

// try plans d; need ≥ 0 says that the event of that seq must be known first.
func (p *planner) try(d *event.Draft) (plan surface.Plan, need int64, err error) {
	p.need = -1
	plan, err = p.m.Plan(d)
	return plan, p.need, err
}

// tryBatch is try for drafts that are to be committed together; the plans are appended to plans.
func (p *planner) tryBatch(drafts []event.Draft, plans []surface.Plan) (planned []surface.Plan, need int64, err error) {
	p.need = -1
	planned, err = p.m.PlanBatch(drafts, plans)
	return planned, p.need, err
}

// accept plans d and carries the plan out: for logs that are being read, which nobody else sees yet.
func (p *planner) accept(ctx context.Context, d *event.Draft, read fetch) error {
	for {
		plan, need, err := p.try(d)
		if need >= 0 {
			ev, err := read(ctx, need)
			if err != nil {
				return err
			}
			p.known = &ev
			continue
		}
		if err != nil {
			return err
		}
		p.m.Apply(plan)
		return nil
	}
}

// readOne reads one event of a log from the store.
func (t *Set) readOne(ctx context.Context, l eventlog.Life, seq int64) (event.Event, error) {
	for ev, err := range eventlog.Scan(ctx, t.store, eventlog.Query{Life: l, From: seq, To: seq + 1, Limit: 1}) {
		return ev, err
	}
	return event.Event{}, &eventlog.CorruptError{ID: l.ID, Seq: seq, Reason: "the event is missing"}
}
