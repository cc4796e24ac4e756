package registry

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// lane drives the cells of one session that live in one process. What it has to do is never queued: it is the range of seqs between
// where its cells were sent and the head. Its worker is there only while there is something to submit; a publish, an answer, a
// pin, a new process ring it. Session.mu guards it.
type lane struct {
	s *Session
	p *process
	// working says that the worker's goroutine runs.
	working bool
	// flights are submitted and not settled, in the order of submission. Answers are settled in that order.
	flights []*flight
	// drops are cells that the process may forget.
	drops []unit.CellID
	// turn alternates between the cells that follow the head and those that are being built.
	turn bool
	// page are events read for a suspect and not tried yet.
	page *suspectPage
}

type suspectPage struct {
	c      *cell
	epoch  int
	events []event.Event
}

// flight is one batch in flight.
type flight struct {
	lane     *lane
	parts    []part
	through  int64
	step     step
	cancel   context.CancelFunc
	answered atomic.Bool
	reply    *unit.Reply
	// since is when it was handed over, took how long the answer was away.
	since time.Time
	took  time.Duration
}

func (f *flight) careful() bool { return f.step != together }

// part is one cell of a flight.
type part struct {
	c  *cell
	id unit.CellID
	// after is where it stood before; from, where it was opened.
	after  int64
	opened bool
	from   int64
	state  bool
	folded int
}

// stretch is something to submit: cells, and the range to read for them.
type stretch struct {
	cells    []*cell
	epochs   []int
	from, to int64
	types    []string
	mode     unit.Mode
	step     step
	// seed: the one cell is to be seeded first.
	seed bool
}

// doorbell notes that an event is due for a cell in an instance. mu is held.
func (s *Session) doorbell(k int, c *cell, seq int64) {
	// A cell to which nothing was due stands at the head, so at the event before this one. It is not moved past a pin that it has still to be
	// captured at: a flight may be out, and who lands behind the pin is never captured.
	here := min(seq-1, s.limit(k))
	if c.at != nil && c.due <= c.sent {
		c.sent = max(c.sent, here)
	}
	if c.at != nil && c.due <= c.pos {
		c.pos = max(c.pos, here)
	}
	if c.known && c.due <= c.pub {
		c.behind = s.r.sinceStart()
		c.pub = max(c.pub, here)
	}
	c.due = seq
	if !c.announce && c == s.slots[k].cur {
		if _, down := c.b.process(); down != nil {
			d := *down
			d.Seq = c.pub
			s.tellDown(c, d)
		}
	}
	if !c.frozen {
		s.ringLane(c)
	}
}

// ringLane rings the lane of a cell. mu is held.
func (s *Session) ringLane(c *cell) {
	p, down := c.b.process()
	if p == nil || down != nil || s.closed {
		return
	}
	if c.at != nil && c.at != p {
		s.depart(c)
	}
	l := s.lanes[p]
	if l == nil {
		l = &lane{s: s, p: p}
		s.lanes[p] = l
	}
	if c.suspicion != nil {
		s.suspect(c, p)
	}
	l.ring()
}

// ring starts the worker unless it runs. mu is held.
func (l *lane) ring() {
	if !l.working && !l.s.closed {
		l.working = true
		l.s.spawn(l.work)
	}
}

// changed looks again at who serves a binding. mu is held.
func (s *Session) changed(b *binding) {
	k, ok := s.plan.index[b.Key]
	if !ok {
		return
	}
	for _, c := range [...]*cell{s.slots[k].cur, s.slots[k].next} {
		if c == nil || c.b != b || c.fault != nil {
			continue
		}
		s.tellTrailing(k, c)
		if _, down := b.process(); down != nil {
			s.standAside(c)
		}
		s.drive(c)
		s.settle(k)
	}
	s.wakeReaders()
}

