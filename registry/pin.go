package registry

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/foldhost/foldhost/unit"
)

// A cut is the values of some keys as of one seq C. Session.cut fixes C at the head, under mu, and takes at once what stands there. For the
// rest it sets a pin: lanes and builder end a batch at C, and settle captures the cell as it arrives there, before it goes on.
// No event in flight can have passed C, because what is in flight was read up to a head that was at most C.
//
// There is one pin at a time. Who comes while its C is still the head joins it; who comes later shares the next, which is fixed when
// the present one is let go: by its last waiter. A pin names keys and not cells, so that a crash, a takeover or an upgrade does not
// lose it. Appends go on all the time; a pinned cell only stops at C for a moment.

// pin is one cut in the making. Session.mu guards it.
type pin struct {
	at     int64
	active bool
	// waiters are the readers that have not left.
	waiters int
	want    map[string]*wanted
	// wake is closed and made anew when something was captured or the pin became active.
	wake chan struct{}
}

// wanted is one key of a pin.
type wanted struct {
	cut
	taken bool
	// due is the last event at or below the cut that is due to the cell by, which stood in the key's place at the time.
	due int64
	by  *cell
	// state is asked for as well as the value; asked is the cell that was.
	state bool
	asked unit.CellID
	// raw is the answer of asked.
	raw *Row
}

// dueOf is how far a cell must have come: one that took the place meanwhile may fold other types, or follow one that failed and took no
// note of events any more, so it must come all the way.
func (w *wanted) dueOf(c *cell, at int64) int64 {
	if w.by == c {
		return w.due
	}
	return at
}

// cut is one key as of a cut.
type cut struct {
	b   *binding
	k   *cell
	rev int64
	val *value
	// state is that of an in-process cell, row the encoded one of a cell in an instance.
	state unit.State
	row   *Row
	down  *Unavailable
	// late says that the key would be worth waiting for.
	late bool
}

// ask is what a reader wants of a cut.
type ask struct {
	wait     time.Duration
	keys     []string
	hostOnly bool
	states   bool
}

// limit is how far the cells of a key may be driven now.
func (s *Session) limit(k int) int64 {
	if p := s.pin; p != nil {
		if w := p.want[s.plan.units[k].Key]; w != nil && !w.taken {
			return p.at
		}
	}
	return s.head
}

// cut gives the keys as of one seq. The error is ctx's, or ErrDetached.
func (s *Session) cut(ctx context.Context, a ask) (at, gen int64, cuts []cut, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, nil, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return 0, 0, nil, ErrDetached
	}
	s.follow()
	ks := s.places(a.hostOnly, a.keys)
	cuts = make([]cut, len(ks))
	late := false
	for i, k := range ks {
		cuts[i] = s.take(k, s.touch(k), s.head, math.MaxInt64, a.states, nil)
		late = late || cuts[i].late
	}
	at, gen = s.head, s.plan.gen
	if !late || a.wait <= 0 {
		s.markLate(cuts)
		s.mu.Unlock()
		return at, gen, cuts, nil
	}
	keys := make([]string, len(ks))
	for i, k := range ks {
		keys[i] = s.plan.units[k].Key
	}
	p := s.join(keys, a.states)
	// The generation is that of the call: a block may know of more than its generation, and never of less.
	at, cuts, err = s.await(ctx, p, keys, a)
	s.mu.Unlock()
	return at, gen, cuts, err
}

