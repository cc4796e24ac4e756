package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

func seeded(t testing.TB, seed []event.Draft) *session.Session {
	t.Helper()
	return create(t, newSet(t, memory.New(), quiet()), session.New{Seed: seed})
}

func firstLive(t testing.TB, s *session.Session) int64 {
	t.Helper()
	info, err := s.Info(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return info.FirstLiveSeq
}

// Given a seed, when a session is made of it, then it ends with one session/end-seed, and firstLiveSeq is the seed's length.
func TestSeedEndsWithEndSeed(t *testing.T) {
	marker := step{typ: event.EndSeed, data: `{}`}
	tests := []struct {
		name      string
		seed      []event.Draft
		types     []string
		firstLive int64
	}{
		{"none", nil, nil, 0},
		{"empty", []event.Draft{}, []string{event.EndSeed}, 0},
		{"of one event", drafts(note("x")), []string{"test/note", event.EndSeed}, 1},
		{"that ends so already", drafts(note("x"), marker), []string{"test/note", event.EndSeed}, 2},
		{"that had ended so before", drafts(marker, note("x")), []string{event.EndSeed, "test/note", event.EndSeed}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := seeded(t, tt.seed)
			wantEqual(t, "log", types(logOf(t, s)), tt.types)
			wantEqual(t, "firstLiveSeq", firstLive(t, s), tt.firstLive)
			wantEqual(t, "asOfSeq", state(t, s).AsOfSeq, int64(len(tt.types))-1)
			ev, err := appendStep(s, note("live"))
			if err != nil || ev.Seq != int64(len(tt.types)) {
				t.Errorf("the first live event got seq %d, %v", ev.Seq, err)
			}
		})
	}
}

// Given the log of a seeded session, when it is a seed again, then it is the same log.
func TestSeedOfASeedAddsNothing(t *testing.T) {
	first := seeded(t, drafts(one()...))
	log := logOf(t, first)
	var seed []event.Draft
	for _, ev := range log {
		seed = append(seed, event.Draft{Event: ev})
	}
	second := seeded(t, seed)
	wantEqual(t, "log", logOf(t, second), log)
	wantEqual(t, "firstLiveSeq", firstLive(t, second), 7)
	wantEqual(t, "surface", state(t, second), state(t, first))
	wantEqual(t, "messages", messageIDs(messages(t, second)), []string{"u-hi", "a-hello"})
}

// Given a seed with a bad event, then it is refused with the event's index and the rule, and no session is there.
func TestBadSeeds(t *testing.T) {
	at := func(list []event.Draft, i int, change func(*event.Draft)) []event.Draft {
		change(&list[i])
		return list
	}
	tests := []struct {
		name  string
		seed  []event.Draft
		index int64
		code  event.Code
	}{
		{"data is not JSON", at(drafts(note("x"), note("y")), 1, func(d *event.Draft) { d.Data = json.RawMessage(`{`) }), 1, event.DataNotLossless},
		{"no data", at(drafts(note("x")), 0, func(d *event.Draft) { d.Data = nil }), 0, event.DataNotLossless},
		{"time out of range", at(drafts(note("x")), 0, func(d *event.Draft) { d.Time = 1 << 53 }), 0, event.EnvelopeInvalid},
		{"the least time there is", at(drafts(note("x")), 0, func(d *event.Draft) { d.Time = math.MinInt64 }), 0, event.EnvelopeInvalid},
		{"too large", at(drafts(note("x"), note("y")), 1, func(d *event.Draft) { d.Data = json.RawMessage(`"` + string(filler(2000)) + `"`) }), 1, event.TooLarge},
		{"gap", at(drafts(note("x"), note("y")), 1, func(d *event.Draft) { d.Seq = 5 }), 1, event.SeqNotContiguous},
		{"shape", at(drafts(note("x"), user("y")), 1, func(d *event.Draft) { d.Data = json.RawMessage(`null`) }), 1, event.MessageInvalid},
		{"shape before seq", at(drafts(user("y")), 0, func(d *event.Draft) { d.Seq, d.Data = 7, json.RawMessage(`null`) }), 0, event.MessageInvalid},
		{"retired", drafts(step{typ: "request/header-delta", data: `{}`}), 0, event.EncodingRetired},
		{"no marker", drafts(note("x"), step{typ: event.UserMessage, data: userData("x")}), 1, event.SurfaceOpMissing},
		{"unknown start", drafts(user("x"), user("y").replacing(42, 42, 0)), 1, event.SurfaceRangeInvalid},
		{"rewrite of more than content", drafts(assistant("", "c"), toolResult("c", "x"),
			step{event.ToolResult, `{"turn":2,"step":1,"message":{"id":"r-c","role":"user","content":[{"type":"tool-result","toolCallId":"c","content":[],"isError":false}],"source":{"kind":"tool","callId":"c"}}}`,
				session.Intent{Op: event.Replace(1, 1), Sources: []int64{1}}}), 2, event.ToolResultRewrite},
		{"rewrite of a result that was shadowed", drafts(toolResult("c", "x"), user("y").replacing(0, 0, 0), toolResult("c", "z").replacing(0, 0, 0)), 2, event.SurfaceRangeInvalid},
		{"rewrite of another type", drafts(user("x"), toolResult("c", "x").replacing(0, 0, 0)), 1, event.ToolResultRewrite},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := quiet()
			o.MaxEventBytes = 1000
			set := newSet(t, memory.New(), o)
			_, err := set.Create(context.Background(), session.New{Header: event.Header{ID: "s"}, Seed: tt.seed})
			wantCode(t, err, tt.code)
			if at := wantErr[*event.IndexError](t, err); at != nil && at.Index != tt.index {
				t.Errorf("refused at %d, want %d", at.Index, tt.index)
			}
			_, err = set.Open(context.Background(), "s")
			wantErr[*eventlog.NotFoundError](t, err)
		})
	}
}

