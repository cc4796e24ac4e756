package session

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/surface"
)

// Bounds of what shares a commit: enough that the sync is not what limits, and little enough that the first of them does not wait for long.
const (
	groupRequests = 256
	groupBytes    = 4 << 20
)

// request is an append that stands in line. What it says is set by whoever took it from the line, before done is closed.
type request struct {
	ctx    context.Context
	drafts []event.Draft
	on     condition
	// alone: nothing else may be in its commit, as its caller says or because it replaces nodes, which those before it in the commit might change.
	alone bool

	state  atomic.Int32
	done   chan struct{}
	commit eventlog.Commit
	events []event.Event
	// err is errAgain when the core ended before it was this request's turn.
	err error
}

// The states of a request: whoever moves it on from waiting decides whether its caller may leave.
const (
	waiting int32 = iota
	taken
	left
)

// errAgain sends a request to the core that follows.
var errAgain = errors.New("session: the core has ended")

// errBroken is for those whose commit ended in a panic, which goes on in the goroutine that made it.
var errBroken = errors.New("session: the commit was broken off by a panic, and what it has written is not known")

func (r *request) leave() bool { return r.state.CompareAndSwap(waiting, left) }

func (r *request) finish(commit eventlog.Commit, events []event.Event, err error) {
	if r.finished() {
		return
	}
	r.commit, r.events, r.err = commit, events, err
	close(r.done)
}

func (r *request) finished() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// append appends drafts that have passed every check that needs no session. Who finds the turn free commits at once. The others stand in line, and
// whoever gets the turn next commits what has come together there, in order and each as if it were alone.
func (s *Session) append(ctx context.Context, drafts []event.Draft, on condition, alone bool) (eventlog.Commit, []event.Event, error) {
	if s.within(ctx) {
		return eventlog.Commit{}, nil, &ReentrantError{ID: s.id}
	}
	for {
		c, err := s.touch(ctx)
		if err != nil {
			return eventlog.Commit{}, nil, err
		}
		commit, events, err := c.appendInTurn(ctx, drafts, on, alone)
		if err != errAgain {
			return commit, events, err
		}
		if s.set.closed.Load() {
			return eventlog.Commit{}, nil, ErrClosed
		}
	}
}

// appendInTurn ends the touch. Its error is errAgain when the core has ended.
func (c *core) appendInTurn(ctx context.Context, drafts []event.Draft, on condition, alone bool) (eventlog.Commit, []event.Event, error) {
	hasTurn := false
	defer func() {
		if hasTurn {
			c.leave()
		} else {
			c.slot.release()
		}
	}()
	select {
	case c.turn <- struct{}{}:
		hasTurn = true
		if c.over() {
			return eventlog.Commit{}, nil, errAgain
		}
		if !c.hasLine() {
			return c.append(ctx, drafts, on)
		}
	default:
	}
	replaces := slices.ContainsFunc(drafts, func(d event.Draft) bool { return d.Op.Kind == event.OpReplace })
	r := &request{ctx: ctx, drafts: slices.Clone(drafts), on: on, alone: alone || replaces, done: make(chan struct{})}
	c.queue(r)
	if !hasTurn {
		select {
		case <-r.done:
			return r.commit, r.events, r.err
		case <-ctx.Done():
			if r.leave() {
				return eventlog.Commit{}, nil, ctx.Err()
			}
			<-r.done
			return r.commit, r.events, r.err
		case c.turn <- struct{}{}:
			hasTurn = true
		}
	}
	for !c.over() && !r.finished() {
		c.commitTogether(c.nextGroup())
	}
	if r.leave() {
		return eventlog.Commit{}, nil, errAgain
	}
	return r.commit, r.events, r.err // taken by somebody who had the turn, and so finished
}

// over says that the core takes no more appends. The turn is held.
func (c *core) over() bool { return c.ended || c.set.closed.Load() }

func (c *core) queue(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.line = append(c.line, r)
}

func (c *core) hasLine() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.line) > 0
}

// nextGroup takes from the line what can share a commit, or the one request that cannot. The turn is held. A hook that is added later counts from the next group.
func (c *core) nextGroup() []*request {
	if c.grouped > 1 {
		// Those who were just answered are about to come back; without this the first of them would have a commit for itself, every other time.
		runtime.Gosched()
	}
	shared := c.set.grouper != nil && len(c.set.hooks.all()) == 0
	c.mu.Lock()
	defer c.mu.Unlock()
	var group []*request
	var keys map[string]bool
	size := 0
	for len(c.line) > 0 {
		r := c.line[0]
		fits := len(group) == 0 || shared && !r.alone && len(group) < groupRequests && size < groupBytes && !keys[r.on.once.Key]
		if !fits {
			break
		}
		c.line[0] = nil
		c.line = c.line[1:]
		if !r.state.CompareAndSwap(waiting, taken) {
			continue // its caller has left
		}
		group = append(group, r)
		if r.alone {
			break
		}
		for i := range r.drafts {
			size += len(r.drafts[i].Data)
		}
		if r.on.once.Key != "" {
			if keys == nil {
				keys = make(map[string]bool)
			}
			keys[r.on.once.Key] = true
		}
	}
	if len(c.line) == 0 {
		c.line = nil
	}
	c.grouped = len(group)
	return group
}

