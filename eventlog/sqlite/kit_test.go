package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

func TestMain(m *testing.M) {
	if os.Getenv(childDir) != "" {
		os.Exit(child())
	}
	goleak.VerifyTestMain(m)
}

// reopen opens the store in a directory and closes it with the test, unless the test does.
func reopen(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// memoryDir gives a directory that is no disk, where there is one: for tests that open hundreds of stores, and whose faults are made.
func memoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "foldhost-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

func ev(typ string, seq int64, data string) event.Event {
	return event.Event{Type: typ, Seq: seq, Time: 1000 + seq, Data: json.RawMessage(data)}
}

// row makes n events from a seq on.
func row(from int64, n int) (events []event.Event) {
	for i := range int64(n) {
		events = append(events, ev(fmt.Sprint("t", (from+i)%3), from+i, fmt.Sprintf(`{"n":%d}`, from+i)))
	}
	return events
}

func create(t testing.TB, s *Store, id string, events ...event.Event) eventlog.Info {
	t.Helper()
	info, err := s.Create(t.Context(), eventlog.Creation{Header: event.Header{ID: id}, Events: pull(events)})
	if err != nil {
		t.Fatalf("Create(%s): %v", id, err)
	}
	return info
}

func pull(events []event.Event) func(func(event.Event, error) bool) {
	return func(yield func(event.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func add(s *Store, id string, events ...event.Event) error {
	_, err := s.Append(nowhere, eventlog.Batch{Life: eventlog.Life{ID: id}, Events: events})
	return err
}

func mustAdd(t testing.TB, s *Store, id string, events ...event.Event) {
	t.Helper()
	if err := add(s, id, events...); err != nil {
		t.Fatalf("Append(%s): %v", id, err)
	}
}

// contents reads all of a log.
func contents(t testing.TB, s *Store, id string) []event.Event {
	t.Helper()
	events, err := read(s, id)
	if err != nil {
		t.Fatalf("reading %s: %v", id, err)
	}
	return events
}

func read(s eventlog.Store, id string, types ...string) (events []event.Event, err error) {
	for e, err := range eventlog.Scan(nowhere, s, eventlog.Query{Life: eventlog.Life{ID: id}, Types: types}) {
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

func holds(t testing.TB, s *Store, id string, want []event.Event) {
	t.Helper()
	got := contents(t, s, id)
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("log %s has %d events, want %d: %v", id, len(got), len(want), got)
	}
}

// files gives the content of a directory but for the lock, to see that nothing changed.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		// The lock names its last owner, the reserve holds nothing, and the index of the WAL is made anew by whoever opens it.
		if e.Name() == lockName || e.Name() == reserveName || strings.HasSuffix(e.Name(), "-shm") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(data)
	}
	return all
}

func unchanged(t testing.TB, dir string, before map[string]string) {
	t.Helper()
	after := files(t, dir)
	for name, data := range before {
		if now, ok := after[name]; !ok || now != data {
			t.Errorf("%s was changed (there: %v, %d bytes, before %d)", name, ok, len(now), len(data))
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok && !slices.Contains([]string{dbName + "-wal"}, name) {
			t.Errorf("%s was left there", name)
		}
	}
}

// as gives an error of a type.
func as[E error](t testing.TB, what string, err error) E {
	t.Helper()
	want, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("%s: error %v (%T), want a %T", what, err, err, want)
	}
	return want
}

// notUnderRace skips what takes minutes under the race detector and shows it nothing new: the engine is one large translated function body, each of whose memory accesses it looks at.
func notUnderRace(t *testing.T) {
	t.Helper()
	if underRace {
		t.Skip("skipped: too slow under the race detector, and other tests race the same code")
	}
}
