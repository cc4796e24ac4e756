package session_test

import (
	"context"
	"encoding/json"
	"math"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

type cycle struct {
	Next *cycle `json:"next"`
}

func selfish() any {
	c := &cycle{}
	c.Next = c
	return c
}

// Given a session with a turn/start and one node, when an append is refused, then the code is that of the first rule broken, and log, surface
// and seq are as they were.
func TestRefusedAppendLeavesNoTrace(t *testing.T) {
	raw := func(s string) any { return json.RawMessage(s) }
	tests := []struct {
		name string
		typ  string
		data any
		in   session.Intent
		code event.Code
	}{
		{"NaN", "x", math.NaN(), session.Intent{}, event.DataNotLossless},
		{"infinity", "x", math.Inf(1), session.Intent{}, event.DataNotLossless},
		{"function", "x", func() {}, session.Intent{}, event.DataNotLossless},
		{"channel", "x", make(chan int), session.Intent{}, event.DataNotLossless},
		{"cycle", "x", selfish(), session.Intent{}, event.DataNotLossless},
		{"negative zero", "x", raw(`{"n":-0}`), session.Intent{}, event.DataNotLossless},
		{"duplicate key", "x", raw(`{"a":1,"a":2}`), session.Intent{}, event.DataNotLossless},
		{"no data", "x", raw(``), session.Intent{}, event.DataNotLossless},
		{"type is not text", "x\xff", raw(`{}`), session.Intent{}, event.EnvelopeInvalid},
		{"end-seed is the host's", event.EndSeed, raw(`{}`), session.Intent{}, event.EnvelopeInvalid},
		{"message is null", event.UserMessage, raw(`null`), appended, event.MessageInvalid},
		{"message has another role", event.UserMessage, raw(`{"id":"m","role":"assistant","content":[],"source":{"kind":"user"}}`), appended, event.MessageInvalid},
		{"request header without model", event.RequestHeader, raw(`{"header":{"config":{"provider":"p"}},"reason":"initial"}`), session.Intent{}, event.RequestHeaderInvalid},
		{"retired type", "request/header-delta", raw(`{}`), session.Intent{}, event.EncodingRetired},
		{"retired reason", event.RequestHeader, raw(`{"header":{"config":{"provider":"p","model":"m"}},"reason":"fallback"}`), session.Intent{}, event.EncodingRetired},
		{"no op on a message", event.UserMessage, raw(userData("x")), session.Intent{}, event.SurfaceOpMissing},
		{"op on a boundary", event.TurnStart, raw(`{"turn":1}`), appended, event.SurfaceIneligible},
		{"sources on a boundary", event.TurnStart, raw(`{"turn":1}`), session.Intent{Sources: []int64{0}}, event.SurfaceIneligible},
		{"empty sources on a boundary", event.TurnStart, raw(`{"turn":1}`), session.Intent{Sources: []int64{}}, event.SurfaceIneligible},
		{"bad op on a boundary", event.TurnStart, raw(`{"turn":1}`), session.Intent{Op: event.Op{Kind: 9}}, event.SurfaceIneligible},
		{"unknown op", event.UserMessage, raw(userData("x")), session.Intent{Op: event.Op{Kind: 9}}, event.SurfaceOpInvalid},
		{"negative range", event.UserMessage, raw(userData("x")), session.Intent{Op: event.Replace(-1, 0)}, event.SurfaceOpInvalid},
		{"range beyond exact integers", event.UserMessage, raw(userData("x")), session.Intent{Op: event.Replace(0, 1<<53)}, event.SurfaceOpInvalid},
		{"range not on the surface", event.UserMessage, raw(userData("x")), session.Intent{Op: event.Replace(0, 1), Sources: []int64{0, 1}}, event.SurfaceRangeInvalid},
		{"bad range before bad sources", event.UserMessage, raw(userData("x")), session.Intent{Op: event.Replace(0, 1), Sources: []int64{-1}}, event.SurfaceRangeInvalid},
		{"replacement without sources", event.UserMessage, raw(userData("x")), session.Intent{Op: event.Replace(1, 1)}, event.SourcesIncomplete},
		{"empty sources on a user/message", event.UserMessage, raw(userData("x")), session.Intent{Op: event.Append(), Sources: []int64{}}, event.SourcesInvalid},
		{"negative source", event.UserMessage, raw(userData("x")), session.Intent{Op: event.Append(), Sources: []int64{0, -1}}, event.SourcesInvalid},
		{"source beyond exact integers", event.UserMessage, raw(userData("x")), session.Intent{Op: event.Append(), Sources: []int64{1 << 53}}, event.SourcesInvalid},
		{"source twice", event.UserMessage, raw(userData("x")), session.Intent{Op: event.Append(), Sources: []int64{0, 0}}, event.SourcesInvalid},
		{"source not earlier", event.UserMessage, raw(userData("x")), session.Intent{Op: event.Append(), Sources: []int64{2}}, event.SourcesInvalid},
		{"too large", "x", raw(`"` + string(filler(2000)) + `"`), session.Intent{}, event.TooLarge},
	}
	o := quiet()
	o.MaxEventBytes = 1000
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := create(t, newSet(t, memory.New(), o), session.New{})
			appendAll(t, s, turnStart(1), user("node"))
			before := state(t, s)
			_, err := s.Append(context.Background(), tt.typ, tt.data, tt.in)
			wantCode(t, err, tt.code)
			if _, indexed := err.(*event.IndexError); indexed {
				t.Errorf("%v: one event needs no index", err)
			}
			wantEqual(t, "surface", state(t, s), before)
			wantEqual(t, "log", types(logOf(t, s)), []string{event.TurnStart, event.UserMessage})
			ev, err := appendStep(s, note("next"))
			if err != nil || ev.Seq != 2 {
				t.Errorf("the next append got seq %d, %v; want 2", ev.Seq, err)
			}
		})
	}
}

