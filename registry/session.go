package registry

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/event"
)

// Session is the registry's side of one live session. Publish and Detach are called by the session's owner, one at a time; every
// other method may be called concurrently.
//
// mu guards all that follows it. It is held while in-process cells fold an event, and never across a read of the log or a
// call of an instance. What makes each event count once, whatever runs at the same time:
//
//   - Publish moves the head under mu, one seq at a time. An event at or below the head is skipped; a gap sends every cell to the log.
//   - A live in-process cell folds in Publish, under mu. Any other cell is only told that an event is due.
//   - The builder and the lanes read the log from a cell's position to the head as it was, without mu, and move the position under mu.
//     They read again until nothing is due; only then, under mu, does a cell become live. So nothing is queued, and whether an
//     event was committed before, during or after a read decides only which read finds it.
type Session struct {
	r    *Registry
	log  Log
	id   string
	rows Rows
	// setName never changes; set does when the name is given members. Registry.mu guards storing it.
	setName string
	set     atomic.Pointer[set]
	// folded is what Folded gives; since is the head at Attach.
	folded atomic.Int64
	since  int64
	// ctx ends with Detach; wg counts the goroutines that work for the session.
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	head   int64
	plan   *plan
	slots  []slot // by place in plan.units
	closed bool
	// leaving counts the slots with a next cell.
	leaving int
	// removal is the highest revision of the keys that were told to be gone.
	removal int64
	// building says that the builder's goroutine runs.
	building bool
	lanes    map[*process]*lane
	pin      *pin
	nextPin  *pin
}

// slot is what a session keeps for one key: the cell that serves and, during a takeover or upgrade, the one that will.
type slot struct {
	cur, next *cell
	// fresh: no event of the unit's types has happened in this session yet, so a cell needs nothing from the log.
	fresh bool
}

// Attach starts the cells of a live session. head is the seq of its last event, rows what was stored for it. It reads nothing and makes no
// cell; rows are looked at when a cell is built.
func (r *Registry) Attach(log Log, set string, head int64, rows Rows) *Session {
	s := &Session{r: r, log: log, id: log.ID(), setName: set, rows: rows, head: head, since: head, plan: &plan{}, lanes: map[*process]*lane{}}
	s.ctx, s.cancel = context.WithCancel(r.ctx)
	r.mu.Lock()
	s.set.Store(r.setLocked(set))
	s.closed = r.closed
	if !r.closed {
		r.sessions[s] = struct{}{}
	}
	r.mu.Unlock()
	s.mu.Lock()
	s.follow()
	s.mu.Unlock()
	return s
}

// Publish tells what was committed, in log order and once. It reads nothing and waits for nobody: in-process cells fold here, the
// others get a doorbell.
func (s *Session) Publish(ctx context.Context, events []event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.plan != s.set.Load().plan.Load() {
		s.follow()
	}
	for i := range events {
		ev := &events[i]
		if ev.Seq != s.head+1 {
			if ev.Seq <= s.head {
				continue
			}
			s.gap(ev.Seq)
		}
		s.head = ev.Seq
		if len(s.plan.byType[ev.Type]) > 0 || len(s.plan.every) > 0 {
			s.folded.Add(1)
		}
		for _, k := range s.plan.byType[ev.Type] {
			s.deliver(k, ev)
		}
		for _, k := range s.plan.every {
			s.deliver(k, ev)
		}
		if s.leaving > 0 {
			s.deliverLeaving(ev)
		}
	}
}

// Folded says how much a checkpoint of now is ahead of the rows of Attach: it counts the events published since then that some unit folds, once each,
// and those of before that a cell had to fold from the log, once for each such cell.
func (s *Session) Folded() int64 { return s.folded.Load() }

// deliver gives an event to the cells of one key. The first event of a session makes its cell.
func (s *Session) deliver(k int, ev *event.Event) {
	sl := &s.slots[k]
	if sl.cur == nil {
		s.begin(k, ev.Seq)
	}
	sl.fresh = false
	if n := sl.next; n != nil {
		s.advance(k, n, ev)
	} else {
		s.advance(k, sl.cur, ev)
	}
}

// deliverLeaving gives an event to the cells that serve until their successors can: the plan knows only what those fold.
func (s *Session) deliverLeaving(ev *event.Event) {
	for k := range s.slots {
		if sl := &s.slots[k]; sl.next != nil && sl.cur.b.Folds(ev.Type) {
			s.advance(k, sl.cur, ev)
		}
	}
}

// countLeaving is to be called when a successor came or went.
func (s *Session) countLeaving() {
	s.leaving = 0
	for k := range s.slots {
		if s.slots[k].next != nil {
			s.leaving++
		}
	}
}

func (s *Session) advance(k int, c *cell, ev *event.Event) {
	switch {
	case c.fault != nil:
	case c.live:
		s.apply(k, c, ev)
	case c.b.inline():
		c.due = ev.Seq
		if !c.frozen {
			s.ringBuilder()
		}
	default:
		s.doorbell(k, c, ev.Seq)
	}
}