// succeeded gives the cells that failed in a process to its successor. mu is held.
func (s *Session) succeeded(b *binding) {
	if k, ok := s.plan.index[b.Key]; ok && s.slots[k].cur != nil && s.slots[k].cur.b == b {
		s.tryAgain(k)
	}
}

// bereaved takes note that a process died: its cells are to be opened in the next one. mu is held.
func (s *Session) bereaved(p *process) {
	delete(s.lanes, p)
	for k := range s.slots {
		was := false
		for _, c := range [...]*cell{s.slots[k].cur, s.slots[k].next} {
			if c != nil && c.at == p {
				s.reopen(c)
				s.tellTrailing(k, c)
				was = true
			}
		}
		if was {
			s.settle(k) // who waits for a successor that was lost goes on
		}
	}
	s.wakeReaders()
}

// tellTrailing says on the feed that a cell trails because nobody serves it.
func (s *Session) tellTrailing(k int, c *cell) {
	_, down := c.b.process()
	if down == nil || c.announce || c != s.slots[k].cur || c.known && c.due <= c.pub {
		return
	}
	d := *down
	d.Seq = c.pub
	s.tellDown(c, d)
}

// reopen makes a cell start again from its last row. Its value stays. mu is held.
func (s *Session) reopen(c *cell) {
	if c.id != 0 {
		c.lastID = c.id
	}
	c.id, c.at = 0, nil
	c.epoch++
	c.pos, c.sent = c.start, c.start
	if c.base != nil {
		c.pos, c.sent = c.base.Seq, c.base.Seq
	}
	c.replaying, c.rebuilt, c.sinceRow = c.known, nil, 0
}

// forget takes a cell out of its process, if it is in one. mu is held.
func (s *Session) forget(c *cell) {
	if c.b.inline() {
		return
	}
	s.acquit(c)
	s.depart(c)
}

// depart makes a cell start again elsewhere. What its process does from now on does not speak against it.
func (s *Session) depart(c *cell) {
	if c.at != nil {
		if l := s.lanes[c.at]; l != nil {
			l.drops = append(l.drops, c.id)
			l.ring()
		}
	}
	s.reopen(c)
	c.lastID = 0
}

// farewells gives what to tell the processes at the end of a session. mu is held; they are called without it.
func (s *Session) farewells() (calls []func()) {
	for p, l := range s.lanes {
		drops := l.drops
		calls = append(calls, p.admit)
		if len(drops) > 0 && p.death() == nil {
			ctx, cancel := context.WithTimeout(s.r.ctx, s.r.o.BatchDeadline)
			calls = append(calls, func() {
				p.submit(ctx, unit.Batch{Drop: drops}, func(unit.Reply) { cancel() })
			})
		}
	}
	return calls
}

