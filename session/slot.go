package session

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/eventlog"
)

// What slot.users is made of: touches in the low half, holds above them, and the bit that says that no further touch may begin. One word, so that
// ending an idle slot looks at all of it in one atomic step.
const (
	oneTouch = 1
	oneHold  = 1 << 32
	endedBit = 1 << 62
	touches  = oneHold - 1
)

// slot is the place of one id among the live sessions, from the first thought of opening it until it has left the map.
type slot struct {
	id string
	// users counts the touches in progress and the Hold calls that keep the slot from going idle, plus endedBit.
	users atomic.Int64
	// touched is set by each touch and cleared by each tick of the janitor.
	touched atomic.Bool
	// idleTicks belongs to the janitor.
	idleTicks int

	// cancel calls off the opening; settled says that it is too late for that. Both are guarded by Set.mu.
	cancel  context.CancelFunc
	settled bool

	// ready is closed when the opening is over; what follows is set before. core is for those who hold the slot.
	ready       chan struct{}
	core        *core
	incarnation string
	err         error
	// gone is closed when the slot has left the map, drained when moreover the last touch has ended.
	gone, drained chan struct{}
}

func newSlot(id string) *slot {
	return &slot{id: id, ready: make(chan struct{}), gone: make(chan struct{}), drained: make(chan struct{})}
}

// hold begins a touch; false says that the slot has ended.
func (sl *slot) hold() bool {
	for {
		n := sl.users.Load()
		if n >= endedBit {
			return false
		}
		if sl.users.CompareAndSwap(n, n+oneTouch) {
			if !sl.touched.Load() { // most touches find it set and leave the cache line alone
				sl.touched.Store(true)
			}
			return true
		}
	}
}

// release ends a touch.
func (sl *slot) release() {
	if n := sl.users.Add(-oneTouch); n >= endedBit && n&touches == 0 {
		sl.drain()
	}
}

// ended says that the slot takes no further touch.
func (sl *slot) ended() bool { return sl.users.Load() >= endedBit }

// end forbids further touches; holds do not keep it. Called once: by the opener, or by whoever has the turn.
func (sl *slot) end() {
	if sl.users.Add(endedBit)&touches == 0 {
		sl.drain()
	}
}

// endIfIdle ends the slot if nothing touches or holds it; the caller drains it when its core is detached.
func (sl *slot) endIfIdle() bool { return sl.users.CompareAndSwap(0, endedBit) }

// drain lets go of the core: handles remember their slot, and a cold session must not keep what it had in memory.
func (sl *slot) drain() {
	sl.core = nil
	close(sl.drained)
}

// touch gives the core of a session, opening it if it is cold; the slot is held when there is no error. incarnation empty
// means whichever life there is.
func (t *Set) touch(ctx context.Context, id, incarnation string) (*core, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t.mu.Lock()
		if t.closed.Load() {
			t.mu.Unlock()
			return nil, ErrClosed
		}
		sl := t.slots[id]
		if sl == nil {
			sl = t.startOpening(id)
		}
		held := sl.hold()
		t.mu.Unlock()
		if !held {
			if err := wait(ctx, sl.gone); err != nil {
				return nil, err
			}
			continue
		}
		if err := t.awaitReady(ctx, sl); err != nil {
			return nil, err
		}
		if sl.err != nil {
			sl.release()
			if t.ctx.Err() != nil {
				return nil, ErrClosed
			}
			return nil, sl.err
		}
		if incarnation != "" && sl.incarnation != incarnation {
			sl.release()
			return nil, &eventlog.NotFoundError{ID: id}
		}
		return sl.core, nil
	}
}

// awaitReady waits for the opening of a held slot; with an error the hold is given back, and the opening called off if nobody
// else waits for it.
func (t *Set) awaitReady(ctx context.Context, sl *slot) error {
	err := wait(ctx, sl.ready)
	if err == nil {
		return nil
	}
	t.mu.Lock()
	sl.release()
	if !sl.settled && sl.users.Load() == 0 && t.slots[sl.id] == sl {
		delete(t.slots, sl.id)
		sl.cancel()
	}
	t.mu.Unlock()
	return err
}

// startOpening puts a slot that opens on a goroutine of the set; mu is held and the set is not closed.
func (t *Set) startOpening(id string) *slot {
	sl := newSlot(id)
	ctx, cancel := context.WithCancel(t.ctx)
	sl.cancel = cancel
	t.slots[id] = sl
	t.overtake(id)
	t.crowd()
	t.running.Go(func() {
		defer cancel()
		t.open(ctx, sl)
	})
	return sl
}

// open loads the session of a slot and settles the slot.
func (t *Set) open(ctx context.Context, sl *slot) {
	began := time.Now()
	c, err := t.load(ctx, sl.id)
	t.mu.Lock()
	if t.slots[sl.id] != sl { // called off, and perhaps begun again by somebody else
		err = context.Canceled
	} else if err == nil {
		sl.settled = true
	} else {
		delete(t.slots, sl.id)
	}
	t.mu.Unlock()
	if err == nil {
		if err = t.attach(c, sl); err != nil {
			t.mu.Lock()
			delete(t.slots, sl.id)
			t.mu.Unlock()
		}
	}
	if err == nil {
		t.stats.opened(time.Since(began))
	}
	t.settle(sl, c, err)
}

// attach gives a new core to its slot and to the driver.
func (t *Set) attach(c *core, sl *slot) (err error) {
	c.slot = sl
	if t.o.Driver == nil {
		return nil
	}
	defer recoverAs("driver", &err)
	c.drive = t.o.Driver.Attach(c.s, c.planner.m.Next()-1)
	return nil
}

// settle tells the waiters of a slot how its opening ended.
func (t *Set) settle(sl *slot, c *core, err error) {
	if err != nil {
		sl.err = err
		close(sl.ready)
		close(sl.gone)
		sl.end()
		return
	}
	sl.core, sl.incarnation = c, c.s.incarnation
	c.s.slot.Store(sl)
	close(sl.ready)
}

// remove takes an ended slot out of the map.
func (t *Set) remove(sl *slot) {
	t.mu.Lock()
	if t.slots[sl.id] == sl {
		delete(t.slots, sl.id)
	}
	t.mu.Unlock()
	close(sl.gone)
}

// dropSlot makes a slot go cold once its turn comes, however long that takes: Close is the only caller that cannot give up.
func (t *Set) dropSlot(sl *slot) {
	if !sl.hold() {
		return
	}
	defer sl.release()
	<-sl.ready
	if sl.err == nil && sl.core.takeTurn(context.Background()) == nil {
		sl.core.finish(false)
		sl.core.giveTurn()
	}
}

// wait waits for a channel to be closed or for the context.
func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	default:
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
