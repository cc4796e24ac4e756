package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// counted is what is there, by a look at each head.
func counted(t *testing.T, s *Store) (logs, events int64) {
	t.Helper()
	err := s.reading(t.Context(), func(r *reader) (err error) {
		if logs, err = r.c.number("SELECT count(*) FROM heads"); err == nil {
			events, err = r.c.number("SELECT ifnull(sum(seq), 0) FROM heads")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return logs, events
}

// sameCount wants Stats to say what is there.
func sameCount(t *testing.T, s *Store, what string) {
	t.Helper()
	st, err := s.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if logs, events := counted(t, s); st.Logs != logs || st.Events != events {
		t.Errorf("%s: %d logs with %d events, and there are %d with %d", what, st.Logs, st.Events, logs, events)
	}
}

// Given logs that come, grow and go, also in parts and refused, when somebody asks in the middle and again and again, then the numbers are those of what is there.
func TestLogsAndEventsAreCountedOnce(t *testing.T) {
	s := reopen(t, t.TempDir(), Options{})
	create(t, s, "before", row(0, 3)...)
	var all sync.WaitGroup
	for one := range 4 {
		all.Go(func() {
			ctx := context.Background()
			for i := range 20 {
				id := fmt.Sprintf("l%d-%d", one, i)
				events := row(0, i%3)
				if i == 7 {
					events = row(0, stagePage+5)
				}
				info, err := s.Create(ctx, eventlog.Creation{Header: event.Header{ID: id}, Events: pull(events)})
				if err != nil {
					t.Error(err)
					return
				}
				life := eventlog.Life{ID: id, Incarnation: info.Incarnation}
				if _, err := s.Append(ctx, eventlog.Batch{Life: life, Events: row(1, 2)}); (err == nil) != (len(events) == 1) {
					t.Errorf("an append to a log of %d: %v", len(events), err)
				}
				if i%2 == 0 {
					if err := s.Delete(ctx, life); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for range 10 { // The first counts while it goes on.
		if _, err := s.Stats(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	all.Wait()
	sameCount(t, s, "in the end")
	before := s.tally.base.Load()
	sameCount(t, s, "again")
	if s.tally.base.Load() != before {
		t.Error("they were counted twice")
	}

	// Of a log whose head is damaged nobody knows how long it was: when it is deleted they are counted anew.
	if err := s.writer.between(func() error {
		return s.writer.c.exec("UPDATE heads SET seq = seq + 100 WHERE log = (SELECT n FROM logs WHERE id = 'before')")
	}); err != nil {
		t.Fatal(err)
	}
	clearHeads(t, s)
	if err := s.Delete(t.Context(), eventlog.Life{ID: "before"}); err != nil {
		t.Fatal(err)
	}
	sameCount(t, s, "without the damaged one")
	if s.tally.base.Load() == before {
		t.Error("they were not counted again")
	}
	create(t, s, "after", row(0, 2)...)
	mustAdd(t, s, "after", row(2, 1)...)
	sameCount(t, s, "and one more")
}

// A writer that is busy for long, as with a disk that hangs, keeps nobody who asks longer than they wait.
func TestCountingWaitsNoLongerThanItsCaller(t *testing.T) {
	s := reopen(t, t.TempDir(), Options{})
	create(t, s, "a", row(0, 3)...)
	begun, goOn := make(chan struct{}), make(chan struct{})
	busy := make(chan error, 1)
	go func() { busy <- s.writer.between(func() error { close(begun); <-goOn; return nil }) }()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() { _, err := s.Stats(ctx); asked <- err }()
	cancel()
	if err := <-asked; !errors.Is(err, context.Canceled) {
		t.Errorf("it gave %v", err)
	}
	close(goOn)
	if err := <-busy; err != nil {
		t.Error(err)
	}
	sameCount(t, s, "once the writer goes on")
}

// clearHeads makes the writer look at the heads again.
func clearHeads(t *testing.T, s *Store) {
	t.Helper()
	if err := s.writer.between(func() error { clear(s.writer.heads); return nil }); err != nil {
		t.Fatal(err)
	}
}
