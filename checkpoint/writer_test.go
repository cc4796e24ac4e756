package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
)

// source is a live session whose head is what was published, with one unit that folds the events "a".
type source struct {
	head, folded atomic.Int64
	taken        atomic.Int32
	detached     atomic.Bool
	// hold keeps takers until it is closed; nil keeps nobody.
	hold chan struct{}
}

func (s *source) Folded() int64 { return s.folded.Load() }
func (s *source) CheckpointWithin(ctx context.Context, _ time.Duration) (registry.Rows, error) {
	s.taken.Add(1)
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-ctx.Done():
			return registry.Rows{}, ctx.Err()
		}
	}
	if s.detached.Load() {
		return registry.Rows{}, registry.ErrDetached
	}
	n := s.folded.Load()
	return registry.Rows{Cut: s.head.Load(), Rows: map[string]registry.Row{
		"n": {Ver: 1, Def: "d", Seq: s.head.Load(), Val: json.RawMessage(fmt.Sprint(n)), View: json.RawMessage(fmt.Sprint(n)), Anchor: "x"}}}, nil
}

// live is one live session with its writer.
type live struct {
	*testing.T
	store *rowStore
	w     *Writer
	track *Track
	src   *source
	life  eventlog.Life
}

// bubble runs a test of a writer with one live session of an empty log, and sees that nothing is left.
func bubble(t *testing.T, o Options, test func(s *live)) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		o.Logger = slog.New(slog.DiscardHandler)
		l := &live{T: t, store: store, w: NewWriter(store, o), src: &source{}, life: store.create(t, "s")}
		l.src.head.Store(-1)
		l.track = l.w.Track(l.life, l.src)
		test(l)
		l.track.End(false)
		l.w.Close()
		if len(l.w.lines) > 0 || l.w.backlog != 0 {
			t.Errorf("%d lines and %d bytes are left", len(l.w.lines), l.w.backlog)
		}
	})
}

// commit appends events, publishes them to the source, and tells the track.
func (s *live) commit(types ...string) {
	s.Helper()
	evs := s.store.append(s, s.life, s.src.head.Load()+1, types...)
	for _, ev := range evs {
		s.src.head.Store(ev.Seq)
		if ev.Type == "a" {
			s.src.folded.Add(1)
		}
	}
	s.track.Committed(evs)
}

func (s *live) wrote(when string, cuts ...int64) {
	s.Helper()
	synctest.Wait()
	if got := s.store.cuts(); fmt.Sprint(got) != fmt.Sprint(cuts) {
		s.Errorf("%s: writes of the cuts %v, want %v", when, got, cuts)
	}
}

func TestEachTriggerWrites(t *testing.T) {
	o := Options{Policy: Policy{EveryEvents: 3, Interval: time.Second}}
	for name, test := range map[string]func(s *live){
		"the end of a turn": func(s *live) {
			s.commit("a")
			s.wrote("in the turn")
			s.commit(event.TurnEnd)
			s.wrote("at its end", 1)
			s.commit("other", event.TurnEnd)
			s.wrote("at the end of one without news", 1)
			s.commit("a", event.TurnEnd, "other")
			s.wrote("within a batch", 1, 6)
		},
		"so many folded events": func(s *live) {
			s.commit("a", "other", "other", "a")
			s.wrote("after two")
			s.commit("a")
			s.wrote("after three", 4)
			s.commit("a", "a")
			s.wrote("after two more", 4)
			s.commit("a", "a", "a")
			s.wrote("after many", 4, 9)
		},
		"an interval, which does not slide": func(s *live) {
			s.commit("a")
			time.Sleep(700 * time.Millisecond)
			s.commit("a")
			time.Sleep(299 * time.Millisecond)
			s.wrote("just before")
			time.Sleep(time.Millisecond)
			s.wrote("a second after the first", 1)
			time.Sleep(time.Hour)
			s.wrote("with nothing new", 1)
			s.commit("a")
			time.Sleep(time.Second - 1)
			s.wrote("just before", 1)
			time.Sleep(time.Nanosecond)
			s.wrote("a second after the first that is new", 1, 2)
		},
		"going cold": func(s *live) {
			s.commit("a")
			s.track.End(false)
			s.wrote("at the end", 0)
			s.commit("a", event.TurnEnd)
			time.Sleep(time.Hour)
			s.wrote("after it", 0)
		},
		"going cold after cells were built": func(s *live) {
			s.commit("other")
			s.src.folded.Add(7)
			s.track.End(false)
			s.wrote("at the end", 0)
		},
		"events that nobody folds do not": func(s *live) {
			for range 10 {
				s.commit("other", event.TurnEnd)
			}
			time.Sleep(time.Hour)
			s.track.End(false)
			s.wrote("ever")
			if s.src.taken.Load() != 0 {
				s.Error("the units were asked")
			}
		},
		"a deleted session does not": func(s *live) {
			s.commit("a")
			s.track.End(true)
			time.Sleep(time.Hour)
			s.wrote("ever")
		},
	} {
		t.Run(name, func(t *testing.T) { bubble(t, o, test) })
	}
}

