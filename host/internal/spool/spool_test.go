package spool_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/host/internal/spool"
)

// sized is event i of a log in which every tenth is of another type, padded to a size.
func sized(i, size int) event.Event {
	typ := "note"
	if i%10 == 3 {
		typ = "rare"
	}
	return event.Event{Type: typ, Seq: int64(i), Time: int64(1000 - i), Data: fmt.Appendf(nil, `{"i":%d,"pad":"%s"}`, i, strings.Repeat("x", size))}
}

func logOf(n, size int) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for i := range n {
			if !yield(sized(i, size), nil) {
				return
			}
		}
	}
}

func create(t *testing.T, s *spool.Store, events iter.Seq2[event.Event, error]) eventlog.Info {
	t.Helper()
	info, err := s.Create(t.Context(), eventlog.Creation{Header: event.Header{ID: "s"}, Events: events})
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestWhatWasSpooledIsReadBack(t *testing.T) {
	for name, c := range map[string]struct{ n, size int }{
		"empty":               {0, 0},
		"in the buffer":       {100, 10},
		"in the file":         {3000, 5000},
		"both, large events":  {20, 1 << 20},
		"larger than a block": {12, 3 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			s := spool.New(t.TempDir())
			defer s.Close()
			if info := create(t, s, logOf(c.n, c.size)); info.Seq != int64(c.n) {
				t.Fatalf("seq is %d after %d events", info.Seq, c.n)
			}
			for _, types := range [][]string{nil, {"rare"}, {"rare", "note"}, {"unheard of"}, {}} {
				var want []int
				for i := range c.n {
					for _, typ := range types {
						if sized(i, 0).Type == typ {
							want = append(want, i)
						}
					}
					if types == nil {
						want = append(want, i)
					}
				}
				got := 0
				for ev, err := range eventlog.Scan(t.Context(), s, eventlog.Query{Life: eventlog.Life{ID: "s"}, Types: types}) {
					if err != nil {
						t.Fatal(err)
					}
					if got == len(want) {
						t.Fatalf("types %q: more than %d events", types, len(want))
					}
					was := sized(want[got], c.size)
					if string(ev.AppendJSON(nil)) != string(was.AppendJSON(nil)) {
						t.Fatalf("types %q: event %d came back as another", types, want[got])
					}
					got++
				}
				if got != len(want) {
					t.Fatalf("types %q: %d events of %d", types, got, len(want))
				}
			}
		})
	}
}

func TestEventsOfAPageShareNothingWithTheNext(t *testing.T) {
	s := spool.New(t.TempDir())
	defer s.Close()
	create(t, s, logOf(3000, 5000))
	var kept []event.Event
	for ev, err := range eventlog.Scan(t.Context(), s, eventlog.Query{Life: eventlog.Life{ID: "s"}}) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, ev)
	}
	for i, ev := range kept {
		was := sized(i, 5000)
		if string(ev.Data) != string(was.Data) {
			t.Fatalf("event %d was overwritten by a later read", i)
		}
	}
}

func TestNoFileIsLeftBehind(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file keeps its name there")
	}
	dir := t.TempDir()
	s := spool.New(dir)
	create(t, s, logOf(3000, 5000))
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Fatalf("%s has a name while it is in use", left[0].Name())
	}
	s.Close()
}

func TestARefusedLogLeavesNothing(t *testing.T) {
	refused := errors.New("refused")
	s := spool.New(t.TempDir())
	defer s.Close()
	_, err := s.Create(t.Context(), eventlog.Creation{Header: event.Header{ID: "s"}, Events: func(yield func(event.Event, error) bool) {
		for ev := range logOf(3000, 5000) {
			if !yield(ev, nil) {
				return
			}
		}
		yield(event.Event{}, refused)
	}})
	if !errors.Is(err, refused) {
		t.Fatalf("the error of the events came back as %v", err)
	}
	var missing *eventlog.NotFoundError
	if _, err := s.Info(t.Context(), "s"); !errors.As(err, &missing) {
		t.Fatalf("a refused log is there: %v", err)
	}
	// The id is free again.
	if info := create(t, s, logOf(3, 1)); info.Seq != 3 {
		t.Fatalf("seq is %d after 3 events", info.Seq)
	}
}

func TestACancelledCreateLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := spool.New(t.TempDir())
	defer s.Close()
	_, err := s.Create(ctx, eventlog.Creation{Header: event.Header{ID: "s"}, Events: func(yield func(event.Event, error) bool) {
		for ev := range logOf(10, 10) {
			if ev.Seq == 5 {
				cancel()
			}
			if !yield(ev, nil) {
				return
			}
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled in the middle: %v", err)
	}
	var missing *eventlog.NotFoundError
	if _, err := s.Info(t.Context(), "s"); !errors.As(err, &missing) {
		t.Fatalf("a cancelled log is there: %v", err)
	}
}

func TestASpoolIsOneReadOnlyLog(t *testing.T) {
	s := spool.New(t.TempDir())
	create(t, s, logOf(3, 1))
	var exists *eventlog.ExistsError
	if _, err := s.Create(t.Context(), eventlog.Creation{Header: event.Header{ID: "s"}}); !errors.As(err, &exists) {
		t.Errorf("created twice: %v", err)
	}
	var invalid *eventlog.InvalidError
	if _, err := s.Append(t.Context(), eventlog.Batch{}); !errors.As(err, &invalid) {
		t.Errorf("appended: %v", err)
	}
	var other *eventlog.IncarnationError
	if _, err := s.Read(t.Context(), eventlog.Query{Life: eventlog.Life{ID: "s", Incarnation: "0"}}); !errors.As(err, &other) {
		t.Errorf("another incarnation was read: %v", err)
	}
	s.Close()
	if _, err := s.Info(t.Context(), "s"); !errors.Is(err, eventlog.ErrClosed) {
		t.Errorf("closed and still there: %v", err)
	}
}
