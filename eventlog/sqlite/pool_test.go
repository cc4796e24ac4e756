package sqlite

import (
	"context"
	"errors"
	"testing"
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