// await waits for a pin. mu is held, let go while waiting, and held again at the end.
func (s *Session) await(ctx context.Context, p *pin, keys []string, a ask) (at int64, cuts []cut, err error) {
	timer := time.NewTimer(a.wait)
	defer timer.Stop()
	var expired bool
	for {
		if s.closed {
			s.leave(p)
			return 0, nil, ErrDetached
		}
		if p.active {
			var late bool
			if cuts, late = s.collect(p, keys, a.hostOnly); !late || expired {
				break
			}
		} else if expired {
			// The pin before this one took all the time there was: what stands at the head now is all there is to give.
			cuts = cuts[:0]
			ks := s.places(a.hostOnly, keys)
			for _, k := range ks {
				cuts = append(cuts, s.take(k, s.touch(k), s.head, math.MaxInt64, a.states, nil))
			}
			at = s.head
			s.markLate(cuts)
			s.leave(p)
			return at, cuts, nil
		}
		wake := p.wake
		s.mu.Unlock()
		select {
		case <-wake:
		case <-timer.C:
			expired = true
		case <-ctx.Done():
			err = ctx.Err()
		}
		s.mu.Lock()
		if err != nil {
			s.leave(p)
			return 0, nil, err
		}
	}
	at = p.at
	s.markLate(cuts)
	s.leave(p)
	return at, cuts, nil
}

// markLate remembers that a reader was told that a key trails: its value follows on the feed.
func (s *Session) markLate(cuts []cut) {
	for i := range cuts {
		if c := cuts[i].k; cuts[i].down != nil && c.fault == nil && !c.gone {
			s.owe(c)
			s.drive(c)
		}
	}
}

// join gives the pin that a reader shares. mu is held.
func (s *Session) join(keys []string, states bool) *pin {
	p := s.pin
	if p != nil && p.at != s.head {
		p = s.nextPin
	}
	if p == nil {
		p = &pin{want: map[string]*wanted{}, wake: make(chan struct{})}
		if s.pin != nil {
			s.nextPin = p
		}
	}
	p.waiters++
	var added []string
	for _, key := range keys {
		w := p.want[key]
		switch {
		case w == nil:
			p.want[key] = &wanted{state: states}
			added = append(added, key)
		case states && !w.state:
			// What was taken without a state is taken again: the head has not moved since, or the pin is not fixed yet.
			*w = wanted{state: true}
			added = append(added, key)
		}
	}
	if s.pin == nil {
		s.fix(p)
	} else if p.active {
		s.pinned(p, added)
	}
	return p
}

// fix makes a pin the present one: its cut is here and now.
func (s *Session) fix(p *pin) {
	s.pin, p.active, p.at = p, true, s.head
	keys := make([]string, 0, len(p.want))
	for key := range p.want {
		keys = append(keys, key)
	}
	s.pinned(p, keys)
	p.rouse()
}

// pinned takes what stands at the cut and drives the rest there.
func (s *Session) pinned(p *pin, keys []string) {
	for _, key := range keys {
		w := p.want[key]
		k, ok := s.plan.index[key]
		if !ok {
			w.taken = true
			continue
		}
		c := s.touch(k)
		w.due, w.by = min(c.due, p.at), c
		s.capture(k)
		if !w.taken {
			s.drive(c)
			if n := s.slots[k].next; n != nil {
				s.drive(n)
			}
		}
	}
}

// capture takes a key for the pin when its cell has come to the cut. mu is held; called whenever a cell moved.
func (s *Session) capture(k int) {
	p := s.pin
	if p == nil {
		return
	}
	w := p.want[s.plan.units[k].Key]
	if w == nil || w.taken {
		return
	}
	c := s.slots[k].cur
	if c == nil {
		c = s.touch(k)
	}
	got := s.take(k, c, p.at, w.dueOf(c, p.at), w.state, w)
	if got.down != nil {
		if !got.late {
			p.rouse() // it is not waited for any more
		}
		return
	}
	w.cut, w.taken = got, true
	p.rouse()
	s.drive(c)
	if n := s.slots[k].next; n != nil {
		s.drive(n)
	}
}