// apply folds one event into a live cell.
func (s *Session) apply(k int, c *cell, ev *event.Event) {
	tell := c == s.slots[k].cur && ev.Seq >= c.emitFrom && !c.b.HostOnly() && s.r.feed.listening()
	if tell && c.dirty {
		// The gate compares with the view before this event.
		if _, err := c.refresh(); err != nil {
			s.fail(k, c, c.changed, err.Error())
			return
		}
	}
	var began time.Time
	sample := c.b.counts.event()
	if sample {
		began = time.Now()
	}
	next, changed, err := c.b.Inline.Apply(c.state, ev)
	if sample {
		c.b.counts.eventSeconds.Took(time.Since(began))
	}
	if err != nil {
		s.fail(k, c, ev.Seq, err.Error())
		return
	}
	c.pos, c.due = ev.Seq, ev.Seq
	if changed {
		c.state, c.dirty, c.changed = next, true, ev.Seq
		if tell {
			differs, err := c.refresh()
			if err != nil {
				s.fail(k, c, ev.Seq, err.Error())
				return
			}
			if differs {
				s.tellValue(c, ev.Seq)
			}
		}
	}
	if c.history.fold(1) {
		c.history.keep(past{seq: ev.Seq, state: c.state})
	}
}

// gap is an event that does not follow the head: what is between is in the log, so every cell goes there for it.
func (s *Session) gap(seq int64) {
	s.r.o.Logger.Warn("events were not published; cells read them from the log", "session", s.id, "head", s.head, "next", seq)
	s.head = seq - 1
	for k := range s.slots {
		sl := &s.slots[k]
		sl.fresh = false
		for _, c := range [...]*cell{sl.cur, sl.next} {
			if c != nil && c.fault == nil {
				if !c.trails() {
					c.behind = s.r.sinceStart()
				}
				c.due, c.live = s.head, false
				s.drive(c)
			}
		}
	}
}

// drive makes whoever is to move the cell look at it.
func (s *Session) drive(c *cell) {
	switch {
	case c.gone || c.frozen || c.fault != nil || s.closed:
	case c.b.inline():
		if !c.live {
			s.ringBuilder()
		}
	default:
		s.ringLane(c)
	}
}

// touch gives the cell of a key, made if need be; what has happened up to now stays untold.
func (s *Session) touch(k int) *cell {
	if s.slots[k].cur == nil {
		s.begin(k, s.head+1)
		s.drive(s.slots[k].cur)
	}
	return s.slots[k].cur
}

// begin makes the first cell of a key.
func (s *Session) begin(k int, emitFrom int64) {
	c := s.makeCell(k, emitFrom)
	s.slots[k].cur = c
	if c.fault != nil {
		s.tellDown(c, *c.fault)
	}
}

// fail ends a cell, in this session only, at an event.
func (s *Session) fail(k int, c *cell, seq int64, why string) {
	if c.fault != nil || c.gone {
		return
	}
	c.fault = faulted(seq, why)
	c.live, c.state, c.val, c.rebuilt = false, nil, nil, nil
	s.forget(c)
	c.b.counts.faults.Add(1)
	s.tellFault(c, seq, why)
	if c == s.slots[k].cur {
		s.tellDown(c, *c.fault)
	}
	s.settle(k)
}

// tellFault logs the end of a cell, once.
func (s *Session) tellFault(c *cell, seq int64, why string) {
	s.r.o.Logger.Warn("a unit failed and is not folded further in this session", "session", s.id, "plugin", c.b.by.Plugin, "unit", c.b.Key, "seq", seq, "poison", c.poison, "reason", why)
}

// condemn ends a cell because a value that was about to leave is not what it must be. No lock is held.
func (s *Session) condemn(c *cell, v *value, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.plan.index[c.b.Key]; ok && (s.slots[k].cur == c || s.slots[k].next == c) {
		s.fail(k, c, v.seq, err.Error())
	}
}

// settle looks at what became possible for a key after one of its cells moved.
func (s *Session) settle(k int) {
	sl := &s.slots[k]
	if sl.next != nil {
		s.maybeSwitch(k)
	}
	s.tellBack(k, sl.cur)
	s.capture(k) // after the new revision that a recovery brings
}

// tellBack tells the value of a key whose absence was told, once it has come to where the head was then. Where the head is by now does
// not matter: a busy session may never stand at it.
func (s *Session) tellBack(k int, c *cell) {
	if c == nil || !c.announce || c.fault != nil || !c.ready() || c.b.inline() && !c.live || c.reached(s.head) < c.owed {
		return
	}
	c.announce = false
	s.renew(c)
	if c.b.HostOnly() {
		return
	}
	if _, err := c.refresh(); err != nil {
		s.fail(k, c, c.changed, err.Error())
		return
	}
	if c.val != nil {
		s.tellValue(c, c.val.seq)
	}
}

// renew gives the cell a new revision: its value is no longer the one that the old revision stood for.
func (s *Session) renew(c *cell) {
	c.rev = s.r.revs.Add(1)
	c.b.raise(c.rev)
	if b := s.plan.binding(c.b.Key); b != nil && b != c.b {
		s.outdo(b, c.rev)
	}
}

