package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

// Given a range of nodes, when it is compacted, then one user/message stands in its place with sources naming all it shadows, unless the range would part
// a tool call from its result.
func TestCompact(t *testing.T) {
	call := []step{turnStart(1), stepStart(1, 1), user("a"), assistant("b", "c1", "c2"), toolResult("c1", "x"), toolResult("c2", "y"), stepEnd(1, 1), turnEnd(1), user("z")}
	pending := []step{turnStart(1), stepStart(1, 1), user("a"), assistant("b", "c1")}
	dead := append(append([]step{}, pending...), stepEnd(1, 1))
	tests := []struct {
		name       string
		log        []step
		start, end int64
		nodes      []int64 // nil: refused
		code       event.Code
	}{
		{"messages", []step{user("a"), note("x"), user("b"), user("c")}, 0, 2, []int64{4, 3}, ""},
		{"one node", []step{user("a")}, 0, 0, []int64{1}, ""},
		{"in the order of nodes", []step{user("a"), user("b"), user("c").replacing(0, 0, 0)}, 2, 1, []int64{3}, ""},
		{"against it", []step{user("a"), user("b"), user("c").replacing(0, 0, 0)}, 1, 2, nil, event.SurfaceRangeInvalid},
		{"an unknown start", []step{user("a")}, 7, 0, nil, event.SurfaceRangeInvalid},
		{"an unknown end", []step{user("a")}, 0, 7, nil, event.SurfaceRangeInvalid},
		{"a negative start", []step{user("a")}, -1, 0, nil, event.SurfaceOpInvalid},
		{"a negative end", []step{user("a")}, 0, -1, nil, event.SurfaceOpInvalid},
		{"a result whose call is gone", []step{user("a"), toolResult("c", "x")}, 1, 1, []int64{0, 2}, ""},
		{"a call with its result in a step that goes on", []step{turnStart(1), stepStart(1, 1), assistant("b", "c"), toolResult("c", "x")}, 2, 3, []int64{4}, ""},
		{"a call right behind the end of a step", []step{stepEnd(1, 1), assistant("b", "c"), note("x")}, 1, 1, nil, event.SurfaceRangeInvalid},
		{"calls with their results", call, 3, 5, []int64{2, 9, 8}, ""},
		{"all", call, 2, 8, []int64{9}, ""},
		{"before a call", call, 2, 2, []int64{9, 3, 4, 5, 8}, ""},
		{"after the results", call, 8, 8, []int64{2, 3, 4, 5, 9}, ""},
		{"up to a call", call, 2, 3, nil, event.SurfaceRangeInvalid},
		{"up to one of two results", call, 2, 4, nil, event.SurfaceRangeInvalid},
		{"from a result", call, 4, 8, nil, event.SurfaceRangeInvalid},
		{"from the second result", call, 5, 8, nil, event.SurfaceRangeInvalid},
		{"a call whose result may come", pending, 2, 3, nil, event.SurfaceRangeInvalid},
		{"before a call whose result may come", pending, 2, 2, []int64{4, 3}, ""},
		{"a call that nothing answers any more", dead, 2, 3, []int64{5}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, logtest.Short(memory.New(), 4), quiet())
			s := create(t, set, session.New{})
			appendAll(t, s, tt.log...)
			before := state(t, s)
			ev, err := s.Compact(context.Background(), tt.start, tt.end, json.RawMessage(userData("summary")))
			wantCode(t, err, tt.code)
			if tt.code != "" {
				wantEqual(t, "surface", state(t, s), before)
				return
			}
			wantEqual(t, "nodes", state(t, s).Nodes, tt.nodes)
			wantEqual(t, "op", ev.Op, event.Replace(tt.start, tt.end))
			shadowed := map[int64]bool{}
			for _, seq := range before.Nodes {
				shadowed[seq] = true
			}
			for _, seq := range state(t, s).Nodes {
				delete(shadowed, seq)
			}
			wantEqual(t, "sources", len(ev.Sources), len(shadowed))
			for _, seq := range ev.Sources {
				if !shadowed[seq] {
					t.Errorf("source %d is not shadowed", seq)
				}
			}
		})
	}
	_, err := fresh(t).Compact(context.Background(), 0, 0, json.RawMessage(`{}`))
	wantCode(t, err, event.MessageInvalid)
}

// Given a message of many calls that nothing answered, then the store is asked once whether its step has ended.
func TestCompactAsksOnceForAMessage(t *testing.T) {
	calls := make([]string, 50)
	for i := range calls {
		calls[i] = fmt.Sprint("c", i)
	}
	store := logtest.Slow(memory.New())
	s := create(t, newSet(t, store, quiet()), session.New{})
	appendAll(t, s, stepStart(1, 1), assistant("", calls...), stepEnd(1, 1))
	store.Counts()
	if _, err := s.Compact(context.Background(), 1, 1, json.RawMessage(userData("x"))); err != nil {
		t.Fatal(err)
	}
	if n := store.Counts().Calls[logtest.Read]; n != 2 { // and once for the nodes
		t.Errorf("%d reads", n)
	}
}

// Given an injected context, then it is visible as long as its seq is a node.
func TestIsMyContextStillVisible(t *testing.T) {
	s := fresh(t)
	appendAll(t, s, user("injected"), user("a"), user("b"))
	for _, want := range []bool{true, false} {
		if got, err := s.Surface().Contains(context.Background(), 0); err != nil || got != want {
			t.Errorf("visible: %v, %v; want %v", got, err, want)
		}
		if want {
			if _, err := s.Compact(context.Background(), 0, 1, json.RawMessage(userData("summary"))); err != nil {
				t.Fatal(err)
			}
		}
	}
}
