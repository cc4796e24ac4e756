package logtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
)

func TestSlowStorePassesTheSuite(t *testing.T) {
	logtest.Run(t, func(testing.TB) eventlog.Store { return logtest.Slow(memory.New()) })
}

func TestGroupingStorePassesTheSuite(t *testing.T) {
	logtest.Run(t, func(testing.TB) eventlog.Store { return logtest.Grouping{logtest.Slow(memory.New())} })
}

func TestShortStorePassesTheSuite(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			logtest.Run(t, func(testing.TB) eventlog.Store { return logtest.Short(memory.New(), seed) })
		})
	}
}

func slow(t *testing.T) (*logtest.SlowStore, eventlog.Batch) {
	t.Helper()
	s := logtest.Slow(memory.New())
	if _, err := s.Create(t.Context(), eventlog.Creation{Header: event.Header{ID: "a"}}); err != nil {
		t.Fatal(err)
	}
	return s, eventlog.Batch{Life: eventlog.Life{ID: "a"}, Events: []event.Event{{Type: "x", Data: []byte(`1`)}}}
}

func seq(t *testing.T, s eventlog.Store) int64 {
	t.Helper()
	info, err := s.Info(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	return info.Seq
}

func TestHeldAppendWaitsForItsRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, batch := slow(t)
		gate := s.Hold(logtest.Append)
		done := make(chan error, 1)
		go func() {
			_, err := s.Append(t.Context(), batch)
			done <- err
		}()
		<-gate.Arrived()
		synctest.Wait()
		if n := seq(t, s); n != 0 {
			t.Fatalf("the log is at %d while the append is held", n)
		}
		gate.Release()
		gate.Release()
		if err := <-done; err != nil || seq(t, s) != 1 {
			t.Fatalf("after the release: %v, seq %d", err, seq(t, s))
		}
		batch.Events[0].Seq = 1
		if _, err := s.Append(t.Context(), batch); err != nil {
			t.Fatalf("a later append: %v", err)
		}
	})
}

func TestHeldAppendGivesUpWithItsContext(t *testing.T) {
	for _, arrival := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s, batch := slow(t)
			gate := s.Hold(logtest.Append)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := s.Append(ctx, batch)
				done <- err
			}()
			if arrival {
				<-gate.Arrived()
			}
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) || seq(t, s) != 0 {
				t.Fatalf("after the cancel: %v, seq %d", err, seq(t, s))
			}
		})
	}
}

func TestFailedCallDoesNothing(t *testing.T) {
	s, batch := slow(t)
	for _, fault := range []error{&eventlog.DiskFullError{}, &eventlog.ReadOnlyError{}, context.DeadlineExceeded} {
		s.Fail(logtest.Append, fault)
	}
	for range 3 {
		if _, err := s.Append(t.Context(), batch); err == nil || seq(t, s) != 0 {
			t.Fatalf("a failed append: %v, seq %d", err, seq(t, s))
		}
	}
	if _, err := s.Append(t.Context(), batch); err != nil {
		t.Fatalf("the append after them: %v", err)
	}
}

func TestLostCallIsCarriedOut(t *testing.T) {
	s, batch := slow(t)
	batch.Key, batch.Digest = "k", "d"
	s.Lose(logtest.Append, context.DeadlineExceeded)
	if _, err := s.Append(t.Context(), batch); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the lost append: %v", err)
	}
	if c, err := s.Append(t.Context(), batch); err != nil || !c.Repeated || seq(t, s) != 1 {
		t.Fatalf("the append again: %+v, %v, seq %d", c, err, seq(t, s))
	}
}

func TestCountsOfCallsAndEvents(t *testing.T) {
	s, batch := slow(t)
	for n := range int64(3) {
		batch.Events[0].Seq = n
		if _, err := s.Append(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	for range eventlog.Scan(t.Context(), s, eventlog.Query{Life: batch.Life, Limit: 2}) {
	}
	c := s.Counts()
	if c.Calls[logtest.Append] != 3 || c.Calls[logtest.Read] != 2 || c.Appended != 3 || c.Read != 3 {
		t.Fatalf("counts %+v", c)
	}
	if c := s.Counts(); len(c.Calls) != 0 || c.Read != 0 {
		t.Fatalf("counts after a look: %+v", c)
	}
}

// Everything that reads through pages must stand pages that bring nothing but progress.
func TestShortStoreGivesEmptyPages(t *testing.T) {
	mem := memory.New()
	var events []event.Event
	for n := range int64(40) {
		e := event.Event{Type: "often", Seq: n, Data: []byte(`1`)}
		if n == 39 {
			e.Type = "rare"
		}
		events = append(events, e)
	}
	create := eventlog.Creation{Header: event.Header{ID: "a"}, Events: func(yield func(event.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}}
	if _, err := mem.Create(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	s := logtest.Short(mem, 1)
	page, err := s.Read(t.Context(), eventlog.Query{Life: eventlog.Life{ID: "a"}, Types: []string{"rare"}})
	if err != nil || len(page.Events) != 0 || page.Next == 0 || page.Next >= page.End {
		t.Fatalf("page %+v, %v", page, err)
	}
	tail, err := s.Tail(t.Context(), eventlog.TailQuery{Types: []string{"rare"}})
	if err != nil || len(tail.Events) != 0 || tail.Position == 0 || tail.Position >= tail.End {
		t.Fatalf("tail %+v, %v", tail, err)
	}
}
