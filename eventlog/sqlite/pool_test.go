package sqlite

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
)

// ending is a context that ends once it was asked so often whether it has.
type ending struct {
	context.Context
	asked, after int
}

func (e *ending) Err() error {
	if e.asked++; e.asked > e.after {
		return context.Canceled
	}
	return nil
}

// Given reads that are given up at whatever moment, a reader serves the next one: the engine looks at the context at the end of a statement too, now and then, and says that what is done was interrupted.
func TestAReadThatIsGivenUpLeavesNothing(t *testing.T) {
	s := reopen(t, t.TempDir(), Options{})
	defer closeStore(t, s)
	create(t, s, "a", row(0, 3)...)
	for after := range 4 {
		for n := range 8000 {
			err := s.readers.read(&ending{Context: context.Background(), after: after}, func(*reader) error { return nil })
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatalf("read %d, given up after %d looks: %v", n, after, err)
			}
		}
		for range cap(s.readers.slots) {
			holds(t, s, "a", row(0, 3))
		}
	}
}

// Given a read whose transaction does not end, the reader is not used again.
func TestAReaderInATransactionIsGivenUp(t *testing.T) {
	s := reopen(t, t.TempDir(), Options{})
	defer closeStore(t, s)
	create(t, s, "a", row(0, 3)...)
	for range 2 * cap(s.readers.slots) {
		err := s.readers.read(t.Context(), func(r *reader) error {
			r.end = r.begin
			return nil
		})
		if err == nil {
			t.Fatal("it ends")
		}
	}
	for range cap(s.readers.slots) {
		holds(t, s, "a", row(0, 3))
	}
}

// Given a reader that has read much in large values, another takes its place, and what it read is right; small values, however many, keep it.
func TestAReaderOfLargeValuesIsReplaced(t *testing.T) {
	for name, c := range map[string]struct {
		bytes, events int
		kept          bool
	}{
		"events of 12 MiB":                {12 << 20, 3, false},
		"one event of 12 MiB":             {12 << 20, 1, true},
		"one event, larger than all room": {40 << 20, 1, false},
		"events of 1 MiB less a little":   {largeValue - 2, 40, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := reopen(t, t.TempDir(), Options{Readers: 1})
			defer closeStore(t, s)
			var events []event.Event
			for seq := range int64(c.events) {
				events = append(events, ev("t", seq, `"`+strings.Repeat("x", c.bytes)+`"`))
			}
			create(t, s, "a", events...)
			reader := func() (r *reader) {
				r = <-s.readers.slots
				s.readers.slots <- r
				return r
			}
			before := reader()
			holds(t, s, "a", events)
			if after := reader(); (after == before) != c.kept {
				t.Errorf("the reader was kept: %v", after == before)
			}
			holds(t, s, "a", events)
		})
	}
}
