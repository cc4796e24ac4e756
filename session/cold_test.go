package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/eventlog/memory"
)

// Given a handle of a session that went cold, then it keeps nothing of what the session had in memory.
func TestColdHandlesAreLight(t *testing.T) {
	set := NewSet(memory.New(), Options{})
	defer set.Close()
	ctx := context.Background()
	s, err := set.Create(ctx, New{})
	if err != nil {
		t.Fatal(err)
	}
	sl := s.slot.Load()
	if sl == nil || sl.core == nil {
		t.Fatal("a new session is not live")
	}
	if err := s.Detach(ctx); err != nil {
		t.Fatal(err)
	}
	<-sl.drained
	if sl.core != nil {
		t.Error("the handle keeps the core")
	}
}

// The same when it went cold by itself.
func TestIdleHandlesAreLight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := NewSet(memory.New(), Options{IdleAfter: time.Minute})
		defer set.Close()
		s, err := set.Create(context.Background(), New{})
		if err != nil {
			t.Fatal(err)
		}
		sl := s.slot.Load()
		<-sl.drained
		if sl.core != nil || s.Live() {
			t.Error("the handle keeps the core")
		}
	})
}
