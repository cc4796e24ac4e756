package session

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// idleTicks is how many ticks of the janitor without a touch make a session idle. Four keep it at most a quarter longer than asked, and no
// touch ever has to look at a clock.
const idleTicks = 4

// chillers is how many sessions go cold at once: each may wait for its last rows to be written, and a store writes those of many in one go.
const chillers = 8

// runJanitor lets idle sessions go cold until the set closes.
func (t *Set) runJanitor() {
	var tick <-chan time.Time
	if t.o.IdleAfter > 0 {
		ticker := time.NewTicker(max(t.o.IdleAfter/idleTicks, time.Millisecond))
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-tick:
			t.chill(t.idleSlots())
			t.chill(t.excessSlots()) // those that were in use when they became too many
		case <-t.crowded:
			t.chill(t.excessSlots())
		}
	}
}

// chill lets those of the slots go cold that are still idle, and waits for it.
func (t *Set) chill(slots []*slot) {
	var all sync.WaitGroup
	room := make(chan struct{}, chillers)
	for _, sl := range slots {
		if !sl.endIfIdle() {
			continue
		}
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			// Nobody touches it and nobody can, so there is no turn to take.
			sl.core.detach(false)
			sl.drain()
		})
	}
	all.Wait()
}

// idleSlots counts a tick for each live slot and returns those that have been idle long enough.
func (t *Set) idleSlots() []*slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	var idle []*slot
	for _, sl := range t.quietSlots(func(sl *slot) { sl.idleTicks = 0 }) {
		if sl.touched.Swap(false) {
			sl.idleTicks = 0
		} else if sl.idleTicks++; sl.idleTicks >= idleTicks {
			idle = append(idle, sl)
		}
	}
	return idle
}

// quietSlots gives the live slots that nobody uses, and calls busy with those that somebody does. mu is held.
func (t *Set) quietSlots(busy func(*slot)) (quiet []*slot) {
	if t.closed.Load() {
		return nil
	}
	for _, sl := range t.slots {
		select {
		case <-sl.ready:
		default:
			continue
		}
		switch {
		case sl.users.Load() != 0:
			busy(sl)
		case sl.err == nil:
			quiet = append(quiet, sl)
		}
	}
	return quiet
}

// excessSlots gives the slots that must go so that there are a little fewer than MaxLive: those first that the last ticks saw untouched for
// longest. A little fewer, so that not every opening looks at all of them.
func (t *Set) excessSlots() []*slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.slots) - t.o.MaxLive
	if n <= 0 {
		return nil
	}
	n += t.o.MaxLive / 16
	quiet := t.quietSlots(func(*slot) {})
	age := func(sl *slot) int {
		if sl.touched.Load() {
			return -1
		}
		return sl.idleTicks
	}
	slices.SortFunc(quiet, func(a, b *slot) int { return cmp.Compare(age(b), age(a)) })
	return quiet[:min(n, len(quiet))]
}

// crowd wakes the janitor when there are too many live sessions. mu is held.
func (t *Set) crowd() {
	if t.o.MaxLive > 0 && len(t.slots) > t.o.MaxLive {
		select {
		case t.crowded <- struct{}{}:
		default:
		}
	}
}