// TestWritesOfOneSessionComeOneAtATimeAndInOrder: given a store that is slow, the writes of a session that triggers all the time never overlap, and
// each is of a newer cut; others are written meanwhile.
func TestWritesOfOneSessionComeOneAtATimeAndInOrder(t *testing.T) {
	bubble(t, Options{Policy: Policy{EveryEvents: 1}}, func(s *live) {
		other := s.store.create(s, "other", "a")
		var writing, overlaps atomic.Int32
		s.store.onSave(func(_ context.Context, l eventlog.Life, _ []eventlog.Row) error {
			if l == s.life {
				if writing.Add(1) > 1 {
					overlaps.Add(1)
				}
				time.Sleep(time.Second)
				writing.Add(-1)
			}
			return nil
		})
		for range 50 {
			s.commit("a")
			time.Sleep(100 * time.Millisecond)
		}
		s.w.Put(other, registry.Rows{Cut: 0, Rows: map[string]registry.Row{"n": {Ver: 1, Def: "d", Seq: 0, Val: json.RawMessage("1"), Anchor: "x"}}})
		synctest.Wait()
		if set, err := s.store.Rows(s.Context(), other); err != nil || len(set.Rows) != 1 {
			s.Errorf("another session waits: %v (%v)", set.Rows, err)
		}
		s.track.End(false)
		time.Sleep(time.Minute)
		cuts := s.store.cuts()
		last := int64(-1)
		for _, cut := range cuts {
			if cut < last && cut != 0 { // 0 is that of the other
				s.Errorf("a write of cut %d after one of %d", cut, last)
			}
			last = max(last, cut)
		}
		if overlaps.Load() != 0 || last != 49 || len(cuts) < 5 {
			s.Errorf("%d overlaps, cuts %v", overlaps.Load(), cuts)
		}
	})
}

// TestAFailedWriteIsTriedAgainWithTheNextTrigger, and not in a circle.
func TestAFailedWriteIsTriedAgainWithTheNextTrigger(t *testing.T) {
	bubble(t, Options{Policy: Policy{EveryEvents: 3, Interval: time.Second}}, func(s *live) {
		var tries atomic.Int32
		s.store.onSave(func(context.Context, eventlog.Life, []eventlog.Row) error {
			tries.Add(1)
			return &eventlog.DiskFullError{Cause: errors.New("full")}
		})
		tried := func(when string, want int32) {
			s.Helper()
			synctest.Wait()
			if n := tries.Load(); n != want || s.w.Stats().Failed.Load() != int64(want) {
				s.Errorf("%s: %d tries, %d failures counted, want %d", when, n, s.w.Stats().Failed.Load(), want)
			}
		}
		s.commit("a", "a", "a")
		tried("at first", 1)
		time.Sleep(time.Second - 1)
		tried("within the interval", 1)
		time.Sleep(time.Nanosecond)
		tried("at the interval", 2)
		s.commit(event.TurnEnd)
		tried("at the end of a turn", 3)
		time.Sleep(10 * time.Second)
		tried("ten intervals later", 13)
		s.store.onSave(nil)
		time.Sleep(time.Second)
		s.wrote("once there is room", 3)
		time.Sleep(time.Hour)
		s.wrote("and then", 3)
	})
}

