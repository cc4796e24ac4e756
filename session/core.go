package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/foldhost/foldhost/eventlog"
)

// core is a session while it is live.
type core struct {
	set  *Set
	s    *Session
	slot *slot
	// turn has one place; who is in it may change the session. See the package comment.
	turn chan struct{}

	// What follows belongs to whoever has the turn, and to the janitor once it has ended a slot that nobody touches. broken says that the drive panicked: it
	// hears no more, and the core ends with the turn. ended says that the core is the session no more: whoever meets it looks for another.
	drive  Drive
	broken bool
	ended  bool
	// grouped is how many appends the last commit from the line had.
	grouped int

	// mu guards what follows, for memory work only.
	mu       sync.Mutex
	planner  *planner
	messages messageCache
	keeper   surfaceKeeper
	// line are the appends that wait, see together.go.
	line []*request

	// building has one place, for the one who reads the messages from the store.
	building chan struct{}
}

func newCore(t *Set, s *Session, p *planner) *core {
	return &core{set: t, s: s, planner: p, turn: make(chan struct{}, 1), building: make(chan struct{}, 1), keeper: surfaceKeeper{saving: make(chan struct{}, 1)}}
}

// takeTurn queues for the turn. Go serves blocked senders first come, first served.
func (c *core) takeTurn(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *core) giveTurn() { <-c.turn }

// finish ends the core, gone cold or deleted; the turn and a touch are held. Ending one twice does nothing.
func (c *core) finish(deleted bool) {
	if c.ended {
		return
	}
	c.slot.end()
	c.detach(deleted)
}

// detach is the last thing that happens to a core: the slot has ended, and the drive hears of it before the id can be opened again.
func (c *core) detach(deleted bool) {
	c.ended = true
	began := time.Now()
	if !deleted {
		c.lastSurface()
	}
	if c.drive != nil {
		c.contained(detachDrive(c.drive, deleted))
	}
	if deleted {
		c.set.deleted(c.s.id)
	}
	c.set.remove(c.slot)
	c.closed(time.Since(began))
}

// contained logs what foreign code did wrong where nobody can be told. It reports whether it did nothing wrong.
func (c *core) contained(err error) bool {
	var p *PanicError
	if errors.As(err, &p) {
		c.set.o.Logger.Error("contained a panic", "session", c.s.id, "in", p.In, "panic", p.Value, "stack", string(p.Stack))
	}
	return err == nil
}

// life is how the store knows the session.
func (c *core) life() eventlog.Life { return c.s.life() }

// seq is the seq of the next event. Stable for whoever has the turn.
func (c *core) seq() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.planner.m.Next()
}
