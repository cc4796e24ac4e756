package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/surface"
)

// catchUpTimeout bounds how long an append that failed waits to learn what the store holds. A store that does not say within this is not worth
// a live session: the next touch asks again.
const catchUpTimeout = 10 * time.Second

// catchUpEvents is how many events at most are adopted at a time, as many as a page of a store usually holds.
const catchUpEvents = 1000

// condition is what an append depends on beside its events.
type condition struct {
	expected *int64
	once     Once
	answer   string
}

// appendOne is append for a single draft, whose refusals need no index.
func (c *core) appendOne(ctx context.Context, draft []event.Draft, on condition) (event.Event, error) {
	return single(c.append(ctx, draft, on))
}

// single is what came of an append of one draft.
func single(_ eventlog.Commit, events []event.Event, err error) (event.Event, error) {
	if err != nil {
		// Only the outermost: one further inside came from a hook, and belongs to what the hook says.
		if item, ok := err.(*event.IndexError); ok {
			err = item.Err
		}
		return event.Event{}, err
	}
	return events[0], nil
}

// append is the main road: idempotency, condition, plan, hooks, commit, apply, publish. The turn is held, and drafts have passed every check that needs
// no session. A refused draft comes as *event.IndexError.
func (c *core) append(ctx context.Context, drafts []event.Draft, on condition) (eventlog.Commit, []event.Event, error) {
	if on.once.Key != "" {
		commit, events, known, err := c.repeated(ctx, on.once)
		if known || err != nil {
			return commit, events, err
		}
	}
	if err := c.number(drafts, on, c.seq()); err != nil {
		return eventlog.Commit{}, nil, err
	}
	var room [1]surface.Plan
	plans, err := c.plan(ctx, drafts, room[:0])
	if err != nil {
		return eventlog.Commit{}, nil, err
	}
	events := undraft(drafts)
	if err := c.ask(ctx, c.set.guards.all(), events); err != nil {
		return eventlog.Commit{}, nil, err
	}
	if err := c.ask(ctx, c.set.hooks.all(), events); err != nil {
		return eventlog.Commit{}, nil, err
	}
	commit, err := c.set.store.Append(ctx, eventlog.Batch{Life: c.life(), Events: events, Key: on.once.Key, Digest: on.once.Digest, Answer: on.answer})
	if err != nil {
		return eventlog.Commit{}, nil, c.failed(ctx, err)
	}
	if commit.Repeated { // somebody else used the key since we looked
		if err := c.catchUp(ctx); err != nil {
			return eventlog.Commit{}, nil, err
		}
		return c.set.readCommit(ctx, c.life(), commit)
	}
	c.set.stats.committed(len(events))
	c.apply(events, plans)
	c.publish(ctx, events)
	return commit, events, nil
}

// number gives drafts the seqs from next on, and times, if that is the seq that was expected.
func (c *core) number(drafts []event.Draft, on condition, next int64) error {
	if on.expected != nil && *on.expected != next {
		return &eventlog.SeqConflictError{ID: c.s.id, Seq: next, Expected: *on.expected}
	}
	now := c.set.o.Now().UnixMilli()
	for i := range drafts {
		d := &drafts[i]
		d.Seq = next + int64(i)
		if d.Time == unstamped {
			d.Time = now
		}
		if err := event.CheckSize(&d.Event, c.set.o.MaxEventBytes); err != nil {
			return &event.IndexError{Index: int64(i), Err: err}
		}
	}
	return nil
}

// repeated looks for the key of the request, and reads back what it committed. It comes before everything that depends on what the session looks like now.
func (c *core) repeated(ctx context.Context, once Once) (commit eventlog.Commit, events []event.Event, known bool, err error) {
	commit, known, err = c.set.known(ctx, c.life(), once)
	if err != nil || !known {
		return eventlog.Commit{}, nil, known, err
	}
	commit, events, err = c.set.readCommit(ctx, c.life(), commit)
	return commit, events, true, err
}