// commitTogether answers the requests of a group. The turn is held.
func (c *core) commitTogether(group []*request) {
	defer func() {
		for _, r := range group { // none, unless something panicked, and then nobody knows what was committed
			r.finish(eventlog.Commit{}, nil, errBroken)
		}
	}()
	if len(group) == 1 || !c.share(group) {
		for _, r := range group {
			c.commitOne(r)
		}
	}
}

func (c *core) commitOne(r *request) {
	switch {
	case r.finished():
	case c.ended:
		r.finish(eventlog.Commit{}, nil, errAgain)
	case r.ctx.Err() != nil:
		r.finish(eventlog.Commit{}, nil, r.ctx.Err())
	default:
		r.finish(c.append(r.ctx, r.drafts, r.on))
	}
}

// share commits a group at once. False says that nothing was written, or that the log is known again, and that those who have no answer are to be tried one by one: what was
// refused may have been refused because of one before it that was not committed in the end.
func (c *core) share(group []*request) bool {
	g := c.planGroup(group)
	if len(g.accepted) < 2 {
		return false
	}
	ctx, cancel := g.context()
	defer cancel()
	commits, err := c.set.grouper.AppendGroup(ctx, g.batches)
	if err != nil {
		var refused *eventlog.GroupError
		if errors.As(err, &refused) || nothingWritten(err) {
			return false
		}
		err = c.failed(ctx, err)
		for _, r := range g.accepted {
			r.finish(eventlog.Commit{}, nil, err)
		}
		return false
	}
	at := 0
	for i, r := range g.accepted {
		events := g.batches[i].Events
		c.apply(events, g.plans[at:at+len(events)])
		at += len(events)
		c.set.stats.committed(len(events))
		c.publish(r.ctx, events)
		r.finish(commits[i], events, nil)
	}
	for r, err := range g.refused {
		r.finish(eventlog.Commit{}, nil, err)
	}
	return true
}

// group is a plan to commit several requests at once.
type group struct {
	accepted []*request
	batches  []eventlog.Batch
	// plans are those of all events of accepted, in order.
	plans []surface.Plan
	// refused are told when what was accepted before them is committed.
	refused map[*request]error
}

// context ends when those of all who were accepted have ended: until then somebody wants the commit.
func (g *group) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(g.accepted[0].ctx))
	var there atomic.Int64
	there.Store(int64(len(g.accepted)))
	var stops []func() bool
	for _, r := range g.accepted {
		stops = append(stops, context.AfterFunc(r.ctx, func() {
			if there.Add(-1) == 0 {
				cancel()
			}
		}))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}

// planGroup accepts requests as append does, each on top of those before it, and changes nothing that anybody could see. None of them replaces anything, so what
// one is planned for is a seq and nothing else: one that is refused is as if it had not come.
func (c *core) planGroup(requests []*request) *group {
	g := &group{refused: map[*request]error{}}
	next := c.seq()
	for _, r := range requests {
		events, err := c.accept(r, next, g)
		if r.finished() {
			continue
		}
		if err != nil {
			g.refused[r] = err
			continue
		}
		g.accepted = append(g.accepted, r)
		g.batches = append(g.batches, eventlog.Batch{Life: c.life(), Events: events, Key: r.on.once.Key, Digest: r.on.once.Digest, Answer: r.on.answer})
		next += int64(len(events))
	}
	return g
}

// accept checks one request, in the order of append. Those that need no commit are answered.
func (c *core) accept(r *request, next int64, g *group) ([]event.Event, error) {
	if err := r.ctx.Err(); err != nil {
		r.finish(eventlog.Commit{}, nil, err)
		return nil, nil
	}
	if r.on.once.Key != "" {
		if commit, events, known, err := c.repeated(r.ctx, r.on.once); known || err != nil {
			r.finish(commit, events, err)
			return nil, nil
		}
	}
	if err := c.number(r.drafts, r.on, next); err != nil {
		return nil, err
	}
	c.mu.Lock()
	plans, err := c.planner.m.PlanAhead(next, r.drafts, g.plans)
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	events := undraft(r.drafts)
	if err := c.ask(r.ctx, c.set.guards.all(), events); err != nil {
		return nil, err
	}
	g.plans = plans
	return events, nil
}
