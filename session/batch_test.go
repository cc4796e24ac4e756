package session_test

import (
	"context"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

func batch(s *session.Session, steps ...step) (eventlog.Commit, []event.Event, error) {
	return s.AppendBatch(context.Background(), session.Batch{Items: items(steps...)})
}

// Given items that stand on each other, when they are appended together, then each is planned on top of those before it, as if they had come one by one.
func TestBatchItemsStandOnEachOther(t *testing.T) {
	tests := []struct {
		name   string
		before []step
		batch  []step
		nodes  []int64
	}{
		{"appends", nil, []step{turnStart(1), user("a"), user("b")}, []int64{1, 2}},
		{"replacing a node of the batch", nil, []step{user("a"), user("b"), user("c").replacing(0, 1, 0, 1)}, []int64{2}},
		{"replacing in the middle of the surface", []step{user("a"), user("b"), user("c"), user("d")}, []step{user("e").replacing(0, 1, 0, 1), note("x"), user("f").replacing(2, 2, 2)}, []int64{4, 6, 3}},
		{"replacing twice", []step{user("a"), user("b"), user("c")}, []step{user("d").replacing(1, 1, 1), user("e").replacing(3, 2, 3, 2), user("f")}, []int64{0, 4, 5}},
		{"rewriting a result of the batch", nil, []step{assistant("", "c1"), toolResult("c1", "long"), toolResult("c1", "short").replacing(1, 1, 1)}, []int64{0, 2}},
		{"rewriting a result of the log", []step{toolResult("c1", "long")}, []step{note("x"), toolResult("c1", "short").replacing(0, 0, 0)}, []int64{2}},
		{"rewriting several results of the log", []step{toolResult("c1", "long"), toolResult("c2", "long"), user("x"), toolResult("c3", "long")},
			[]step{toolResult("c1", "short").replacing(0, 0, 0), toolResult("c2", "short").replacing(1, 1, 1), toolResult("c1", "").replacing(4, 4, 4), toolResult("c3", "short").replacing(3, 3, 3)}, []int64{6, 5, 2, 7}},
		{"a compaction in one piece", []step{user("a"), assistant("b")}, []step{note("start"), note("summary"), user("s").replacing(0, 1, 0, 1, 2, 3), note("end")}, []int64{4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			together, single := fresh(t), fresh(t)
			appendAll(t, together, tt.before...)
			commit, events, err := batch(together, tt.batch...)
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "first", commit.First, int64(len(tt.before)))
			wantEqual(t, "length", commit.Seq, int64(len(tt.before)+len(tt.batch)))
			wantEqual(t, "returned events", events, logOf(t, together)[commit.First:])
			wantEqual(t, "nodes", state(t, together).Nodes, tt.nodes)
			appendAll(t, single, append(tt.before, tt.batch...)...)
			wantEqual(t, "surface", state(t, together), state(t, single))
			wantEqual(t, "messages", messageIDs(messages(t, together)), messageIDs(messages(t, single)))
		})
	}
}

// Given a batch with one item that is refused, then the error names it and nothing of the batch is there.
func TestBatchIsAllOrNothing(t *testing.T) {
	tests := []struct {
		name  string
		items []session.Item
		index int64
		code  event.Code
	}{
		{"bad data", []session.Item{{Type: "x", Data: []byte(`{}`)}, {Type: "x", Data: []byte(`{`)}}, 1, event.DataNotLossless},
		{"bad shape", []session.Item{{Type: event.UserMessage, Data: []byte(`{}`)}, {Type: "x", Data: []byte(`{`)}}, 0, event.MessageInvalid},
		{"bad surface", items(user("a"), user("b"), user("c").replacing(0, 1, 0)), 2, event.SourcesIncomplete},
		{"a node that the batch took away", items(user("a"), user("b").replacing(0, 0, 0), user("c").replacing(0, 0, 0)), 2, event.SurfaceRangeInvalid},
		{"the second of two rewrites", append(items(toolResult("a", "y").replacing(1, 1, 1)), items(toolResult("b", "y").replacing(1, 1, 1))...), 0, event.SurfaceRangeInvalid},
		{"a rewrite of what comes later", items(toolResult("a", "y").replacing(1, 1, 0), toolResult("a", "x")), 0, event.SurfaceRangeInvalid},
		{"op that no Intent can say", []session.Item{{Type: "x", Data: []byte(`1`)}, {Type: event.UserMessage, Data: []byte(userData("x")), OpFault: "prepend is no op"}}, 1, event.SurfaceOpInvalid},
		{"sources that no Intent can say", []session.Item{{Type: event.UserMessage, Data: []byte(userData("x")), Intent: appended, SourcesFault: "not a list"}}, 0, event.SourcesInvalid},
		{"the fault has its place in the order", []session.Item{{Type: "x", Data: []byte(`1`), OpFault: "prepend is no op"}}, 0, event.SurfaceIneligible},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := fresh(t)
			_, _, err := s.AppendBatch(context.Background(), session.Batch{Items: tt.items})
			wantCode(t, err, tt.code)
			if at := wantErr[*event.IndexError](t, err); at != nil && at.Index != tt.index {
				t.Errorf("refused at %d, want %d", at.Index, tt.index)
			}
			wantEqual(t, "log", logOf(t, s), nil)
			wantEqual(t, "surface", state(t, s), session.SurfaceState{AsOfSeq: -1})
		})
	}
	_, _, err := fresh(t).AppendBatch(context.Background(), session.Batch{})
	wantErr[*eventlog.InvalidError](t, err)
}

