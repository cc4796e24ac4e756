package registry

import (
	"bytes"
	"slices"
)

// follow brings the session to the present plan of its set. mu is held.
//
// A key that another binding computes from now on keeps its cell, which goes on as before, and gets a next one beside it. The two change
// places in settle, under mu, once the next has come as far as the value that was last told; so nobody sees the key missing or going
// back, and nothing that the old one says afterwards has a cell to go to.
func (s *Session) follow() {
	p := s.set.Load().plan.Load()
	if p == s.plan || s.closed {
		return
	}
	before, slots := s.plan, s.slots
	s.plan, s.slots = p, make([]slot, len(p.units))
	for k, b := range p.units {
		if j, ok := before.index[b.Key]; ok {
			s.slots[k] = slots[j]
			// What has not happened yet is an event of the old one's types.
			s.slots[k].fresh = s.head < 0 || slots[j].fresh && sameTypes(before.units[j].Events, b.Events)
		} else {
			s.slots[k].fresh = s.head < 0
			s.outdo(b, s.removal)
		}
	}
	for j, was := range before.units {
		k, ok := p.index[was.Key]
		if ok {
			s.adopt(k, p.units[k])
		} else {
			s.drop(slots[j].cur)
			s.drop(slots[j].next)
		}
		if !was.HostOnly() && (!ok || p.units[k].HostOnly()) {
			s.removal = s.r.revs.Add(1)
			s.r.feed.post(&post{change: Change{Session: s.id, Incarnation: s.log.Incarnation(), Kind: KindRemoved, Key: was.Key, Seq: s.head, Rev: s.removal}})
		}
	}
	// A pin may wait for a key that is gone, or for one whose cell is another now.
	s.countLeaving()
	for k := range s.slots {
		s.capture(k)
	}
	s.wakeReaders()
}

// adopt makes b the binding of a place, from the state that the one before it has reached where the two fold alike.
func (s *Session) adopt(k int, b *binding) {
	sl := &s.slots[k]
	cur := sl.cur
	if cur == nil {
		return
	}
	if cur.b == b {
		// It left and came back before the other was ready.
		if sl.next != nil {
			s.drop(sl.next)
			sl.next = nil
			s.thaw(cur)
		}
		return
	}
	if sl.next != nil {
		if sl.next.b == b {
			return
		}
		s.drop(sl.next)
		sl.next, cur.frozen = nil, false
	}
	s.outdo(b, cur.rev)
	n := s.makeCell(k, cur.emitFrom)
	s.inherit(n, cur)
	if cur.fault != nil || !cur.ready() {
		// There is no value to serve meanwhile.
		n.announce, n.owed = cur.announce, cur.owed
		s.drop(cur)
		sl.cur = n
		if n.announce {
			s.renew(n)
		}
		s.drive(n)
		s.settle(k)
		return
	}
	sl.next = n
	s.drive(n)
	s.settle(k)
}

// inherit seeds a cell from another of the same key. Rows can be handed over where version and definition are the same; otherwise the
// cell folds again.
func (s *Session) inherit(n, from *cell) {
	if n.live || from.fault != nil || n.b.StateVersion != from.b.StateVersion || n.b.Digest != from.b.Digest {
		return
	}
	var row *Row
	if from.b.inline() {
		if !from.ready() {
			return
		}
		raw, err := from.b.Inline.Encode(from.state)
		if err != nil || n.b.CheckState(raw, s.r.o.MaxStateBytes) != nil {
			return
		}
		seq := from.pos
		if from.live {
			seq = s.head
		}
		row = &Row{Ver: n.b.StateVersion, Def: n.b.Digest, Seq: seq, Val: raw}
	} else if row = from.base; row == nil {
		return
	}
	n.base, n.seeded = row, true
	n.pos, n.sent = row.Seq, row.Seq
	if !n.b.inline() {
		return
	}
	st, err := n.b.Inline.Decode(row.Val)
	if err != nil {
		n.base, n.seeded, n.pos, n.sent = nil, false, -1, -1
		return
	}
	n.state, n.dirty, n.changed, n.live = st, true, row.Seq, n.due <= n.pos
}

func sameTypes(a, b []string) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }

// mayTakeOver says whether the next cell can change places with the one that serves: it failed (what has left must not serve on), or it
// knows its value at least as far as the other's was told.
func mayTakeOver(failed, ready bool, next, cur int64) bool {
	return failed || ready && next >= cur
}

// mayFreeze says whether the cell that serves should stop folding so that the next can reach it: it is on its way and a batch away.
// Without that a busy session could keep two runners at a distance for ever.
func mayFreeze(underWay bool, next, cur int64, batch int) bool {
	return underWay && cur-next <= int64(batch)
}

// freeze makes a cell stand still.
func (s *Session) freeze(c *cell, at int64) {
	c.frozen, c.live = true, false
	if c.b.inline() {
		c.pos = at
	} else {
		c.pub = max(c.pub, at)
	}
	s.acquit(c) // nobody is to wait for a trial that does not go on
}

// thaw makes it go on.
func (s *Session) thaw(c *cell) {
	if c.frozen {
		c.frozen = false
		s.drive(c)
	}
}

func (s *Session) maybeSwitch(k int) {
	sl := &s.slots[k]
	cur, n := sl.cur, sl.next
	had := cur.reached(s.head)
	if !mayTakeOver(n.fault != nil, n.ready() && !n.replaying, n.reached(s.head), had) && cur.fault == nil {
		_, down := n.b.process()
		underWay := n.ready() && !n.replaying && down == nil
		if may := mayFreeze(underWay, n.reached(s.head), had, s.r.o.BatchEvents); may && !cur.frozen {
			s.freeze(cur, had)
		} else if !may {
			s.thaw(cur)
		}
		return
	}
	sl.cur, sl.next = n, nil
	s.countLeaving()
	if cur.b.inline() {
		_, _ = cur.refresh() // a view that cannot be made differs from any other
	}
	old, oldRev := cur.val, cur.rev
	failed := cur.fault != nil || cur.dirty && cur.b.inline()
	s.drop(cur)
	n.emitFrom = had + 1
	if cur.announce && !n.announce {
		n.announce, n.owed = true, cur.owed
	}
	if n.fault != nil {
		s.renew(n)
		s.tellDown(n, *n.fault)
		return
	}
	if n.b.inline() {
		if _, err := n.refresh(); err != nil {
			s.fail(k, n, n.changed, err.Error())
			return
		}
	}
	if n.b.HostOnly() {
		return
	}
	if !failed && old != nil && n.val != nil && bytes.Equal(old.view, n.val.view) {
		// The same value under the same revision: there is nothing to tell.
		n.rev = oldRev
		n.b.raise(oldRev)
		return
	}
	s.renew(n)
	if n.val != nil && !n.announce {
		seq := n.val.seq
		if old != nil {
			seq = max(seq, old.seq)
		}
		s.tellValue(n, seq)
	}
}
