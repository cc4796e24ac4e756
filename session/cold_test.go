package session

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/event"
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

// Given a session whose log rewrites a tool result, then the result that was compared with is not kept: after the append, and after opening from the log.
func TestASessionAtRestHoldsNoEvent(t *testing.T) {
	set := NewSet(memory.New(), Options{})
	defer set.Close()
	ctx := context.Background()
	s, err := set.Create(ctx, New{})
	if err != nil {
		t.Fatal(err)
	}
	result := json.RawMessage(`{"message":{"id":"r","role":"user","content":[{"type":"tool-result","toolCallId":"c","content":[]}],"source":{"kind":"tool","callId":"c"}}}`)
	for _, in := range []Intent{{Op: event.Append()}, {Op: event.Replace(0, 0), Sources: []int64{0}}} {
		if _, err := s.Append(ctx, event.ToolResult, result, in); err != nil {
			t.Fatal(err)
		}
	}
	for _, when := range []string{"appended", "opened"} {
		if n := len(s.slot.Load().core.planner.rewritten); n > 0 {
			t.Errorf("%s: %d events are kept", when, n)
		}
		if err := s.Detach(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Surface().State(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
