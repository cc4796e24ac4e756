package session

import (
	"context"
	"fmt"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/surface"
)

// planner is the surface manager of a session. It plans without I/O, so that it can do so under a lock: the tool results that a plan compares
// with are read before.
type planner struct {
	m *surface.Manager
	// rewritten are those events by seq while a plan is being made, else nil: a session at rest holds no event.
	rewritten map[int64]event.Event
}

func newPlanner() *planner {
	p := &planner{}
	p.m = surface.NewManager(0, p.reader())
	return p
}

// reader gives the events that were read before planning.
func (p *planner) reader() surface.EventReader {
	return func(seq int64) (event.Event, error) {
		if ev, ok := p.rewritten[seq]; ok {
			return ev, nil
		}
		return event.Event{}, fmt.Errorf("event %d was not read before planning", seq)
	}
}

// rewrites says whether planning d compares it with the one node that it names. Whether there is such a node is for the surface to say.
func rewrites(d *event.Draft) bool {
	return d.Type == event.ToolResult && d.Op.Kind == event.OpReplace && d.Op.Start == d.Op.End
}

// plan plans drafts, each on top of those before it, and appends the plans to plans. One draft, the usual case, is planned on the surface as it is.
// Refusals are *event.IndexError.
func (p *planner) plan(drafts []event.Draft, rewritten map[int64]event.Event, plans []surface.Plan) ([]surface.Plan, error) {
	p.rewritten = rewritten
	defer func() { p.rewritten = nil }()
	if len(drafts) > 1 {
		return p.m.PlanBatch(drafts, plans)
	}
	plan, err := p.m.Plan(&drafts[0])
	if err != nil {
		return plans, &event.IndexError{Err: err}
	}
	return append(plans, plan), nil
}

// accept plans d and carries the plan out: for logs that are being read, which nobody else sees yet. read gives one event of that log.
func (p *planner) accept(d *event.Draft, read func(seq int64) (event.Event, error)) error {
	p.rewritten = nil
	if rewrites(d) && p.m.Contains(d.Op.Start) {
		ev, err := read(d.Op.Start)
		if err != nil {
			return err
		}
		p.rewritten = map[int64]event.Event{d.Op.Start: ev}
	}
	plan, err := p.m.Plan(d)
	p.rewritten = nil
	if err == nil {
		p.m.Apply(plan)
	}
	return err
}

// readRewritten reads the events that planning drafts compares with: nodes of the log from the store, others are among the drafts. The turn is held.
func (c *core) readRewritten(ctx context.Context, drafts []event.Draft) (map[int64]event.Event, error) {
	var found map[int64]event.Event
	base := drafts[0].Seq
	for i := range drafts {
		if !rewrites(&drafts[i]) {
			continue
		}
		if found == nil {
			found = make(map[int64]event.Event)
		}
		seq := drafts[i].Op.Start
		if _, known := found[seq]; known {
			continue
		}
		if seq >= base {
			if seq < base+int64(i) {
				found[seq] = drafts[seq-base].Event
			}
			continue
		}
		c.mu.Lock()
		isNode := c.planner.m.Contains(seq)
		c.mu.Unlock()
		if !isNode {
			continue
		}
		ev, err := c.set.readOne(ctx, c.life(), seq)
		if err != nil {
			return nil, fmt.Errorf("read the event that is to be replaced: %w", notFound(err))
		}
		found[seq] = frame(&ev)
	}
	return found, nil
}

// frame is a tool/result without its content, which no rewrite is compared with and which is most of a log; other events stay as they are.
func frame(e *event.Event) event.Event {
	f := *e
	if e.Type == event.ToolResult {
		f.Data = surface.Frame(e.Data)
	}
	return f
}

// readOne reads one event of a log from the store.
func (t *Set) readOne(ctx context.Context, l eventlog.Life, seq int64) (event.Event, error) {
	for ev, err := range eventlog.Scan(ctx, t.store, eventlog.Query{Life: l, From: seq, To: seq + 1, Limit: 1}) {
		return ev, err
	}
	return event.Event{}, &eventlog.CorruptError{ID: l.ID, Seq: seq, Reason: "the event is missing"}
}
