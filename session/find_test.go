package session_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

// Given a cold session, when it is found and listed, then it stays cold, and its handle works like any other.
func TestFindingTouchesNothing(t *testing.T) {
	o, l := driven(t)
	set := newSet(t, memory.New(), o)
	ctx := context.Background()
	appendAll(t, create(t, set, session.New{Header: event.Header{ID: "s"}}), user("a"), note("x"))
	first, _, err := set.Find(ctx, "s")
	if err != nil || !first.Live() {
		t.Fatalf("a live session: %v", err)
	}
	if err := first.Detach(ctx); err != nil {
		t.Fatal(err)
	}
	s, info, err := set.Find(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	page, err := set.List(ctx, eventlog.ListQuery{})
	if err != nil || len(page.Logs) != 1 {
		t.Fatalf("listed %+v, %v", page, err)
	}
	if _, err := s.Read(ctx, 0, 0, nil); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "length", info.Seq, 2)
	if _, attached := l.head("s"); attached || s.Live() || set.Live(eventlog.Life{ID: "s", Incarnation: info.Incarnation}) {
		t.Error("looking at it made it live")
	}
	wantEqual(t, "nodes", state(t, s).Nodes, []int64{0})
	if !set.Live(eventlog.Life{ID: "s", Incarnation: info.Incarnation}) || set.Live(eventlog.Life{ID: "s", Incarnation: "another"}) {
		t.Error("Live does not tell lives apart, or that the session was opened")
	}
	_, _, err = set.Find(ctx, "other")
	wantErr[*eventlog.NotFoundError](t, err)
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, err = set.Find(ctx, "s")
	wantIs(t, err, session.ErrClosed)
	_, err = set.List(ctx, eventlog.ListQuery{})
	wantIs(t, err, session.ErrClosed)
}

// Given a session that is kept, then only what ends a live session although it is held is told, and calling again says what it was.
func TestKeepingTellsWhatIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(ctx context.Context, set *session.Set, s *session.Session) error
		check func(t *testing.T, err error)
	}{
		"a detach": {
			func(ctx context.Context, _ *session.Set, s *session.Session) error { return s.Detach(ctx) },
			func(t *testing.T, err error) { wantIs(t, err, nil) },
		},
		"a deletion": {
			func(ctx context.Context, set *session.Set, s *session.Session) error { return set.Delete(ctx, s.ID()) },
			func(t *testing.T, err error) { wantErr[*eventlog.NotFoundError](t, err) },
		},
		"the end of the set": {
			func(_ context.Context, set *session.Set, _ *session.Session) error { return set.Close() },
			func(t *testing.T, err error) { wantIs(t, err, session.ErrClosed) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := quiet()
				o.IdleAfter = time.Minute
				set := session.NewSet(memory.New(), o)
				defer set.Close()
				ctx := context.Background()
				s := create(t, set, session.New{})
				lost, release, err := s.Keep(ctx)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				select {
				case <-lost:
					t.Fatal("lost although nothing happened")
				default:
				}
				if err := c.end(ctx, set, s); err != nil {
					t.Fatal(err)
				}
				<-lost
				_, again, err := s.Keep(ctx)
				c.check(t, err)
				if again != nil {
					again()
				}
				release()
			})
		})
	}
}

// Given appends while messages are built, then the list and the seq that it is as of belong together.
func TestMessagesSayWhatTheyAreAsOf(t *testing.T) {
	store := logtest.Slow(memory.New())
	s := create(t, newSet(t, store, quiet()), session.New{})
	ctx := context.Background()
	check := func(what string, n int, asOf int64) {
		t.Helper()
		list, seq, err := s.MessagesAsOf(ctx)
		if err != nil || len(list) != n || seq != asOf {
			t.Errorf("%s: %d messages as of %d, %v, want %d as of %d", what, len(list), seq, err, n, asOf)
		}
	}
	check("an empty session", 0, -1)
	appendAll(t, s, user("a"), note("x"))
	check("kept", 1, 1)
	if err := s.Detach(ctx); err != nil {
		t.Fatal(err)
	}
	state(t, s) // open again, without its messages
	gate := store.Hold(logtest.Read)
	done := make(chan struct{})
	go func() {
		defer close(done)
		check("built", 2, 3)
	}()
	<-gate.Arrived()
	appendAll(t, s, note("y"), user("b"))
	gate.Release()
	<-done
	check("after more", 2, 3)
}