// take gives a key as of the cut at, where its cell stands there; otherwise down says why not, and late whether waiting helps. due is the
// last event of its types up to the cut where that is known from before, else the cell knows it. mu is held.
func (s *Session) take(k int, c *cell, at, due int64, states bool, w *wanted) cut {
	got := cut{b: c.b, k: c, rev: c.rev}
	if c.fault != nil {
		f := *c.fault
		got.down = &f
		return got
	}
	here := c.asOf()
	stands := c.ready() && (here == at || c.due <= here || due <= here && here <= at)
	if c.b.inline() {
		if stands {
			if _, err := c.refresh(); err != nil {
				s.fail(k, c, c.changed, err.Error())
				f := *c.fault
				got.down = &f
				return got
			}
			got.val, got.state = c.val, c.state
			return got
		}
		got.late = true
		got.down = &Unavailable{Code: Behind, Seq: c.reached(s.head), Message: "the value is being built from the log"}
		return got
	}
	got.val = c.val
	if states {
		got.row = c.base
	}
	if stands && (!states || s.stateHere(c, at, min(due, c.due), w, &got)) {
		return got
	}
	_, down := c.b.process()
	if down == nil {
		got.late = true
		got.down = &Unavailable{Code: Behind, Message: "the plugin has not folded up to here yet"}
	} else {
		d := *down
		got.down, got.late = &d, d.Code == Starting
	}
	got.down.Seq = min(c.reached(s.head), at)
	return got
}

// stateHere says whether the state of a cell in an instance is known as of the cut: by its last row, or by the answer to the pin.
func (s *Session) stateHere(c *cell, at, due int64, w *wanted, got *cut) bool {
	if c.b.Events != nil && len(c.b.Events) == 0 && c.base != nil {
		return true
	}
	if c.base != nil && c.base.Seq >= due && c.base.Seq <= at {
		return true
	}
	if w != nil && w.raw != nil {
		got.row = w.raw
		return true
	}
	return false
}

// collect gives what a pin has of the keys, and whether any of them is still worth waiting for. A key that is gone or host-only by now is
// left out.
func (s *Session) collect(p *pin, keys []string, hostOnly bool) (cuts []cut, late bool) {
	for _, key := range keys {
		w := p.want[key]
		got := w.cut
		if !w.taken {
			k, ok := s.plan.index[key]
			if !ok {
				continue
			}
			c := s.touch(k)
			if got = s.take(k, c, p.at, w.dueOf(c, p.at), w.state, w); got.down == nil {
				w.cut, w.taken = got, true
			}
		}
		if got.b == nil || !hostOnly && got.b.HostOnly() {
			continue
		}
		late = late || got.late
		cuts = append(cuts, got)
	}
	return cuts, late
}

// leave is a waiter that goes. The last one lets the pin go, and the next is fixed.
func (s *Session) leave(p *pin) {
	p.waiters--
	if p.waiters > 0 {
		return
	}
	if s.nextPin == p {
		s.nextPin = nil
	}
	if s.pin != p {
		return
	}
	s.pin = nil
	if n := s.nextPin; n != nil && !s.closed {
		s.nextPin = nil
		s.fix(n)
	}
	for k := range s.slots {
		for _, c := range [...]*cell{s.slots[k].cur, s.slots[k].next} {
			if c != nil && (c.due > c.asOf() || !c.ready()) {
				s.drive(c)
			}
		}
	}
}

func (p *pin) rouse() {
	close(p.wake)
	p.wake = make(chan struct{})
}

// wakeReaders makes every waiting reader look again.
func (s *Session) wakeReaders() {
	for _, p := range [...]*pin{s.pin, s.nextPin} {
		if p != nil {
			p.rouse()
		}
	}
}

// encode gives the state of a cut as JSON that has passed its schema.
func (c *cut) encode(limit int) (json.RawMessage, error) {
	raw := json.RawMessage(nil)
	if c.row != nil {
		raw = c.row.Val
	} else {
		var err error
		if raw, err = c.b.Inline.Encode(c.state); err != nil {
			return nil, err
		}
	}
	return c.b.AcceptState(raw, limit)
}
