package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

// Given a hook that refuses, when something is appended, then nothing is logged or observed, the surface stays, and the next append gets the seq.
func TestVeto(t *testing.T) {
	no := errors.New("no")
	foreign := &event.IndexError{Index: 3, Err: no}
	tests := []struct {
		name string
		hook session.Hook
		in   func(err error) bool
	}{
		{"by what its own append to another session got", func(context.Context, *session.Session, []event.Event) error { return foreign }, func(err error) bool { return errors.Is(err, foreign) }},
		{"by an error", func(context.Context, *session.Session, []event.Event) error { return no }, func(err error) bool { return errors.Is(err, no) }},
		{"by a panic", func(context.Context, *session.Session, []event.Event) error { panic("no") }, func(err error) bool {
			var p *session.PanicError
			return errors.As(err, &p) && p.Value == "no"
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set := newSet(t, memory.New(), quiet())
			observed := 0
			set.AddObserver(func(context.Context, *session.Session, []event.Event) { observed++ })
			s := create(t, set, session.New{})
			appendAll(t, s, user("a"), user("b"), user("c").replacing(0, 1, 0, 1))
			before := state(t, s)
			remove := set.AddHook(tt.hook)
			for _, st := range []step{user("d"), user("d").replacing(2, 2, 2), note("x")} {
				_, err := appendStep(s, st)
				if wantErr[*session.VetoError](t, err); !tt.in(err) {
					t.Errorf("the cause is not in %v", err)
				}
			}
			_, _, err := batch(s, user("d"), user("e").replacing(3, 3, 3))
			wantErr[*session.VetoError](t, err)
			wantEqual(t, "surface", state(t, s), before)
			wantEqual(t, "observed", observed, 3)
			remove()
			remove()
			appendAll(t, s, user("d"))
			wantEqual(t, "nodes", state(t, s).Nodes, []int64{2, 3})
		})
	}
}

// Given a hook, then it sees the events with the seqs that they would get, while the log has its old length, and in the order in which hooks were added.
func TestHookSeesTheCandidate(t *testing.T) {
	set := newSet(t, memory.New(), quiet())
	s := create(t, set, session.New{})
	var order []string
	set.AddHook(func(ctx context.Context, got *session.Session, events []event.Event) error {
		order = append(order, "first")
		if got.ID() != s.ID() || len(events) != 2 || events[1].Seq != 1 {
			t.Errorf("the hook got %s %+v", got.ID(), events)
		}
		wantEqual(t, "length", len(logOf(t, got)), 0)
		return nil
	})
	set.AddHook(func(context.Context, *session.Session, []event.Event) error {
		order = append(order, "second")
		return nil
	})
	if _, _, err := batch(s, note("a"), note("b")); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "order", order, []string{"first", "second"})
}

// Given observers that panic and append, then the others are told all the same, after the commit and in log order, and the log has only the outer events.
func TestObserversAreContained(t *testing.T) {
	set := newSet(t, memory.New(), quiet())
	s := create(t, set, session.New{})
	var inner []error
	var seen []int64
	set.AddObserver(func(context.Context, *session.Session, []event.Event) { panic("first") })
	set.AddObserver(func(ctx context.Context, s *session.Session, events []event.Event) {
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		for _, ctx := range []context.Context{ctx, child} {
			_, err := s.Append(ctx, "x", 1, session.Intent{})
			inner = append(inner, err)
			_, _, err = s.AppendBatch(ctx, session.Batch{Items: items(note("x"))})
			inner = append(inner, err)
			_, err = s.Compact(ctx, 0, 0, json.RawMessage(userData("x")))
			inner = append(inner, err)
			_, err = s.Recover(ctx)
			inner = append(inner, err, s.Detach(ctx), set.Delete(ctx, s.ID()))
		}
	})
	set.AddObserver(func(ctx context.Context, s *session.Session, events []event.Event) {
		for _, ev := range events {
			seen = append(seen, ev.Seq)
		}
		wantEqual(t, "length", int64(len(logOf(t, s))), events[len(events)-1].Seq+1)
		st, err := s.Surface().State(ctx) // readers never wait for an append, not even from inside
		if err != nil || st.AsOfSeq != events[len(events)-1].Seq {
			t.Errorf("state inside an observer: %+v, %v", st, err)
		}
	})
	appendAll(t, s, note("a"))
	if _, _, err := batch(s, note("b"), user("c")); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "seen", seen, []int64{0, 1, 2})
	wantEqual(t, "log", types(logOf(t, s)), []string{"test/note", "test/note", event.UserMessage})
	if len(inner) == 0 {
		t.Error("the second observer was not told")
	}
	for i, err := range inner {
		wantIs(t, err, session.ErrReentrant)
		if re := wantErr[*session.ReentrantError](t, err); re != nil && re.ID != s.ID() {
			t.Errorf("call %d names session %s, want %s", i, re.ID, s.ID())
		}
	}
}

