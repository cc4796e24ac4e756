package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

// quiet are options that log nowhere.
func quiet() session.Options {
	return session.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), IdleAfter: -1}
}

// newSet returns a set over store that is closed with the test.
func newSet(t testing.TB, store eventlog.Store, o session.Options) *session.Set {
	t.Helper()
	set := session.NewSet(store, o)
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Errorf("closing the set: %v", err)
		}
	})
	return set
}

// fresh is an empty session of an own set over a store in memory.
func fresh(t testing.TB) *session.Session {
	t.Helper()
	return create(t, newSet(t, memory.New(), quiet()), session.New{})
}

func create(t testing.TB, set *session.Set, n session.New) *session.Session {
	t.Helper()
	s, err := set.Create(context.Background(), n)
	if err != nil {
		t.Fatalf("creating: %v", err)
	}
	return s
}

// step is an event as the cases spell it: what is appended, imported or seeded.
type step struct {
	typ  string
	data string
	in   session.Intent
}

var appended = session.Intent{Op: event.Append()}

func turnStart(turn int) step {
	return step{typ: event.TurnStart, data: fmt.Sprintf(`{"turn":%d}`, turn)}
}
func turnEnd(turn int) step {
	return step{typ: event.TurnEnd, data: fmt.Sprintf(`{"turn":%d,"reason":{"kind":"completed"}}`, turn)}
}
func stepStart(turn, n int) step {
	return step{typ: event.StepStart, data: fmt.Sprintf(`{"turn":%d,"step":%d}`, turn, n)}
}
func stepEnd(turn, n int) step {
	return step{typ: event.StepEnd, data: fmt.Sprintf(`{"turn":%d,"step":%d}`, turn, n)}
}

func userData(text string) string {
	return fmt.Sprintf(`{"id":"u-%s","role":"user","content":[{"type":"text","text":%q}],"source":{"kind":"user"}}`, text, text)
}

func user(text string) step { return step{event.UserMessage, userData(text), appended} }

// assistant makes a message with a text and tool calls; no text and no calls is an empty content.
func assistant(text string, calls ...string) step {
	var blocks []string
	if text != "" {
		blocks = append(blocks, fmt.Sprintf(`{"type":"text","text":%q}`, text))
	}
	for _, id := range calls {
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool-call","id":%q,"name":"read","arguments":"{}"}`, id))
	}
	return step{event.AssistantMessage, fmt.Sprintf(`{"turn":1,"step":1,"message":{"id":"a-%s","role":"assistant","content":[%s],"source":{"kind":"model","provider":"mock","model":"mock"}}}`,
		text, strings.Join(blocks, ",")), appended}
}

func toolCall(id string) step {
	return step{typ: event.ToolCall, data: fmt.Sprintf(`{"turn":1,"step":1,"callId":%q,"name":"read","arguments":"{}"}`, id)}
}

func toolResult(id, text string) step {
	return step{event.ToolResult, fmt.Sprintf(`{"turn":1,"step":1,"message":{"id":"r-%s","role":"user","content":[{"type":"tool-result","toolCallId":%q,"content":[{"type":"text","text":%q}],"isError":false}],"source":{"kind":"tool","callId":%q}}}`,
		id, id, text, id), appended}
}

func note(text string) step { return step{typ: "test/note", data: fmt.Sprintf(`{"text":%q}`, text)} }

// replacing is the step in the place of the nodes from start to end.
func (st step) replacing(start, end int64, sources ...int64) step {
	st.in = session.Intent{Op: event.Replace(start, end), Sources: sources}
	return st
}

func (st step) from(sources ...int64) step { st.in.Sources = sources; return st }

// one is a whole turn.
func one() []step {
	return []step{turnStart(1), user("hi"), stepStart(1, 1), assistant("hello"), stepEnd(1, 1), turnEnd(1)}
}

func appendStep(s *session.Session, st step) (event.Event, error) {
	return s.Append(context.Background(), st.typ, json.RawMessage(st.data), st.in)
}

func appendAll(t testing.TB, s *session.Session, steps ...step) {
	t.Helper()
	for i, st := range steps {
		if _, err := appendStep(s, st); err != nil {
			t.Fatalf("appending step %d, a %s: %v", i, st.typ, err)
		}
	}
}

func items(steps ...step) []session.Item {
	items := make([]session.Item, len(steps))
	for i, st := range steps {
		items[i] = session.Item{Type: st.typ, Data: json.RawMessage(st.data), Intent: st.in}
	}
	return items
}

func drafts(steps ...step) []event.Draft {
	drafts := make([]event.Draft, len(steps))
	for i, st := range steps {
		drafts[i] = event.Draft{Event: event.Event{Type: st.typ, Seq: int64(i), Time: int64(i + 1), Data: json.RawMessage(st.data), Op: st.in.Op, Sources: st.in.Sources}}
	}
	return drafts
}

func each[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
	}
}

// logOf is all of a session's log.
func logOf(t testing.TB, s *session.Session) []event.Event {
	t.Helper()
	var log []event.Event
	for ev, err := range s.Scan(context.Background(), 0, 0, nil) {
		if err != nil {
			t.Fatalf("reading the log: %v", err)
		}
		log = append(log, ev)
	}
	return log
}

func types(events []event.Event) []string {
	var list []string
	for _, ev := range events {
		list = append(list, ev.Type)
	}
	return list
}

func state(t testing.TB, s *session.Session) session.SurfaceState {
	t.Helper()
	st, err := s.Surface().State(context.Background())
	if err != nil {
		t.Fatalf("looking at the surface: %v", err)
	}
	return st
}

func messages(t testing.TB, s *session.Session) []json.RawMessage {
	t.Helper()
	list, err := s.Messages(context.Background())
	if err != nil {
		t.Fatalf("deriving messages: %v", err)
	}
	return list
}

func messageIDs(list []json.RawMessage) []string {
	ids := []string{}
	for _, m := range list {
		id, _ := event.String(event.Lookup(m, "id"))
		ids = append(ids, id)
	}
	return ids
}

// wantEqual compares; nil and empty lists are the same here.
func wantEqual[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// wantCode wants a broken rule with a code; empty is no error.
func wantCode(t testing.TB, err error, code event.Code) {
	t.Helper()
	var rule *event.Error
	switch {
	case code == "" && err != nil:
		t.Errorf("refused: %v", err)
	case code != "" && !errors.As(err, &rule):
		t.Errorf("got %v, want an *event.Error with code %s", err, code)
	case code != "" && rule.Code != code:
		t.Errorf("got code %s (%v), want %s", rule.Code, err, code)
	}
}

func wantErr[E error](t testing.TB, err error) (typed E) {
	t.Helper()
	if !errors.As(err, &typed) {
		t.Errorf("got %v (%T), want a %T", err, err, typed)
	}
	return typed
}

func wantIs(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("got %v, want %v", err, target)
	}
}

// clock gives a time that stands still.
func clock(ms int64) func() time.Time { return func() time.Time { return time.UnixMilli(ms) } }
