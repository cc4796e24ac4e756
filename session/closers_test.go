package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"runtime"
	"testing"
	"weak"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/surface"
)

// blocks is an assistant's message with these blocks, outside of any numbered turn or step.
func blocks(list string) step {
	return step{event.AssistantMessage, `{"message":{"id":"a","role":"assistant","content":[` + list + `],"source":{"kind":"model","provider":"mock","model":"mock"}}}`, appended}
}

// Given a log, then its closers are those of the turn it ends in; appended by Recover they are in the log, and a second time there are none.
func TestClosers(t *testing.T) {
	tests := []struct {
		name string
		log  []step
		want []string
	}{
		{"empty", nil, nil},
		{"a closed turn", one(), nil},
		{"outside of turns", []step{note("x"), assistant("", "c")}, nil},
		{"a turn", []step{turnStart(1)}, []string{"turn/end"}},
		{"a step", []step{turnStart(1), stepStart(1, 1)}, []string{"step/end", "turn/end"}},
		{"a step that has ended", []step{turnStart(1), stepStart(1, 1), stepEnd(1, 1)}, []string{"turn/end"}},
		{"a call", []step{turnStart(2), stepStart(2, 1), assistant("", "c")}, []string{"tool/result:TOOL_NOT_STARTED", "step/end", "turn/end"}},
		{"a call that has its result", []step{turnStart(2), stepStart(2, 1), assistant("", "c"), toolResult("c", "ok")}, []string{"step/end", "turn/end"}},
		{"a call that was begun", []step{turnStart(2), stepStart(2, 1), assistant("", "c"), toolCall("c")}, []string{"tool/result:TOOL_OUTCOME_UNKNOWN", "step/end", "turn/end"}},
		{"two calls, one answered", []step{turnStart(2), stepStart(2, 1), assistant("", "a", "b"), toolResult("a", "ok")}, []string{"tool/result:TOOL_NOT_STARTED", "step/end", "turn/end"}},
		{"calls in their order", []step{turnStart(2), stepStart(2, 1), assistant("", "a", "b"), toolCall("b")}, []string{"tool/result:TOOL_NOT_STARTED", "tool/result:TOOL_OUTCOME_UNKNOWN", "step/end", "turn/end"}},
		{"a call without its block", []step{turnStart(1), stepStart(1, 1), toolCall("c")}, []string{"step/end", "turn/end"}},
		{"a call of an ended step", []step{turnStart(1), stepStart(1, 1), assistant("", "c"), stepEnd(1, 1)}, []string{"turn/end"}},
		{"a call of an earlier turn", []step{turnStart(1), stepStart(1, 1), assistant("", "old"), turnEnd(1), turnStart(2), stepStart(2, 1), assistant("", "new")}, []string{"tool/result:TOOL_NOT_STARTED", "step/end", "turn/end"}},
		{"one call asked for twice", []step{turnStart(1), stepStart(1, 1), assistant("a", "c"), assistant("b", "c")}, []string{"tool/result:TOOL_NOT_STARTED", "step/end", "turn/end"}},
		{"a call asked for again after its result", []step{turnStart(1), stepStart(1, 1), assistant("a", "c"), toolCall("c"), toolResult("c", "ok"), assistant("b", "c")}, []string{"tool/result:TOOL_NOT_STARTED", "step/end", "turn/end"}},
		{"calls in the order in which they were asked for last", []step{turnStart(1), stepStart(1, 1), assistant("a", "c", "d"), toolCall("d"), toolResult("c", "ok"), assistant("b", "c")},
			[]string{"tool/result:TOOL_OUTCOME_UNKNOWN", "tool/result:TOOL_NOT_STARTED", "step/end", "turn/end"}},
		{"a call asked for twice keeps its place", []step{turnStart(1), stepStart(1, 1), assistant("a", "c", "d"), toolCall("d"), assistant("b", "c")},
			[]string{"tool/result:TOOL_NOT_STARTED", "tool/result:TOOL_OUTCOME_UNKNOWN", "step/end", "turn/end"}},
		{"blocks that are no calls, and calls without an id", []step{turnStart(1), blocks(`{"type":"text","id":"a"},{"type":"tool-call"},{"type":"tool-call","id":7},7`)}, []string{"turn/end"}},
		{"a tool/call that names no call", []step{turnStart(1), assistant("", ""), step{typ: event.ToolCall, data: `{"callId":null}`}}, []string{"tool/result:TOOL_NOT_STARTED", "turn/end"}},
		{"brackets of plugins stay open", []step{turnStart(1), step{typ: "compaction/start", data: `{}`}}, []string{"turn/end"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := quiet()
			o.Now = clock(777)
			set := newSet(t, logtest.Short(memory.New(), 2), o)
			s := create(t, set, session.New{})
			appendAll(t, s, tt.log...)
			before := logOf(t, s)
			want := closers(t, before)
			wantEqual(t, "closers", closerNames(want), tt.want)
			o.Now = clock(999)
			got, err := s.Recover(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "recovered", got, want)
			after := logOf(t, s)
			wantEqual(t, "log", after, append(before, want...))
			wantEqual(t, "closers of the closed log", closers(t, after), nil)
			if again, err := s.Recover(context.Background()); err != nil || again != nil {
				t.Errorf("recovered twice: %v, %v", again, err)
			}
		})
	}
}