// Given a hook that appends to another session with its context, then that goes through; back to the first from there is re-entrancy.
func TestReentrancyIsPerSession(t *testing.T) {
	set := newSet(t, memory.New(), quiet())
	a, b := create(t, set, session.New{}), create(t, set, session.New{})
	var back error
	set.AddObserver(func(ctx context.Context, s *session.Session, events []event.Event) {
		switch s.ID() {
		case a.ID():
			if _, err := b.Append(ctx, "from-a", 1, session.Intent{}); err != nil {
				t.Errorf("append to another session: %v", err)
			}
		case b.ID():
			_, back = a.Append(ctx, "from-b", 1, session.Intent{})
		}
	})
	appendAll(t, a, note("x"))
	wantIs(t, back, session.ErrReentrant)
	wantEqual(t, "log of a", types(logOf(t, a)), []string{"test/note"})
	wantEqual(t, "log of b", types(logOf(t, b)), []string{"from-a"})
}

// Given an append whose context ends with its commit, then its observers get a context that lives, and hooks one that ends with the append's.
func TestContextsOfHooksAndObservers(t *testing.T) {
	set := newSet(t, memory.New(), quiet())
	s := create(t, set, session.New{})
	type key struct{}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "v"))
	set.AddHook(func(ctx context.Context, _ *session.Session, _ []event.Event) error {
		if ctx.Value(key{}) != "v" || ctx.Done() == nil {
			t.Error("the hook's context is not the append's")
		}
		return nil
	})
	set.AddObserver(func(ctx context.Context, _ *session.Session, _ []event.Event) {
		cancel()
		if ctx.Value(key{}) != "v" || ctx.Err() != nil {
			t.Errorf("the observer's context: %v, %v", ctx.Value(key{}), ctx.Err())
		}
	})
	if _, err := s.Append(ctx, "x", 1, session.Intent{}); err != nil {
		t.Errorf("committed, and yet: %v", err)
	}
}

// Given an observer that blocks, then appends of its session wait behind it, as long as their contexts live; readers and other sessions go on.
func TestObserverThatBlocks(t *testing.T) {
	set := newSet(t, memory.New(), quiet())
	a, b := create(t, set, session.New{}), create(t, set, session.New{})
	blocked, release := make(chan struct{}), make(chan struct{})
	remove := set.AddObserver(func(_ context.Context, s *session.Session, _ []event.Event) {
		if s.ID() == a.ID() {
			close(blocked)
			<-release
		}
	})
	first := make(chan error)
	go func() { _, err := appendStep(a, user("first")); first <- err }()
	<-blocked
	remove()
	appendAll(t, b, note("other"))
	wantEqual(t, "nodes", state(t, a).Nodes, []int64{0})
	wantEqual(t, "messages", messageIDs(messages(t, a)), []string{"u-first"})
	ctx, cancel := context.WithCancel(context.Background())
	queued := make(chan error)
	go func() { _, err := a.Append(ctx, "queued", 1, session.Intent{}); queued <- err }()
	cancel()
	wantIs(t, <-queued, context.Canceled)
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
	wantEqual(t, "log", types(logOf(t, a)), []string{event.UserMessage})
}