// Given a seed with rewritten results, long ones too, then it is accepted, as it was when it was appended.
func TestSeedMayRewriteResults(t *testing.T) {
	s := seeded(t, drafts(assistant("", "c"), toolResult("c", "long"), toolResult("c", "short").replacing(1, 1, 1), toolResult("c", "").replacing(2, 2, 2)))
	wantEqual(t, "nodes", state(t, s).Nodes, []int64{0, 3})
}

// Given a seed that the caller changes afterwards, then the log stays; the same for a header.
func TestSeedAndHeaderAreCopied(t *testing.T) {
	seed := drafts(note("x"), user("y").from(0))
	preset, n := "p", int64(3)
	h := event.Header{ID: "s", CWD: "/accepted", AgentPreset: &preset, SeedLength: &n}
	s := create(t, newSet(t, memory.New(), quiet()), session.New{Header: h, Seed: seed})
	before := logOf(t, s)
	want := string(before[0].Data)
	copy(seed[0].Data, "garbage")
	seed[1].Sources[0] = 99
	h.CWD, preset, n = "/elsewhere", "other", 4
	got := s.Header()
	*got.AgentPreset = "changed in a copy"
	wantEqual(t, "data", string(logOf(t, s)[0].Data), want)
	wantEqual(t, "sources", logOf(t, s)[1].Sources, []int64{0})
	got = s.Header()
	wantEqual(t, "header", []any{got.CWD, *got.AgentPreset, *got.SeedLength}, []any{"/accepted", "p", int64(3)})
}

// Given a bad header, then it is refused before any event, and nothing is there.
func TestBadHeaders(t *testing.T) {
	bad := int64(-1)
	for name, h := range map[string]event.Header{
		"id":              {ID: "a/b"},
		"version":         {Version: 1},
		"cwd":             {CWD: "relative"},
		"createdAt":       {CreatedAt: -1},
		"seedLength":      {SeedLength: &bad},
		"delegationDepth": {DelegationDepth: &bad},
		"origin":          {Origin: "fork"},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet(t, memory.New(), quiet())
			_, err := set.Create(context.Background(), session.New{Header: h, Seed: []event.Draft{{}}})
			wantCode(t, err, event.HeaderInvalid)
		})
	}
}

// Given a log, when it is imported, then it is as it was: nothing is added and there is no seed.
func TestImportAddsNothing(t *testing.T) {
	set := newSet(t, logtest.Short(memory.New(), 1), quiet())
	s, err := set.Import(context.Background(), event.Header{ID: "s", CreatedAt: 1}, each(drafts(one()...)))
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "log", logOf(t, s), events(drafts(one()...)))
	wantEqual(t, "firstLiveSeq", firstLive(t, s), 0)
	_, err = set.Import(context.Background(), event.Header{ID: "s"}, each(drafts(one()...)))
	wantErr[*eventlog.ExistsError](t, err)
}

// Given a source of events that fails, when it is imported, then its error comes back as it is, and nothing is there.
func TestImportIsAllOrNothing(t *testing.T) {
	set := newSet(t, memory.New(), quiet())
	torn := errors.New("torn")
	_, err := set.Import(context.Background(), event.Header{ID: "s"}, func(yield func(event.Draft, error) bool) {
		_ = yield(drafts(note("x"))[0], nil) && yield(event.Draft{}, torn)
	})
	if err != torn {
		t.Errorf("got %v, want the error of the source", err)
	}
	_, err = set.Open(context.Background(), "s")
	wantErr[*eventlog.NotFoundError](t, err)
}

// Given an id that is taken, when a session is created with it, then it is refused.
func TestCreateRefusesATakenID(t *testing.T) {
	set := newSet(t, memory.New(), quiet())
	n := session.New{Header: event.Header{ID: "s"}}
	s := create(t, set, n)
	for range 2 {
		_, err := set.Create(context.Background(), n)
		wantErr[*eventlog.ExistsError](t, err)
		if err := s.Detach(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}
