package registry

import (
	"bytes"
	"fmt"
	"time"

	"github.com/foldhost/foldhost/unit"
)

// answer takes the answer to a flight. Only the first counts, and none of a flight that was lost with its process. Answers are settled
// in the order of submission, whatever the order in which they come. No lock is held.
func (l *lane) answer(f *flight, r unit.Reply) {
	if !f.answered.CompareAndSwap(false, true) {
		return
	}
	f.cancel()
	if l.p.buried(r.Err) || !l.p.leave(f) {
		return
	}
	s := l.s
	s.mu.Lock()
	f.reply, f.took = &r, time.Since(f.since)
	for len(l.flights) > 0 && l.flights[0].reply != nil {
		first := l.flights[0]
		l.flights = l.flights[1:]
		if !s.closed && l.p.death() == nil {
			l.settle(first)
		}
	}
	l.ring()
	s.mu.Unlock()
	l.p.admit()
}

// settle takes over what a process says. mu is held.
func (l *lane) settle(f *flight) {
	s := l.s
	if f.reply.Err != nil {
		l.blame(f, f.reply.Err.Error(), false)
		return
	}
	for i := range f.parts {
		p := &f.parts[i]
		c := p.c
		k, ok := s.placeOf(c)
		if !ok || c.id != p.id || c.fault != nil {
			continue // it is about a cell that was opened again, or is of no more use
		}
		said := hear(p, f, c.b, f.reply)
		switch {
		case said.wrong != "":
			l.blamePart(f, p, "the plugin broke the protocol: "+said.wrong, false)
			continue
		case said.unknown:
			c.lost++
			if c.lost > maxForgotten {
				s.fail(k, c, c.asOf()+1, "the plugin forgot the cell again and again")
				continue
			}
			s.reopen(c)
			s.drive(c)
			continue
		}
		c.lost = 0
		c.b.counts.batch(p.folded, f.took)
		if f.through <= s.since {
			s.folded.Add(int64(p.folded))
		}
		if f.step == stepState && c.suspicion != nil {
			c.suspicion.state = false
		}
		if p.opened && !c.known && c.b.HostOnly() {
			c.known = true
		}
		for _, v := range said.values {
			s.offer(k, c, v)
		}
		if said.state != nil {
			s.keepState(c, f.through, *said.state)
			if w := s.pinWants(c); w != nil && w.asked == p.id {
				// Unchecked: who asked is to hear that it is wrong.
				w.raw = &Row{Ver: c.b.StateVersion, Def: c.b.Digest, Seq: f.through, Val: said.state.State}
			}
		}
		if said.fault != nil {
			c.pos = max(c.pos, said.fault.Seq-1)
			s.fail(k, c, said.fault.Seq, said.fault.Message)
			continue
		}
		c.pos = max(c.pos, f.through)
		if !l.carries(c) {
			// What was passed over while this was in flight had nothing for the cell.
			c.pos = max(c.pos, c.sent)
		}
		s.arrived(c)
	}
}

// carries says whether a flight that is not settled has the cell on board.
func (l *lane) carries(c *cell) bool {
	for _, f := range l.flights {
		for i := range f.parts {
			if f.parts[i].c == c && f.parts[i].id == c.id {
				return true
			}
		}
	}
	return false
}

// said is what a reply says about one cell.
type said struct {
	values  []unit.Value
	state   *unit.StateAt
	fault   *unit.Fault
	unknown bool
	// wrong is what breaks the contract of unit.Instance.
	wrong string
}

// hear picks out and checks what a reply says about one part of a flight. What it says about cells that are not in the flight is not
// heard by anybody.
func hear(p *part, f *flight, b *binding, r *unit.Reply) (h said) {
	for _, id := range r.Unknown {
		if id == p.id {
			h.unknown = true
			return h
		}
	}
	last := p.after
	if p.opened {
		last = p.from - 1 // its view as of where it was opened comes first
	}
	for _, v := range r.Values {
		if v.Cell != p.id {
			continue
		}
		switch {
		case b.HostOnly():
			h.wrong = fmt.Sprintf("a value of key %q, which has none", b.Key)
			return h
		case v.Seq <= last || v.Seq > f.through:
			h.wrong = fmt.Sprintf("a value at seq %d after %d in a batch through %d", v.Seq, last, f.through)
			return h
		}
		last = v.Seq
		h.values = append(h.values, v)
	}
	for i := range r.Faults {
		if q := &r.Faults[i]; q.Cell == p.id {
			at := *q
			at.Seq = min(max(at.Seq, p.after), f.through) // whatever it says, it failed in this batch
			h.fault = &at
			return h
		}
	}
	if p.opened && len(h.values) == 0 && !b.HostOnly() {
		h.wrong = "no value of a cell that was opened"
		return h
	}
	for i := range r.States {
		if q := &r.States[i]; q.Cell == p.id && p.state {
			if q.Seq > f.through {
				h.wrong = fmt.Sprintf("a state at seq %d in a batch through %d", q.Seq, f.through)
				return h
			}
			h.state = q
		}
	}
	if p.state && h.state == nil {
		h.wrong = "a state was asked for and did not come"
	}
	return h
}

// offer takes a value of a cell in an instance. mu is held.
func (s *Session) offer(k int, c *cell, v unit.Value) {
	now := &value{b: c.b, view: v.View, seq: v.Seq}
	if c.replaying {
		c.rebuilt = now
		return
	}
	c.known = true
	if c.val != nil && bytes.Equal(c.val.view, now.view) {
		return
	}
	c.val = now
	if c == s.slots[k].cur && v.Seq >= c.emitFrom && !c.announce {
		s.tellValue(c, v.Seq)
	}
}

// arrived draws the conclusions of a new position. mu is held.
func (s *Session) arrived(c *cell) {
	k, ok := s.placeOf(c)
	if !ok {
		return
	}
	if c.replaying && (c.pos >= c.pub || c.due <= c.pos) {
		c.replaying = false
		if now := c.rebuilt; now != nil {
			same := c.val != nil && bytes.Equal(c.val.view, now.view)
			if c.val != nil {
				now.seq = max(now.seq, c.val.seq)
			}
			c.rebuilt = nil
			if !same {
				c.val = now
				s.renew(c)
				if c == s.slots[k].cur && !c.announce {
					s.tellValue(c, now.seq)
				}
			}
		}
	}
	if !c.replaying && c.known {
		c.pub = max(c.pub, c.pos)
	}
	s.settle(k)
	s.drive(c)
}

// keepState makes a state the row that the cell starts from the next time. mu is held. It is checked when it is used.
func (s *Session) keepState(c *cell, through int64, st unit.StateAt) {
	row := &Row{Ver: c.b.StateVersion, Def: c.b.Digest, Seq: through, Val: st.State, Config: c.b.ConfigDigest}
	if c.b.CheckState(st.State, s.r.o.MaxStateBytes) != nil {
		return // it would not seed a fold
	}
	if !c.replaying && c.val != nil {
		row.View = c.val.view
	}
	c.base = row
	if c.history.fold(rowEvery) {
		c.history.keep(past{seq: through, raw: st.State})
	}
}

// pinWants gives what the pin still wants of the cell's key.
func (s *Session) pinWants(c *cell) *wanted {
	if s.pin == nil {
		return nil
	}
	if w := s.pin.want[c.b.Key]; w != nil && !w.taken {
		return w
	}
	return nil
}
