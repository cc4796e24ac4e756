package session_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/session"
)

var (
	mine   = session.Once{Key: "k", Digest: "mine"}
	theirs = session.Once{Key: "k", Digest: "theirs"}
)

// Given a compaction with a key, when it comes again, then its event is given, though its range is gone; another request under the key is refused.
func TestCompactOnce(t *testing.T) {
	ctx := context.Background()
	s := fresh(t)
	appendAll(t, s, user("a"), user("b"))
	compact := func(once session.Once) (event.Event, error) {
		return s.CompactOnce(ctx, once, 0, 1, json.RawMessage(userData("sum")))
	}
	first, err := compact(mine)
	if err != nil {
		t.Fatal(err)
	}
	appendAll(t, s, user("c"))
	again, err := compact(mine)
	wantCode(t, err, "")
	wantEqual(t, "event", again, first)
	_, err = compact(theirs)
	wantErr[*eventlog.KeyReusedError](t, err)
	_, err = compact(session.Once{Key: "other", Digest: "mine"})
	wantCode(t, err, event.SurfaceRangeInvalid)
	if err := s.Claim(ctx, session.Once{Key: "claimed", Digest: "mine"}); err != nil {
		t.Fatal(err)
	}
	_, err = compact(session.Once{Key: "claimed", Digest: "mine"})
	wantErr[*eventlog.KeyReusedError](t, err)
	wantEqual(t, "nodes", state(t, s).Nodes, []int64{2, 3})
}

// Given a recovery with a key, when it comes again, then the first answer is given and no later turn is closed, also where there was nothing to close.
func TestRecoverOnce(t *testing.T) {
	ctx := context.Background()
	for name, before := range map[string][]step{"an open turn": {turnStart(1), stepStart(1, 1)}, "a turn that has ended": one(), "an empty log": nil} {
		t.Run(name, func(t *testing.T) {
			s := fresh(t)
			appendAll(t, s, before...)
			first, events, err := s.RecoverOnce(ctx, mine)
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "first", first.First, int64(len(before)))
			wantEqual(t, "length", first.Seq, int64(len(before)+len(events)))
			appendAll(t, s, turnStart(2))
			for _, when := range []string{"live", "opened again"} {
				again, same, err := s.RecoverOnce(ctx, mine)
				if err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				wantEqual(t, when+": length", again.Seq, first.Seq)
				wantEqual(t, when+": events", same, events)
				if err := s.Detach(ctx); err != nil {
					t.Fatal(err)
				}
			}
			_, _, err = s.RecoverOnce(ctx, theirs)
			wantErr[*eventlog.KeyReusedError](t, err)
			wantEqual(t, "log", len(logOf(t, s)), int(first.Seq)+1)
		})
	}
}

// Given recoveries with one key at the same time, then all give the events of one.
func TestRecoverTwins(t *testing.T) {
	store := logtest.Slow(memory.New())
	s := create(t, newSet(t, store, quiet()), session.New{})
	appendAll(t, s, turnStart(1))
	gate := store.Hold(logtest.Append)
	var twins sync.WaitGroup
	for range 4 {
		twins.Go(func() {
			commit, events, err := s.RecoverOnce(context.Background(), mine)
			if err != nil || commit.Seq != 2 || len(events) != 1 {
				t.Errorf("twin: %+v, %v, %v", commit, events, err)
			}
		})
	}
	<-gate.Arrived()
	gate.Release()
	twins.Wait()
	wantEqual(t, "log", types(logOf(t, s)), []string{event.TurnStart, event.TurnEnd})
}

// Given sessions that were created, seeded and forked with a key, then each knows what it began with by that key and digest, live or cold, and not in another life.
func TestCommittedByCreation(t *testing.T) {
	ctx := context.Background()
	set := newSet(t, memory.New(), quiet())
	empty := create(t, set, session.New{Once: mine})
	seeded := create(t, set, session.New{Once: mine, Seed: drafts(one()...)})
	forked, err := set.ForkTurn(ctx, seeded.ID(), session.TurnFork{Child: "child", Once: mine})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		s      *session.Session
		length int64
	}{"empty": {empty, 0}, "seeded": {seeded, 7}, "forked": {forked, 7}} {
		appendAll(t, tt.s, note("later"))
		if err := tt.s.Detach(ctx); err != nil {
			t.Fatal(err)
		}
		commit, known, err := tt.s.Committed(ctx, mine)
		if err != nil || !known || commit.First != 0 || commit.Seq != tt.length || !commit.Repeated {
			t.Errorf("%s: %+v, %v, %v", name, commit, known, err)
		}
		if tt.s.Live() {
			t.Errorf("%s: touched", name)
		}
		_, known, err = tt.s.Committed(ctx, theirs)
		wantErr[*eventlog.KeyReusedError](t, err)
		wantEqual(t, name+": the key is known", known, true)
		_, known, err = tt.s.Committed(ctx, session.Once{Key: "other", Digest: "mine"})
		wantCode(t, err, "")
		wantEqual(t, name+": another key is known", known, false)
	}
	if err := set.Delete(ctx, "child"); err != nil {
		t.Fatal(err)
	}
	create(t, set, session.New{Header: event.Header{ID: "child"}})
	_, _, err = forked.Committed(ctx, mine)
	wantErr[*eventlog.NotFoundError](t, err)
}

// Given a claim, then the session is as it was, the same request may claim again, and nobody else has the key.
func TestClaim(t *testing.T) {
	ctx := context.Background()
	set := newSet(t, memory.New(), quiet())
	s := create(t, set, session.New{})
	appendAll(t, s, note("a"))
	if err := s.Detach(ctx); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Claim(ctx, mine); err != nil {
			t.Fatal(err)
		}
	}
	wantEqual(t, "live", s.Live(), false)
	wantErr[*eventlog.KeyReusedError](t, s.Claim(ctx, theirs))
	_, _, err := s.AppendBatch(ctx, session.Batch{Items: items(note("b")), Once: theirs})
	wantErr[*eventlog.KeyReusedError](t, err)
	appendAll(t, s, note("c"))
	wantEqual(t, "log", len(logOf(t, s)), 2)
	if err := set.Delete(ctx, s.ID()); err != nil {
		t.Fatal(err)
	}
	wantErr[*eventlog.NotFoundError](t, s.Claim(ctx, mine))
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	wantIs(t, s.Claim(ctx, mine), session.ErrClosed)
	_, _, err = s.Committed(ctx, mine)
	wantIs(t, err, session.ErrClosed)
}
