package registry

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// The builder folds the in-process cells of a session that do not stand at the head. It is one goroutine, there only while there is
// such a cell. Each round it takes cells by the rule of laggards, reads one page of their types without the lock, folds it, and
// moves the cells under the lock. A cell whose position has reached what is due is live from that moment on.

// ringBuilder starts the builder unless it runs. mu is held.
func (s *Session) ringBuilder() {
	if !s.building && !s.closed {
		s.building = true
		s.spawn(s.build)
	}
}

func (s *Session) build() {
	var trouble backoff
	for {
		s.mu.Lock()
		if c := s.unseeded(); c != nil {
			s.mu.Unlock()
			if err := s.seed(c); err != nil && !trouble.wait(s, err) {
				return
			}
			continue
		}
		job := s.nextBuild()
		if job == nil {
			s.building = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		events, next, err := s.read(s.ctx, job.from, job.to+1, job.types)
		if err != nil {
			if !trouble.wait(s, err) {
				return
			}
			continue
		}
		trouble = backoff{}
		for i := range job.folds {
			job.folds[i].page(events)
		}
		s.mu.Lock()
		for i := range job.folds {
			s.commit(&job.folds[i], min(next-1, job.to))
		}
		s.mu.Unlock()
	}
}

// unseeded gives an in-process cell whose start was not looked for yet.
func (s *Session) unseeded() *cell {
	for k := range s.slots {
		for _, c := range [...]*cell{s.slots[k].cur, s.slots[k].next} {
			if c != nil && c.b.inline() && c.fault == nil && !c.seeded {
				return c
			}
		}
	}
	return nil
}

// seed finds where an in-process cell starts and decodes the state. No lock is held. An error is one of reading the log.
func (s *Session) seed(c *cell) error {
	row, err := s.usableRow(s.ctx, c.b)
	if err != nil {
		return err
	}
	pos := int64(-1)
	var st unit.State
	if row != nil {
		pos = row.Seq
		if st, err = c.b.Inline.Decode(row.Val); err != nil {
			row, pos = nil, -1 // a state that it does not take back is no authority: fold again
		}
	}
	if row == nil {
		st, err = c.b.Inline.Init()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.placeOf(c)
	if !ok {
		return nil
	}
	c.seeded = true
	if err != nil {
		s.fail(k, c, -1, err.Error())
		return nil
	}
	c.base, c.pos, c.state, c.dirty, c.changed = row, pos, st, true, pos
	c.live = c.due <= c.pos
	s.settle(k)
	return nil
}

// placeOf finds a cell that is still of use.
func (s *Session) placeOf(c *cell) (k int, ok bool) {
	k, ok = s.plan.index[c.b.Key]
	return k, ok && !c.gone && (s.slots[k].cur == c || s.slots[k].next == c)
}

// buildJob is one page for the cells that stand at the same position.
type buildJob struct {
	from, to int64
	types    []string
	folds    []paged
}

// paged is one cell over one page. The builder alone has it while it folds.
type paged struct {
	c *cell
	// since is the head at Attach.
	since int64
	// from is the first event whose changes are to be told, when tell is set.
	tell  bool
	from  int64
	state unit.State
	dirty bool
	// val is the last view computed and seq the last event that changed the state.
	val  *value
	seq  int64
	news []*value
	past []past
	hist history
	// caught counts the folded events that were there before Attach.
	caught int64
	failed error
	at     int64
}

func (s *Session) nextBuild() *buildJob {
	var cells []*cell
	var runs []run
	for k := range s.slots {
		limit := s.limit(k)
		for _, c := range [...]*cell{s.slots[k].cur, s.slots[k].next} {
			if c == nil || !c.b.inline() || c.fault != nil || c.frozen || c.live || c.pos >= limit || c.due <= c.pos {
				continue
			}
			cells = append(cells, c)
			runs = append(runs, run{sent: c.pos, stop: limit})
		}
	}
	group, to := laggards(runs)
	if len(group) == 0 {
		return nil
	}
	job := &buildJob{from: runs[group[0]].sent + 1, to: to}
	listening := s.r.feed.listening()
	for _, i := range group {
		c := cells[i]
		job.types = addTypes(job.types, c.b, len(job.folds) == 0)
		k := s.plan.index[c.b.Key]
		job.folds = append(job.folds, paged{
			c: c, since: s.since, tell: listening && !c.b.HostOnly() && s.slots[k].cur == c, from: c.emitFrom,
			state: c.state, dirty: c.dirty, val: c.val, seq: c.changed, hist: history{folded: c.history.folded, every: c.history.every},
		})
	}
	return job
}

// page folds one page. No lock is held. What the unit does not fold is skipped: others share the page.
func (p *paged) page(events []event.Event) {
	c := p.c
	began, folded := time.Now(), 0
	defer func() { c.b.counts.batch(folded, time.Since(began)) }()
	for i := range events {
		ev := &events[i]
		if !c.b.Folds(ev.Type) {
			continue
		}
		tell := p.tell && ev.Seq >= p.from
		if tell && p.dirty && !p.look(false) {
			return
		}
		next, changed, err := c.b.Inline.Apply(p.state, ev)
		if err != nil {
			p.failed, p.at = err, ev.Seq
			return
		}
		folded++
		if ev.Seq <= p.since {
			p.caught++
		}
		if changed {
			p.state, p.dirty, p.seq = next, true, ev.Seq
			if tell && !p.look(true) {
				return
			}
		}
		if p.hist.fold(1) {
			p.hist.folded = 0
			p.past = append(p.past, past{seq: ev.Seq, state: p.state})
		}
	}
}

// look computes the view, and keeps it as news when it differs from the one before.
func (p *paged) look(news bool) bool {
	v, differs, err := view(p.c.b, p.state, p.seq, p.val)
	if err != nil {
		p.failed, p.at = err, p.seq
		return false
	}
	p.val, p.dirty = v, false
	if news && differs {
		p.news = append(p.news, v)
	}
	return true
}

// commit moves a cell to where a page ended. mu is held.
func (s *Session) commit(p *paged, through int64) {
	c := p.c
	k, ok := s.placeOf(c)
	if !ok || c.frozen {
		return
	}
	c.state, c.dirty, c.val, c.changed = p.state, p.dirty, p.val, p.seq
	c.history.folded = p.hist.folded
	s.folded.Add(p.caught)
	for _, h := range p.past {
		c.history.keep(h)
	}
	if p.failed != nil {
		through = p.at - 1
	}
	c.pos = max(c.pos, through)
	if s.slots[k].cur == c {
		for _, v := range p.news {
			s.r.feed.post(&post{s: s, cell: c, value: v, change: Change{Session: s.id, Incarnation: s.log.Incarnation(), Kind: KindValue, Key: c.b.Key, Seq: v.seq, Rev: c.rev}})
		}
	}
	if p.failed != nil {
		s.fail(k, c, p.at, p.failed.Error())
		return
	}
	c.live = c.due <= c.pos
	s.settle(k)
}

// nearby is how many events a cell may have to go and still come before one that has further to go: a unit that is new to a long log must not
// keep waiting those that are soon there. Few enough to fold within a read's wait; those within it share what is read.
const nearby = 10_000

// run is one cell on its way: submitted or folded up to sent, to go on no further than stop for now.
type run struct{ sent, stop int64 }

// laggards picks the runs that are furthest back, of those that are nearby if there are any, and how far they go together: up to where the nearest
// stops, or to where the next ones stand, which they then join. None when nobody has anything to do.
func laggards(runs []run) (group []int, to int64) {
	from, reach := int64(math.MaxInt64), int64(math.MaxInt64)
	for _, r := range runs {
		if r.sent < r.stop && r.stop-r.sent <= nearby {
			reach = nearby
		}
	}
	for _, r := range runs {
		if r.sent < r.stop && r.stop-r.sent <= reach {
			from = min(from, r.sent)
		}
	}
	to = math.MaxInt64
	for i, r := range runs {
		switch {
		case r.sent >= r.stop || r.stop-r.sent > reach:
		case r.sent == from:
			group = append(group, i)
			to = min(to, r.stop)
		default:
			to = min(to, r.sent)
		}
	}
	return group, to
}

// addTypes adds the types of a unit to a union: nil is every type.
func addTypes(union []string, b *binding, first bool) []string {
	if b.Events == nil || !first && union == nil {
		return nil
	}
	if first {
		union = []string{}
	}
	for _, t := range b.Events {
		if !has(union, t) {
			union = append(union, t)
		}
	}
	return union
}

// read gives one page. A log that answers with other seqs than it was asked for, or does not move, is refused.
func (s *Session) read(ctx context.Context, from, to int64, types []string) ([]event.Event, int64, error) {
	if types != nil && len(types) == 0 {
		return nil, to, nil
	}
	events, next, err := s.log.ReadPage(ctx, from, to, types)
	if err != nil {
		return nil, 0, fmt.Errorf("reading events %d to %d of session %s: %w", from, to-1, s.id, err)
	}
	last := from - 1
	for i := range events {
		if q := events[i].Seq; q <= last || q >= to || q >= next {
			return nil, 0, fmt.Errorf("reading events %d to %d of session %s: the log gave seq %d after %d with the rest from %d on", from, to-1, s.id, q, last, next)
		}
		last = events[i].Seq
	}
	if next <= from {
		return nil, 0, fmt.Errorf("reading events %d to %d of session %s: the log gave nothing and does not move", from, to-1, s.id)
	}
	return events, next, nil
}

// backoff is the pause between two tries to read a log that gives errors: from 20 ms to 1 s, for a store that is away comes back by
// itself and nobody should have to ask.
type backoff struct{ pause time.Duration }

// wait says whether to go on; false: the session is detached.
func (b *backoff) wait(s *Session, err error) bool {
	if s.ctx.Err() != nil {
		return false
	}
	if b.pause == 0 {
		s.r.o.Logger.Warn("cells of a session trail because its log cannot be read; trying again", "session", s.id, "error", err)
	}
	b.pause = min(max(2*b.pause, 20*time.Millisecond), time.Second)
	t := time.NewTimer(b.pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}