// readCommit reads back what a commit wrote.
func (t *Set) readCommit(ctx context.Context, l eventlog.Life, commit eventlog.Commit) (eventlog.Commit, []event.Event, error) {
	commit.Repeated = true
	if commit.First == commit.Seq { // in a query that may be all of a log
		return commit, nil, nil
	}
	events := make([]event.Event, 0, commit.Seq-commit.First)
	for ev, err := range eventlog.Scan(ctx, t.store, eventlog.Query{Life: l, From: commit.First, To: commit.Seq}) {
		if err != nil {
			return eventlog.Commit{}, nil, fmt.Errorf("read back the commit of a known key: %w", notFound(err))
		}
		events = append(events, ev)
	}
	return commit, events, nil
}

// plan checks drafts, each on top of those before it, and changes nothing that anybody could see.
func (c *core) plan(ctx context.Context, drafts []event.Draft, plans []surface.Plan) ([]surface.Plan, error) {
	rewritten, err := c.readRewritten(ctx, drafts)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.planner.plan(drafts, rewritten, plans)
}

// failed brings the session into line with the store after an append that failed, and returns what to tell the caller.
func (c *core) failed(ctx context.Context, err error) error {
	if nothingWritten(err) {
		return err
	}
	if lost := c.catchUp(ctx); lost != nil {
		var gone *eventlog.NotFoundError
		if errors.As(lost, &gone) {
			return lost
		}
		return fmt.Errorf("%w (and the session went cold: %w)", err, lost)
	}
	return err
}

// nothingWritten says whether an error of the store is a refusal which promises that the log is as it was. An ended context promises that too, but
// costs only one look at the head to be sure of, so it is not taken at its word.
func nothingWritten(err error) bool {
	var reused *eventlog.KeyReusedError
	var invalid *eventlog.InvalidError
	var full *eventlog.DiskFullError
	return errors.As(err, &reused) || errors.As(err, &invalid) || errors.As(err, &full) || errors.Is(err, eventlog.ErrClosed)
}

// catchUp applies and publishes what the store has beyond the session, in order and once. If it cannot, the core ends, as deleted
// when the life is over. It does not end with ctx, since what was committed must be published.
func (c *core) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), catchUpTimeout)
	defer cancel()
	err := c.readOn(ctx)
	if err != nil {
		var gone *eventlog.NotFoundError
		c.finish(errors.As(err, &gone))
	}
	return err
}

func (c *core) readOn(ctx context.Context) error {
	info, err := c.s.Info(ctx)
	if err != nil {
		return err
	}
	have := c.seq()
	if info.Seq == have {
		return nil
	}
	if info.Seq < have {
		return &eventlog.CorruptError{ID: c.s.id, Seq: info.Seq, Reason: fmt.Sprintf("the log has %d events and had %d", info.Seq, have)}
	}
	var drafts []event.Draft
	for ev, err := range eventlog.Scan(ctx, c.set.store, eventlog.Query{Life: c.life(), From: have, To: info.Seq}) {
		if err != nil {
			return notFound(err)
		}
		drafts = append(drafts, event.Draft{Event: ev})
		if len(drafts) == catchUpEvents || ev.Seq == info.Seq-1 {
			if err := c.adopt(ctx, drafts); err != nil {
				return err
			}
			drafts = drafts[:0]
		}
	}
	if have := c.seq(); have < info.Seq {
		return &eventlog.CorruptError{ID: c.s.id, Seq: have, Reason: "the event is missing"}
	}
	return nil
}

// adopt applies and publishes events that the store has and the session has not.
func (c *core) adopt(ctx context.Context, drafts []event.Draft) error {
	plans, err := c.plan(ctx, drafts, nil)
	if refused, ok := err.(*event.IndexError); ok {
		return damage(c.s.id, drafts[refused.Index].Seq, refused.Err)
	}
	if err != nil {
		return err
	}
	events := undraft(drafts)
	c.apply(events, plans)
	c.publish(ctx, events)
	return nil
}

// undraft copies the events out of drafts, as what is handed out must not change when drafts are used again.
func undraft(drafts []event.Draft) []event.Event {
	events := make([]event.Event, len(drafts))
	for i := range drafts {
		events[i] = drafts[i].Event
	}
	return events
}

// apply makes committed events part of what readers see.
func (c *core) apply(events []event.Event, plans []surface.Plan) {
	c.mu.Lock()
	for i := range events {
		c.planner.m.Apply(plans[i])
		c.messages.add(&events[i], c.set.o.MaxMessageBytes)
	}
	due := c.keepSurface(events)
	c.mu.Unlock()
	if due {
		c.saveSurface()
	}
}
