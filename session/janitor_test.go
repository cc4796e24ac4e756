package session

import (
	"context"
	"testing"

	"github.com/foldhost/foldhost/eventlog/memory"
)

// Given a janitor that has found a session idle, when the session is touched or held before the janitor ends it, then it stays live. The test is inside the
// package, as the moment between the look and the end is nobody's from outside.
func TestTheJanitorNeverEndsWhatIsInUse(t *testing.T) {
	ctx := context.Background()
	set := NewSet(memory.New(), Options{IdleAfter: -1}) // the test is the janitor
	defer set.Close()
	s, err := set.Create(ctx, New{})
	if err != nil {
		t.Fatal(err)
	}
	found := func() *slot {
		t.Helper()
		for range 2 * idleTicks {
			if idle := set.idleSlots(); len(idle) == 1 {
				return idle[0]
			}
		}
		t.Fatal("never found idle")
		return nil
	}

	sl := found()
	c, err := s.touch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if sl.endIfIdle() {
		t.Fatal("ended in the middle of a touch")
	}
	c.slot.release()

	sl = found()
	release, err := s.Hold(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if sl.endIfIdle() {
		t.Fatal("ended while held")
	}
	if !s.Live() {
		t.Fatal("not live while held")
	}
	for range 2 * idleTicks {
		if len(set.idleSlots()) > 0 {
			t.Fatal("found idle while held")
		}
	}
	release()

	sl = found()
	if !sl.endIfIdle() {
		t.Fatal("not ended though nobody uses it")
	}
	touched := make(chan error)
	go func() {
		_, err := s.Append(ctx, "x", 1, Intent{})
		touched <- err
	}()
	sl.core.detach(false)
	sl.drain()
	if err := <-touched; err != nil {
		t.Errorf("a touch that met the end of its slot: %v", err)
	}
	if next := s.slot.Load(); next == sl || !s.Live() {
		t.Error("it was not opened again")
	}
}

// Given a session that is held, when it is detached, then the hold is void, and releasing it does no harm to the next opening.
func TestAHoldEndsWithItsCore(t *testing.T) {
	ctx := context.Background()
	set := NewSet(memory.New(), Options{IdleAfter: -1})
	s, err := set.Create(ctx, New{})
	if err != nil {
		t.Fatal(err)
	}
	release, err := s.Hold(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Detach(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(ctx, "x", 1, Intent{}); err != nil {
		t.Fatal(err)
	}
	release()
	if users := s.slot.Load().users.Load(); users != 0 {
		t.Errorf("the next opening has users %x", users)
	}
	if _, err := s.Hold(ctx); err != nil {
		t.Fatal(err)
	}
	if err := set.Close(); err != nil { // does not wait for the hold
		t.Error(err)
	}
}