func filler(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'x'
	}
	return b
}

// Given an append that breaks two rules, then the one checked first is reported.
func TestAppendChecksInOrder(t *testing.T) {
	s := fresh(t)
	ctx := context.Background()
	_, err := s.Append(ctx, event.UserMessage, json.RawMessage(`{"a":1,"a":1}`), session.Intent{})
	wantCode(t, err, event.DataNotLossless) // before the shape
	_, err = s.Append(ctx, event.UserMessage, json.RawMessage(`{}`), session.Intent{Sources: []int64{1 << 53}})
	wantCode(t, err, event.MessageInvalid) // before the intent
	_, err = s.Append(ctx, "request/header-delta", json.RawMessage(`{}`), appended)
	wantCode(t, err, event.EncodingRetired) // before the surface

	set := newSet(t, memory.New(), quiet())
	asked := 0
	set.AddObserver(func(ctx context.Context, s *session.Session, _ []event.Event) {
		for _, in := range []session.Intent{
			{Op: event.Append(), Sources: []int64{1 << 53}},
			{Op: event.Replace(1<<53, 0)},
			{Op: event.Replace(0, 1<<53)},
		} {
			_, err := s.Append(ctx, event.UserMessage, json.RawMessage(userData("x")), in)
			if _, reentrant := err.(*session.ReentrantError); err == nil || reentrant {
				t.Errorf("%+v: got %v, want the intent before re-entrancy", in, err)
			}
			asked++
		}
		for _, in := range []session.Intent{
			{},
			{Op: event.Append(), Sources: []int64{event.MaxInteger}},
			{Op: event.Append(), Sources: []int64{-1}},
			{Op: event.Replace(event.MaxInteger, event.MaxInteger)},
			{Op: event.Replace(-1, 0)},
			{Op: event.Op{Kind: 9}},
		} {
			_, err := s.Append(ctx, event.UserMessage, json.RawMessage(userData("x")), in)
			wantIs(t, err, session.ErrReentrant) // before the surface
			asked++
		}
	})
	appendAll(t, create(t, set, session.New{}), note("x"))
	wantEqual(t, "asked", asked, 9)
}

