package session

import "time"

// idleTicks is how many ticks of the janitor without a touch make a session idle. Four keep it at most a quarter longer than asked, and no
// touch ever has to look at a clock.
const idleTicks = 4

// runJanitor lets idle sessions go cold until the set closes.
func (t *Set) runJanitor() {
	tick := time.NewTicker(max(t.o.IdleAfter/idleTicks, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-tick.C:
			for _, sl := range t.idleSlots() {
				if sl.endIfIdle() {
					// Nobody touches it and nobody can, so there is no turn to take.
					sl.core.detach(false)
					sl.drain()
				}
			}
		}
	}
}

// idleSlots counts a tick for each live slot and returns those that have been idle long enough.
func (t *Set) idleSlots() []*slot {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed.Load() {
		return nil
	}
	var idle []*slot
	for _, sl := range t.slots {
		select {
		case <-sl.ready:
		default:
			continue
		}
		if sl.touched.Swap(false) || sl.users.Load() != 0 {
			sl.idleTicks = 0
			continue
		}
		if sl.idleTicks++; sl.idleTicks >= idleTicks && sl.err == nil {
			idle = append(idle, sl)
		}
	}
	return idle
}