// Given an interrupted call, then its result says which call, which error, where it was begun, and carries the time of the last event.
func TestCloserOfACall(t *testing.T) {
	log := events(drafts(turnStart(1), stepStart(1, 1), assistant("", "a", "b"), toolCall("b")))
	list := closers(t, log)
	text := func(e event.Event, path ...string) string {
		v, _ := event.String(event.Lookup(e.Data, path...))
		return v
	}
	for i, want := range []struct {
		id, call, name, code string
		sources              []int64
	}{
		{"interrupted-tool-result-a-4", "a", "ToolNotStartedError", session.CodeToolNotStarted, nil},
		{"interrupted-tool-result-b-5", "b", "ToolOutcomeUnknownError", session.CodeToolOutcomeUnknown, []int64{3}},
	} {
		e := list[i]
		wantEqual(t, "id", text(e, "message", "id"), want.id)
		wantEqual(t, "call", text(e, "message", "source", "callId"), want.call)
		wantEqual(t, "error", text(e, "error", "name"), want.name)
		wantEqual(t, "code", text(e, "error", "code"), want.code)
		wantEqual(t, "sources", e.Sources, want.sources)
		wantEqual(t, "op", e.Op, event.Append())
		wantEqual(t, "seq", e.Seq, int64(4+i))
		wantEqual(t, "time", e.Time, log[3].Time)
		wantEqual(t, "turn and step", string(event.Lookup(e.Data, "turn"))+string(event.Lookup(e.Data, "step")), "11")
		if err := event.CheckShape(&e); err != nil {
			t.Errorf("the shape of closer %d: %v", i, err)
		}
	}
}

// Given ids and turn numbers as odd as JSON allows, then closers are still accepted as appends would be.
func TestClosersOfOddLogs(t *testing.T) {
	for _, log := range [][]step{
		{turnStart(1), stepStart(1, 1), assistant("", "quote \" \u2028 <&>", "")},
		{step{typ: event.TurnStart, data: `null`}, step{typ: event.StepStart, data: `[]`}, assistant("", "c")},
		{step{typ: event.TurnStart, data: `null`}, blocks(`{"type":"tool-call","id":"c"}`)},
		{step{typ: event.TurnStart, data: `{"turn":{"n":1.50}}`}, step{typ: event.StepStart, data: `{"step":"x"}`}},
	} {
		s := fresh(t)
		appendAll(t, s, log...)
		if _, err := s.Recover(context.Background()); err != nil {
			t.Errorf("recovering: %v", err)
		}
		all := logOf(t, s)
		for i := range all {
			if _, err := event.DecodeDraft(all[i].AppendJSON(nil), 0); err != nil {
				t.Errorf("closer %s: %v", all[i].AppendJSON(nil), err)
			}
			if err := event.CheckShape(&all[i]); err != nil {
				t.Errorf("closer %s: %v", all[i].AppendJSON(nil), err)
			}
		}
		if _, err := surface.Fold(undrafts(all)); err != nil {
			t.Errorf("the closed log breaks the surface: %v", err)
		}
	}
}

func undrafts(log []event.Event) iter.Seq[event.Draft] {
	return func(yield func(event.Draft) bool) {
		for _, ev := range log {
			if !yield(event.Draft{Event: ev}) {
				return
			}
		}
	}
}

// Given a turn with many long messages that make calls, then its closers hold none of them in memory while they look.
func TestClosersDoNotHoldTheirTurn(t *testing.T) {
	var first weak.Pointer[byte]
	log := func(yield func(event.Event, error) bool) {
		for i, st := range []step{turnStart(1), stepStart(1, 1), assistant(string(filler(10_000)), "a"), assistant(string(filler(10_000)), "b")} {
			ev := event.Event{Type: st.typ, Seq: int64(i), Data: json.RawMessage(st.data)}
			if i == 2 {
				ev.Data = bytes.Clone(ev.Data)
				first = weak.Make(&ev.Data[0])
			}
			if !yield(ev, nil) {
				return
			}
		}
		runtime.GC()
		if first.Value() != nil {
			t.Error("a message that made a call is kept")
		}
	}
	list, err := session.Closers(log, &event.Event{Seq: 3})
	wantEqual(t, "closers", closerNames(list), []string{"tool/result:TOOL_NOT_STARTED", "tool/result:TOOL_NOT_STARTED", "step/end", "turn/end"})
	if err != nil {
		t.Error(err)
	}
}

// Given a source of events that fails, then so do the closers, with its error.
func TestClosersPassOnErrors(t *testing.T) {
	torn := errors.New("torn")
	_, err := session.Closers(func(yield func(event.Event, error) bool) { yield(event.Event{}, torn) }, &event.Event{})
	if err != torn {
		t.Errorf("got %v", err)
	}
	if list, err := session.Closers(each(events(drafts(turnStart(1)))), nil); list != nil || err != nil {
		t.Errorf("without a last event: %v, %v", list, err)
	}
}