// work is the worker.
func (l *lane) work() {
	s := l.s
	var trouble backoff
	for {
		s.mu.Lock()
		w := l.next()
		if w == nil {
			l.working = false
			l.retire()
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if w.seed {
			if err := l.seed(w.cells[0]); err != nil && !l.pause(&trouble, err) {
				return
			}
			continue
		}
		var events []event.Event
		next := w.to + 1
		if w.from <= w.to {
			var err error
			if events, next, err = l.read(w); err != nil {
				if !l.pause(&trouble, err) {
					return
				}
				continue
			}
		}
		trouble = backoff{}
		s.mu.Lock()
		f, b := l.prepare(w, events, min(next-1, w.to))
		if f == nil {
			s.mu.Unlock()
			continue
		}
		if !l.p.enter(f) {
			l.working = false
			s.mu.Unlock()
			return
		}
		l.launch(f)
		ctx, cancel := context.WithTimeout(s.r.ctx, s.r.o.BatchDeadline)
		f.cancel = cancel
		s.mu.Unlock()
		l.p.submit(ctx, b, func(r unit.Reply) { l.answer(f, r) })
	}
}

// pause is a try to read the log that failed. Other sessions must not wait meanwhile for suspects of this one.
func (l *lane) pause(trouble *backoff, err error) (goOn bool) {
	s := l.s
	s.mu.Lock()
	for k := range s.slots {
		for _, c := range [...]*cell{s.slots[k].cur, s.slots[k].next} {
			if c != nil && c.suspectIn == l.p {
				s.standAside(c)
			}
		}
	}
	s.mu.Unlock()
	return trouble.wait(s, err)
}

// retire takes a lane away that has no cell any more. mu is held.
func (l *lane) retire() {
	s := l.s
	if len(l.flights) > 0 || len(l.drops) > 0 || s.lanes[l.p] != l || s.closed {
		return
	}
	for k := range s.slots {
		for _, c := range [...]*cell{s.slots[k].cur, s.slots[k].next} {
			if c == nil || c.b.inline() {
				continue
			}
			if p, _ := c.b.process(); p == l.p || c.at == l.p {
				return
			}
		}
	}
	delete(s.lanes, l.p)
}

// seed looks for the row that a cell starts from. No lock is held.
func (l *lane) seed(c *cell) error {
	row, err := l.s.usableRow(l.s.ctx, c.b)
	if err != nil {
		return err
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if !c.gone && !c.seeded {
		c.seeded, c.base = true, row
		l.s.reopen(c)
	}
	return nil
}

// next picks what to do; nil when there is nothing, or nothing is let in. mu is held.
func (l *lane) next() *stretch {
	s := l.s
	if s.closed || l.p.death() != nil {
		return nil
	}
	var cells []*cell
	var limits []int64
	for k := range s.slots {
		for _, c := range [...]*cell{s.slots[k].cur, s.slots[k].next} {
			if c == nil || c.b.inline() || c.fault != nil || c.frozen {
				continue
			}
			if p, down := c.b.process(); p != l.p || down != nil {
				continue
			}
			if !c.seeded {
				return &stretch{cells: []*cell{c}, seed: true}
			}
			if c.suspicion != nil {
				s.suspect(c, l.p) // it may have stood aside
			}
			cells, limits = append(cells, c), append(limits, s.limit(k))
		}
	}
	if l.p.isolating() {
		return l.nextSuspect(cells)
	}
	if len(l.flights) >= s.r.o.Window {
		return nil
	}
	return l.nextTogether(cells, limits)
}

// nextSuspect picks the next step with one suspect.
func (l *lane) nextSuspect(cells []*cell) *stretch {
	for _, c := range cells {
		if c.suspicion == nil {
			continue
		}
		if len(l.flights) > 0 {
			return nil // what is in flight comes first; its answer rings
		}
		st, to, done := nextStep(c.at != nil, c.sent, c.due, *c.suspicion)
		if done {
			l.s.acquit(c)
			return l.next()
		}
		w := &stretch{cells: []*cell{c}, epochs: []int{c.epoch}, from: c.sent + 1, to: to, types: c.b.Events, mode: unit.LastOnly, step: st}
		if c.replaying && c.sent < c.pub {
			w.to = min(w.to, c.pub)
		}
		if c.sent < c.emitFrom-1 {
			w.to = min(w.to, c.emitFrom-1)
		}
		return w
	}
	l.p.await(l)
	if !l.p.isolating() {
		return l.next() // the last suspect was cleared meanwhile, and the lane may not have been rung
	}
	return nil
}

// nextTogether picks cells that go together: those that follow the head, or those that are furthest behind.
func (l *lane) nextTogether(cells []*cell, limits []int64) *stretch {
	s := l.s
	var front, behind []*cell
	var frontRuns, behindRuns []run
	for i, c := range cells {
		if !l.needs(c, limits[i]) {
			continue
		}
		r := run{sent: c.sent, stop: stopAt(c.sent, limits[i], c.replaying, c.pub, c.emitFrom)}
		if r.stop < limits[i] || limits[i]-c.sent > int64(s.r.o.BatchEvents) {
			behind, behindRuns = append(behind, c), append(behindRuns, r)
		} else {
			front, frontRuns = append(front, c), append(frontRuns, r)
		}
	}
	w := &stretch{mode: unit.LastOnly}
	switch pickFront(len(front), len(behind), l.turn) {
	case true:
		l.turn = true
		w.to = math.MaxInt64
		for _, r := range frontRuns {
			w.to = min(w.to, r.stop)
		}
		w.from = w.to + 1
		for i, c := range front {
			if frontRuns[i].sent > w.to {
				continue // it is past a pin that another stops at
			}
			w.add(c)
			if c.due > c.sent {
				w.from = min(w.from, c.sent+1)
			}
		}
		if s.r.feed.listening() {
			w.mode = unit.EveryChange
		}
	case false:
		l.turn = false
		group, to := laggards(behindRuns)
		if len(group) == 0 {
			for i, c := range behind { // to be opened where they are
				if len(w.cells) == 0 || w.to == c.sent {
					w.add(c)
					w.from, w.to = behindRuns[i].sent+1, behindRuns[i].sent
				}
			}
			break
		}
		for _, i := range group {
			w.add(behind[i])
			w.from, w.to = behindRuns[i].sent+1, to
		}
	}
	if len(w.cells) == 0 && len(l.drops) == 0 {
		return nil
	}
	if len(w.cells) == 0 {
		w.from, w.to = 0, -1
	}
	return w
}

func (w *stretch) add(c *cell) {
	w.types = addTypes(w.types, c.b, len(w.cells) == 0)
	w.cells, w.epochs = append(w.cells, c), append(w.epochs, c.epoch)
}

// needs says whether there is something to submit for a cell: it is to be opened, events are due, or a pin wants its state.
func (l *lane) needs(c *cell, limit int64) bool {
	return c.at == nil || c.due > c.sent && c.sent < limit || l.s.wantsState(c, c.sent) != nil
}

// wantsState gives what a pin wants when the cell's state at seq would be an answer to it that was not asked for yet.
func (s *Session) wantsState(c *cell, seq int64) *wanted {
	p := s.pin
	if p == nil {
		return nil
	}
	w := p.want[c.b.Key]
	if w == nil || w.taken || !w.state || c.id != 0 && w.asked == c.id {
		return nil
	}
	if k := s.plan.index[c.b.Key]; s.slots[k].cur != c {
		return nil
	}
	if due := min(w.dueOf(c, p.at), max(c.due, 0)); seq < due && seq < p.at && c.due > seq {
		return nil
	}
	return w
}

// stopAt is how far a cell goes in one stretch: over what it folds again after a crash, then to where its changes begin to be
// told, so that there is a value to compare with, then to the limit.
func stopAt(sent, limit int64, replaying bool, pub, emitFrom int64) int64 {
	stop := limit
	if replaying && sent < pub {
		stop = min(stop, pub)
	}
	if sent < emitFrom-1 {
		stop = min(stop, emitFrom-1)
	}
	return max(stop, sent)
}

// pickFront says whether those that follow the head are next. They take turns with those that are being built, so that neither a
// long build delays the feed nor a busy session a build.
func pickFront(front, behind int, lastFront bool) bool {
	return front > 0 && (behind == 0 || !lastFront)
}

// read gives the events of a stretch; those of a suspect one at a time, from a page that is kept. No lock is held: the page belongs to
// the worker.
func (l *lane) read(w *stretch) ([]event.Event, int64, error) {
	if w.step != stepEvent {
		return l.s.read(l.s.ctx, w.from, w.to+1, w.types)
	}
	c := w.cells[0]
	g := l.page
	if g != nil && (g.c != c || g.epoch != w.epochs[0]) {
		g = nil
	}
	// An event leaves the page when the cell is past it, not when it is read: the flight may not be let in.
	for g != nil && len(g.events) > 0 && g.events[0].Seq < w.from {
		g.events = g.events[1:]
	}
	if g == nil || len(g.events) == 0 {
		events, next, err := l.s.read(l.s.ctx, w.from, w.to+1, w.types)
		if err != nil {
			return nil, 0, err
		}
		if len(events) == 0 {
			return nil, next, nil
		}
		g = &suspectPage{c: c, epoch: w.epochs[0], events: events}
		l.page = g
	}
	one := g.events[:1:1]
	return one, one[0].Seq + 1, nil
}

// prepare makes a flight and its batch of what was read, through being how far that goes. nil when there is nothing to submit: the
// cells then are moved, or something changed meanwhile. mu is held.
func (l *lane) prepare(w *stretch, events []event.Event, through int64) (*flight, unit.Batch) {
	s := l.s
	if s.closed || l.p.death() != nil {
		return nil, unit.Batch{}
	}
	if w.step != stepEvent && len(events) > 0 {
		n, size := s.r.o.BatchEvents, 0
		for _, c := range w.cells {
			n = min(n, c.b.batchEvents(s.r.o.BatchEvents))
		}
		for i := range events {
			size += len(events[i].Data) + 64
			if i > 0 && (i >= n || size > s.r.o.BatchBytes) {
				events, through = events[:i], events[i-1].Seq
				break
			}
		}
	}
	f := &flight{lane: l, through: through, step: w.step}
	b := unit.Batch{Events: events, Through: through, Mode: w.mode}
	for i, c := range w.cells {
		if c.gone || c.fault != nil || c.frozen || c.epoch != w.epochs[i] || (c.suspicion != nil) != (w.step != together) {
			continue
		}
		p := part{c: c, id: c.id, after: c.sent}
		if c.at == nil {
			p.opened, p.id = true, s.r.nextCell()
			o := unit.Open{Cell: p.id, Key: c.b.Key, Seq: -1}
			if c.base != nil {
				o.State, o.Seq = c.base.Val, c.base.Seq
			}
			p.from = o.Seq
			b.Open = append(b.Open, o)
		}
		for j := range events {
			if events[j].Seq > p.after && c.b.Folds(events[j].Type) {
				p.folded++
			}
		}
		if w.step == stepState || w.step == together && (c.sinceRow+p.folded >= rowEvery || s.wantsState(c, through) != nil) {
			p.state = true
			b.States = append(b.States, p.id)
		}
		b.Cells = append(b.Cells, p.id)
		f.parts = append(f.parts, p)
	}
	if len(f.parts) == 0 && (len(w.cells) > 0 || len(l.drops) == 0) {
		return nil, b
	}
	if len(events) == 0 && len(b.Open) == 0 && len(b.States) == 0 && len(f.parts) > 0 {
		l.pass(f)
		return nil, b
	}
	b.Drop = l.drops
	return f, b
}

// pass moves cells over a range in which nothing was theirs: no message is needed. mu is held.
func (l *lane) pass(f *flight) {
	for i := range f.parts {
		c := f.parts[i].c
		from := c.sent
		if c.due <= f.through && c.due > from {
			c.due = from
		}
		if c.pos >= from {
			c.pos = max(c.pos, f.through)
		}
		c.sent = max(c.sent, f.through)
		l.s.arrived(c)
	}
}

// launch notes that a flight is on its way. mu is held.
func (l *lane) launch(f *flight) {
	l.drops = nil
	l.flights = append(l.flights, f)
	f.since = time.Now()
	for i := range f.parts {
		p := &f.parts[i]
		c := p.c
		if p.opened {
			c.id, c.at = p.id, l.p
		}
		c.sent = max(c.sent, f.through)
		c.sinceRow += p.folded
		if p.state {
			c.sinceRow = 0
			if w := l.s.wantsState(c, f.through); w != nil {
				w.asked = p.id
			}
		}
	}
}