// outdo makes sure that what a binding says from now on counts as newer than what was told of its key at rev, by another one or as its
// removal. Cells that change places see to it by themselves, but the session may go cold before.
func (s *Session) outdo(b *binding, rev int64) {
	if b.revision() <= rev {
		b.raise(s.r.revs.Add(1))
	}
}

func (s *Session) tellValue(c *cell, seq int64) {
	if s.r.feed.listening() {
		s.r.feed.post(&post{s: s, cell: c, value: c.val, change: Change{Session: s.id, Incarnation: s.log.Incarnation(), Kind: KindValue, Key: c.b.Key, Seq: seq, Rev: c.rev}})
	}
}

// owe notes that somebody was told that a cell trails.
func (s *Session) owe(c *cell) {
	if !c.announce {
		c.announce, c.owed = true, s.head
	}
}

func (s *Session) tellDown(c *cell, down Unavailable) {
	s.owe(c)
	if !c.b.HostOnly() {
		s.r.feed.post(&post{change: Change{Session: s.id, Incarnation: s.log.Incarnation(), Kind: KindUnavailable, Key: c.b.Key, Seq: down.Seq, Rev: c.rev, Unavailable: &down}})
	}
}

// spawn runs a goroutine for the session. mu is held and the session is not closed.
func (s *Session) spawn(f func()) {
	s.wg.Add(1)
	s.r.wg.Add(1)
	go func() {
		defer s.r.wg.Done()
		defer s.wg.Done()
		f()
	}()
}

// Detach is the last call: the session goes cold, or is deleted. It waits for what works for the session, lets instances drop its cells, and
// makes every reader that waits return ErrDetached. What listeners have not heard yet of a deleted session they do not hear any more, but for
// the one change that may be on its way: there may be another of its name soon. More than once is harmless.
func (s *Session) Detach(deleted bool) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.wg.Wait()
		return
	}
	s.follow() // what was told here must be outdone by whoever comes next
	s.closed = true
	for k := range s.slots {
		s.drop(s.slots[k].cur)
		s.drop(s.slots[k].next)
	}
	s.slots, s.plan = nil, &plan{gen: s.plan.gen}
	s.wakeReaders()
	farewells := s.farewells()
	s.mu.Unlock()
	// Not before it is closed: Registry.Close waits for what it finds.
	s.r.mu.Lock()
	delete(s.r.sessions, s)
	s.r.mu.Unlock()
	if deleted {
		s.r.feed.forget(s.id)
	}
	s.cancel()
	for _, f := range farewells {
		f()
	}
	s.wg.Wait()
}

// drop forgets a cell.
func (s *Session) drop(c *cell) {
	if c == nil || c.gone {
		return
	}
	s.forget(c)
	c.gone, c.live, c.state, c.val, c.rebuilt, c.base = true, false, nil, nil, nil, nil
	c.history = history{}
}

// bindings gives the session's computing bindings, sorted by key, narrowed to keys when there are any, with the head that they
// belong to; client-visible ones only unless hostOnly.
func (s *Session) bindings(hostOnly bool, keys ...string) (bs []*binding, head int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.follow()
	}
	for _, k := range s.places(hostOnly, keys) {
		bs = append(bs, s.plan.units[k])
	}
	return bs, s.head
}

// places gives the places of the keys, of all when there are none, in the order of keys. mu is held. The result is not to be changed.
func (s *Session) places(hostOnly bool, keys []string) []int {
	if len(keys) == 0 && !hostOnly {
		return s.plan.visible
	}
	var ks []int
	for k, b := range s.plan.units {
		if (hostOnly || !b.HostOnly()) && (len(keys) == 0 || has(keys, b.Key)) {
			ks = append(ks, k)
		}
	}
	return ks
}

func has(keys []string, key string) bool {
	for _, k := range keys {
		if k == key {
			return true
		}
	}
	return false
}

// bestRow gives the latest state at or below seq that is kept in memory for a key, as the computing binding of now encodes it. It is of
// this life of the log, so it has no anchor and needs none; ok is false when there is nothing but the rows of Attach.
func (s *Session) bestRow(key string, seq int64) (row Row, ok bool) {
	s.mu.Lock()
	k, found := s.plan.index[key]
	if !found || s.slots[k].cur == nil || s.slots[k].cur.b != s.plan.units[k] {
		s.mu.Unlock()
		return Row{}, false
	}
	c := s.slots[k].cur
	b := c.b
	p, ok := c.history.best(seq)
	if c.live && c.pos <= seq && (!ok || p.seq < c.pos) {
		p, ok = past{seq: c.pos, state: c.state}, true
	}
	s.mu.Unlock()
	if !ok {
		return Row{}, false
	}
	raw := p.raw
	if b.inline() {
		var err error
		if raw, err = b.Inline.Encode(p.state); err != nil {
			return Row{}, false
		}
	}
	return Row{Ver: b.StateVersion, Def: b.Digest, Seq: p.seq, Val: json.RawMessage(raw)}, true
}
