package memory

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/internal/paging"
)

func create(t *testing.T, s *Store, id string, n int64, rare ...int64) {
	t.Helper()
	_, err := s.Create(t.Context(), eventlog.Creation{Header: event.Header{ID: id}, Events: func(yield func(event.Event, error) bool) {
		for seq := range n {
			typ := "often"
			if slices.Contains(rare, seq) {
				typ = "rare"
			}
			if !yield(event.Event{Type: typ, Seq: seq, Data: []byte(`1`)}, nil) {
				return
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func appendTo(t *testing.T, s *Store, id, typ string, seq int64) {
	t.Helper()
	_, err := s.Append(t.Context(), eventlog.Batch{Life: eventlog.Life{ID: id}, Events: []event.Event{{Type: typ, Seq: seq, Data: []byte(`1`)}}})
	if err != nil {
		t.Fatal(err)
	}
}

// Commits that follow each other in one log share a span, so one busy log costs the order nothing.
func TestCommitsInARowShareASpan(t *testing.T) {
	s := New()
	create(t, s, "a", 3)
	create(t, s, "b", 0)
	for seq := range int64(100) {
		appendTo(t, s, "b", "x", seq)
	}
	appendTo(t, s, "a", "x", 3)
	if n := s.order.spans.len(); n != 3 {
		t.Fatalf("%d spans, want 3", n)
	}
}

// The order of deleted logs does not pile up, and their events go at once.
func TestDeletedLogsLeaveTheOrder(t *testing.T) {
	s := New()
	create(t, s, "kept", 1)
	for i := range 1000 {
		id := fmt.Sprint(i)
		create(t, s, id, 1)
		l := s.logs[id]
		if err := s.Delete(t.Context(), eventlog.Life{ID: id}); err != nil {
			t.Fatal(err)
		}
		if l.events.len() != 0 || l.byType != nil {
			t.Fatal("the events of a deleted log are kept")
		}
		if n := s.order.spans.len(); n > 3 {
			t.Fatalf("%d spans for one log", n)
		}
	}
	page, err := s.Tail(t.Context(), eventlog.TailQuery{})
	if err != nil || len(page.Events) != 1 || page.Events[0].Life.ID != "kept" || page.Position != 1001 {
		t.Fatalf("%+v, %v", page, err)
	}
}

// A call that finds nothing comes back after a bounded look, with how far it came, and no event is lost at the bounds.
func TestTailLooksAtABoundedPart(t *testing.T) {
	s := New()
	create(t, s, "long", 2*paging.TailScan+10, paging.TailScan, paging.TailScan+1) // the first two that the first call does not look at
	create(t, s, "a", 0)
	create(t, s, "b", 0)
	for seq := range int64(tailSpans) {
		for _, id := range []string{"a", "b"} {
			typ := "often"
			if seq%300 == 299 {
				typ = "rare"
			}
			appendTo(t, s, id, typ, seq)
		}
	}
	found, calls := 0, 0
	for q := (eventlog.TailQuery{Types: []string{"rare"}}); ; calls++ {
		page, err := s.Tail(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Events) > 0 && page.Position-q.After > paging.TailScan+2*tailSpans {
			t.Fatalf("one call went from %d to %d", q.After, page.Position)
		}
		found += len(page.Events)
		if page.Position >= page.End {
			break
		}
		if page.Position <= q.After {
			t.Fatalf("no progress at %d", q.After)
		}
		q.After = page.Position
	}
	if found != 2+2*(tailSpans/300) || calls < 4 {
		t.Fatalf("%d events in %d calls", found, calls)
	}
}

// A cursor that this store never gave is refused, and no page is empty because of it.
func TestForeignCursorsAreRefused(t *testing.T) {
	s := New()
	create(t, s, "a", 1)
	for _, cursor := range []string{"0", "-1", "x", "1.5", "99999999999999999999"} {
		page, err := s.List(t.Context(), eventlog.ListQuery{Cursor: cursor})
		if _, ok := errors.AsType[*eventlog.InvalidError](err); !ok || page.Logs != nil {
			t.Errorf("%s: %v, %v", cursor, page, err)
		}
	}
}