// Given data in an odd but lossless spelling, when it is appended, then the log has it byte for byte, white space outside strings aside.
func TestAppendKeepsBytes(t *testing.T) {
	s := fresh(t)
	data := `{ "z" : 1.0 , "a":"<&>\u2028 \ud800", "n":1e2 }`
	ev, err := s.Append(context.Background(), "x", json.RawMessage(data), session.Intent{})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"z":1.0,"a":"<&>\u2028 \ud800","n":1e2}`
	wantEqual(t, "returned data", string(ev.Data), want)
	wantEqual(t, "logged data", string(logOf(t, s)[0].Data), want)
}

// Given an append, when the caller changes its values afterwards, then the log and the returned event stay.
func TestAppendIsDetachedFromItsCaller(t *testing.T) {
	s := fresh(t)
	appendAll(t, s, turnStart(1), note("x"))
	data := json.RawMessage(userData("hi"))
	sources := []int64{0, 1}
	ev, err := s.Append(context.Background(), event.UserMessage, data, session.Intent{Op: event.Append(), Sources: sources})
	if err != nil {
		t.Fatal(err)
	}
	copy(data, "garbage")
	sources[0] = 99
	wantEqual(t, "returned sources", ev.Sources, []int64{0, 1})
	wantEqual(t, "logged event", logOf(t, s)[2], ev)
	wantEqual(t, "data", string(ev.Data), userData("hi"))
}

// Given a type that is not eligible, then its event carries neither surface field; an empty list of sources is kept apart from none.
func TestAppendKeepsAbsentAndEmptySources(t *testing.T) {
	s := fresh(t)
	appendAll(t, s, turnStart(1), assistant("none"), assistant("empty").from())
	ev, err := s.Append(context.Background(), event.UserMessage, json.RawMessage(userData("x")), session.Intent{Op: event.Op{Kind: event.OpAppend, Start: 1, End: 2}})
	if err != nil || ev.Op != event.Append() {
		t.Errorf("what is no part of an append stays in it: %+v, %v", ev.Op, err)
	}
	log := logOf(t, s)
	if log[0].Op.Kind != event.OpNone || log[0].Sources != nil || log[1].Sources != nil {
		t.Errorf("surface fields where there were none: %+v", log[:2])
	}
	if s, err := appendStep(s, step{event.AssistantMessage, assistant("e").data, session.Intent{Op: event.Append(), Sources: []int64{}}}); err != nil || s.Sources == nil {
		t.Errorf("empty sources became absent: %v, %v", s.Sources, err)
	}
}

// Given a clock, when events are appended, then they carry its time, and items of a batch the time they ask for.
func TestEventTimes(t *testing.T) {
	o := quiet()
	o.Now = clock(1234)
	s := create(t, newSet(t, memory.New(), o), session.New{})
	appendAll(t, s, note("now"))
	back := int64(-5)
	list := items(note("then"), note("now"))
	list[0].Time, list[0].Ignorable = &back, true
	if _, _, err := s.AppendBatch(context.Background(), session.Batch{Items: list}); err != nil {
		t.Fatal(err)
	}
	log := logOf(t, s)
	wantEqual(t, "times", []int64{log[0].Time, log[1].Time, log[2].Time}, []int64{1234, -5, 1234})
	wantEqual(t, "ignorable", []bool{log[0].Ignorable, log[1].Ignorable, log[2].Ignorable}, []bool{false, true, false})
	wantEqual(t, "createdAt", s.Header().CreatedAt, 1234)
	for _, far := range []int64{event.MaxInteger, -event.MaxInteger} {
		list[0].Time = &far
		if _, events, err := s.AppendBatch(context.Background(), session.Batch{Items: list}); err != nil || events[0].Time != far {
			t.Errorf("at %d: %v", far, err)
		}
	}
	for _, bad := range []int64{1 << 53, -1 << 53, math.MinInt64, math.MinInt64 + 1, math.MaxInt64} {
		list[0].Time = &bad
		_, _, err := s.AppendBatch(context.Background(), session.Batch{Items: list})
		wantCode(t, err, event.EnvelopeInvalid)
	}
}