// Given a batch that replaces nodes of the surface and is refused or vetoed later, then the surface is as it was, and what comes next stands on it.
func TestRefusedBatchLeavesTheSurface(t *testing.T) {
	set := newSet(t, memory.New(), quiet())
	s := create(t, set, session.New{})
	appendAll(t, s, user("a"), user("b"), user("c"), user("d"))
	replacing := []step{user("e").replacing(0, 1, 0, 1), user("f").replacing(3, 3, 3)}
	if _, _, err := batch(s, append(replacing, user("g").replacing(0, 0, 0))...); err == nil {
		t.Error("accepted")
	}
	remove := set.AddHook(func(context.Context, *session.Session, []event.Event) error { return errBroken })
	if _, _, err := batch(s, replacing...); err == nil {
		t.Error("not vetoed")
	}
	remove()
	appendAll(t, s, user("h").replacing(1, 2, 1, 2))
	wantEqual(t, "nodes", state(t, s).Nodes, []int64{0, 4, 3})
}

// Given an expected seq, then the batch is appended if it is the next one, and else told which that is.
func TestExpectedSeq(t *testing.T) {
	s := fresh(t)
	for _, tt := range []struct {
		expected int64
		ok       bool
	}{{1, false}, {-1, false}, {0, true}, {0, false}, {1, true}} {
		head := state(t, s).AsOfSeq + 1
		_, _, err := s.AppendBatch(context.Background(), session.Batch{Items: items(note("x")), ExpectedSeq: &tt.expected})
		if tt.ok {
			if err != nil {
				t.Errorf("expected %d at %d: %v", tt.expected, head, err)
			}
			continue
		}
		if c := wantErr[*eventlog.SeqConflictError](t, err); c != nil {
			wantEqual(t, "conflict", *c, eventlog.SeqConflictError{ID: s.ID(), Seq: head, Expected: tt.expected})
		}
	}
}

// Given a batch with a key, when it comes again, then the first commit is given with its events, whatever the session looks like now; another request
// under the key is refused.
func TestIdempotencyKey(t *testing.T) {
	set := newSet(t, logtest.Short(memory.New(), 3), quiet())
	s := create(t, set, session.New{})
	zero := int64(0)
	first := session.Batch{Items: items(user("a"), note("b")), Once: session.Once{Key: "k", Digest: "d"}, ExpectedSeq: &zero}
	ctx := context.Background()
	commit, events, err := s.AppendBatch(ctx, first)
	if err != nil || commit.Repeated {
		t.Fatalf("first: %+v, %v", commit, err)
	}
	// The session moves on so far that the batch would be refused now: its expected seq is past, its node is gone.
	appendAll(t, s, user("c").replacing(0, 0, 0))
	for _, when := range []string{"live", "opened again"} {
		again, same, err := s.AppendBatch(ctx, first)
		commit.Repeated = true
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		wantEqual(t, when+": commit", again, commit)
		wantEqual(t, when+": events", same, events)
		if err := s.Detach(ctx); err != nil {
			t.Fatal(err)
		}
	}
	other := first
	other.Once.Digest = "other"
	_, _, err = s.AppendBatch(ctx, other)
	wantErr[*eventlog.KeyReusedError](t, err)
	wantEqual(t, "length", len(logOf(t, s)), 3)
}

// Given two requests with one key at the same time, then one is committed and the other gets that commit.
func TestIdempotentTwinsInFlight(t *testing.T) {
	store := logtest.Slow(memory.New())
	s := create(t, newSet(t, store, quiet()), session.New{})
	gate := store.Hold(logtest.Append)
	request := session.Batch{Items: items(note("x")), Once: session.Once{Key: "k", Digest: "d"}}
	repeated := make(chan bool, 2)
	for range 2 {
		go func() {
			commit, _, err := s.AppendBatch(context.Background(), request)
			if err != nil {
				t.Errorf("twin: %v", err)
			}
			repeated <- commit.Repeated
		}()
	}
	<-gate.Arrived()
	gate.Release()
	if a, b := <-repeated, <-repeated; a == b {
		t.Errorf("both twins say repeated = %v", a)
	}
	wantEqual(t, "log", types(logOf(t, s)), []string{"test/note"})
}