// TestNobodyWaitsForAWrite: given a store whose writes hang, committing and going cold return at once, and what is due is written when the store is back.
func TestNobodyWaitsForAWrite(t *testing.T) {
	bubble(t, Options{Policy: Policy{EveryEvents: 1}, WriteWait: time.Hour}, func(s *live) {
		release := make(chan struct{})
		s.store.onSave(func(ctx context.Context, _ eventlog.Life, _ []eventlog.Row) error {
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		began := time.Now()
		for range 20 {
			s.commit("a")
			synctest.Wait()
		}
		s.track.End(false)
		if took := time.Since(began); took != 0 {
			s.Errorf("somebody waited for %v", took)
		}
		s.wrote("while the store hangs")
		close(release)
		s.wrote("when it is back", 0, 19)
	})
}

// TestRowsThatAreBeingTakenWhenASessionGoesColdAreNotLost: the units are gone before a write under way has asked them, so that End asks itself.
func TestRowsThatAreBeingTakenWhenASessionGoesColdAreNotLost(t *testing.T) {
	bubble(t, Options{}, func(s *live) {
		s.src.hold = make(chan struct{})
		s.commit("a", event.TurnEnd)
		synctest.Wait() // a writer is asking
		go func() {
			time.Sleep(time.Second)
			close(s.src.hold)
		}()
		s.track.End(false)
		s.src.detached.Store(true)
		synctest.Wait()
		if cuts := s.store.cuts(); len(cuts) == 0 || cuts[len(cuts)-1] != 1 {
			s.Errorf("writes of the cuts %v, want 1 last", cuts)
		}
	})
}

func TestAUnitThatHangsDelaysGoingColdNoLongerThanItMay(t *testing.T) {
	bubble(t, Options{DetachWait: 3 * time.Second}, func(s *live) {
		s.src.hold = make(chan struct{})
		s.commit("a")
		began := time.Now()
		s.track.End(false)
		if took := time.Since(began); took != 3*time.Second || s.w.Stats().Failed.Load() != 1 {
			s.Errorf("it took %v, %d failures", took, s.w.Stats().Failed.Load())
		}
	})
}

func TestASessionThatWasDeletedMeanwhileIsNoFailure(t *testing.T) {
	bubble(t, Options{}, func(s *live) {
		s.commit("a")
		if err := s.store.Delete(s.Context(), s.life); err != nil {
			s.Fatal(err)
		}
		again := s.store.create(s, "s", "a", "a")
		s.track.Committed([]event.Event{{Type: event.TurnEnd, Seq: 1}})
		synctest.Wait()
		s.track.End(false)
		synctest.Wait()
		if set, err := s.store.Rows(s.Context(), again); err != nil || len(set.Rows) != 0 || s.w.Stats().Failed.Load() != 0 {
			s.Errorf("the next life has rows %v (%v), %d failures", set.Rows, err, s.w.Stats().Failed.Load())
		}
	})
}

// TestCloseWritesWhatWaitsAndGivesUpAfterAWhile.
func TestCloseWritesWhatWaitsAndGivesUpAfterAWhile(t *testing.T) {
	for name, hangs := range map[string]bool{"a store that works": false, "one that hangs": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newStore(t)
				w := NewWriter(store, Options{Writers: 2, Logger: slog.New(slog.DiscardHandler)})
				store.onSave(func(ctx context.Context, _ eventlog.Life, _ []eventlog.Row) error {
					if hangs {
						<-ctx.Done()
						return ctx.Err()
					}
					time.Sleep(time.Millisecond)
					return nil
				})
				for i := range 20 {
					life := store.create(t, fmt.Sprint("s", i), "a")
					w.Put(life, registry.Rows{Cut: 0, Rows: map[string]registry.Row{"n": {Ver: 1, Def: "d", Seq: 0, Val: json.RawMessage("1"), Anchor: "x"}}})
				}
				began := time.Now()
				w.Close()
				took := time.Since(began)
				if n := len(store.cuts()); !hangs && (n != 20 || took > time.Second) || hangs && (n != 0 || took != 10*time.Second || w.Stats().Failed.Load() != 20) {
					t.Errorf("%d writes in %v, %d failures", n, took, w.Stats().Failed.Load())
				}
			})
		})
	}
}

func TestWhatWaitsForAStoreThatHangsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore(t)
		w := NewWriter(store, Options{Logger: slog.New(slog.DiscardHandler)})
		store.onSave(func(ctx context.Context, _ eventlog.Life, _ []eventlog.Row) error {
			<-ctx.Done()
			return ctx.Err()
		})
		big := json.RawMessage(`"` + string(make([]byte, 4<<20)) + `"`)
		for i := range 40 {
			w.Put(store.create(t, fmt.Sprint("s", i), "a"), registry.Rows{Cut: 0, Rows: map[string]registry.Row{"n": {Ver: 1, Def: "d", Seq: 0, Val: big, Anchor: "x"}}})
		}
		if w.backlog > maxBacklog || w.stats.Dropped.Load() < 20 {
			t.Errorf("%d bytes wait, %d were dropped", w.backlog, w.stats.Dropped.Load())
		}
		w.Close()
	})
}

// TestRowsAreKeptForReadsOfThePast: one about every PastEvery events, and again when the definition has changed.
func TestRowsAreKeptForReadsOfThePast(t *testing.T) {
	bubble(t, Options{PastEvery: 10, Policy: Policy{EveryEvents: 3}}, func(s *live) {
		var kept []int64
		for range 20 {
			s.commit("a", "a", "a")
			synctest.Wait()
		}
		for seq := int64(59); seq >= 0; {
			row, ok, err := s.store.PastRow(s.Context(), s.life, "n", seq)
			if err != nil {
				s.Fatal(err)
			}
			if !ok {
				break
			}
			kept = append(kept, row.Seq)
			seq = row.Seq - 1
		}
		if fmt.Sprint(kept) != "[59 47 35 23 11]" {
			s.Errorf("kept %v", kept)
		}
		other := registry.Row{Ver: 2, Def: "e", Seq: 40, Val: json.RawMessage("1"), Anchor: "x"}
		s.w.Put(s.life, registry.Rows{Cut: 59, Rows: map[string]registry.Row{"n": other}})
		synctest.Wait()
		if row, _, err := s.store.PastRow(s.Context(), s.life, "n", 45); err != nil || row.Seq != 40 {
			s.Errorf("of another version: %d (%v)", row.Seq, err)
		}
	})
}
