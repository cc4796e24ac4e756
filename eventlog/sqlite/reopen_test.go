package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

var nowhere = context.Background()

// end ends a store without closing it, as far as one process can: its connections and its lock go, nothing is written.
func end(s *Store) {
	s.life.mu.Lock()
	s.life.closed = true
	s.life.mu.Unlock()
	s.writer.end()
	s.failed.CompareAndSwap(nil, &eventlog.ReadOnlyError{})
	_ = s.teardown()
	_ = s.lock.release()
}

func TestWhatWasAcknowledgedIsThereAfterAStart(t *testing.T) {
	for name, finish := range map[string]func(testing.TB, *Store){"closed": closeStore, "not closed": func(_ testing.TB, s *Store) { end(s) }} {
		for _, d := range []Durability{Full, Relaxed} {
			t.Run(name+" "+d.String(), func(t *testing.T) {
				dir := t.TempDir()
				s := reopen(t, dir, Options{Durability: d})
				first := s.Identity()
				log := row(0, 5)
				made := create(t, s, "a", log...)
				batch := eventlog.Batch{Life: eventlog.Life{ID: "a"}, Events: row(5, 2), Key: "k", Digest: "d"}
				keyed, err := s.Append(t.Context(), batch)
				if err != nil {
					t.Fatal(err)
				}
				log = append(log, row(5, 2)...)
				rows := []eventlog.Row{{Key: "n", Cut: 6, Seq: 6, Data: []byte("value")}}
				if err := s.SaveRows(t.Context(), eventlog.Life{ID: "a"}, rows); err != nil {
					t.Fatal(err)
				}
				if err := s.SavePast(t.Context(), eventlog.Life{ID: "a"}, rows); err != nil {
					t.Fatal(err)
				}
				create(t, s, "gone", row(0, 3)...)
				if err := s.Delete(t.Context(), eventlog.Life{ID: "gone"}); err != nil {
					t.Fatal(err)
				}
				finish(t, s)

				s = reopen(t, dir, Options{Durability: d})
				if id := s.Identity(); id.StoreID != first.StoreID || id.Boot != first.Boot+1 {
					t.Errorf("identity %+v after %+v", id, first)
				}
				holds(t, s, "a", log)
				k, ok, err := s.Lookup(t.Context(), eventlog.Life{ID: "a"}, "k")
				if err != nil || !ok || k.Commit != keyed || k.Digest != "d" {
					t.Errorf("key: %+v, %v, %v, want %+v", k, ok, err, keyed)
				}
				info, err := s.Info(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				// Only what may have been lost is doubted.
				doubted := name == "not closed" && d == Relaxed
				if renewed := info.Incarnation != made.Incarnation; renewed != doubted {
					t.Errorf("incarnation %s, it was %s", info.Incarnation, made.Incarnation)
				}
				set, err := s.Rows(t.Context(), eventlog.Life{ID: "a"})
				if err != nil || (len(set.Rows) == 0) != doubted {
					t.Errorf("rows %+v, %v", set.Rows, err)
				}
				_, past, err := s.PastRow(t.Context(), eventlog.Life{ID: "a"}, "n", 9)
				if err != nil || past == doubted {
					t.Errorf("past row %v, %v", past, err)
				}
				// Those of the deleted log were the last: they are not given again.
				next := create(t, s, "next", row(0, 1)...)
				if next.Position <= keyed.Position+3 || doubted != (next.Position > positionLeap) {
					t.Errorf("position %d after %d and three more", next.Position, keyed.Position)
				}
			})
		}
	}
}

func TestRelaxedOnceIsDoubtedByWhoeverOpensNext(t *testing.T) {
	dir := t.TempDir()
	s := reopen(t, dir, Options{Durability: Relaxed})
	was := create(t, s, "a", row(0, 3)...)
	end(s)
	s = reopen(t, dir, Options{})
	info, err := s.Info(t.Context(), "a")
	if err != nil || info.Incarnation == was.Incarnation {
		t.Fatalf("%+v, %v: another incarnation than %s is due", info, err, was.Incarnation)
	}
	end(s)
	s = reopen(t, dir, Options{Durability: Relaxed})
	again, err := s.Info(t.Context(), "a")
	if err != nil || again.Incarnation != info.Incarnation {
		t.Fatalf("%+v, %v: nothing can be lost under full durability, so %s stays", again, err, info.Incarnation)
	}
}

func TestAClosedStoreIsOneFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "dir with ä, % and ?")
	s := reopen(t, dir, Options{})
	create(t, s, "a", row(0, 3)...)
	if runtime.GOOS != "windows" {
		for _, name := range []string{".", dbName, dbName + "-wal", lockName} {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v, %v: others have no business there", name, info.Mode(), err)
			}
		}
	}
	closeStore(t, s)
	names := []string{}
	for name := range files(t, dir) {
		names = append(names, name)
	}
	if len(names) != 1 || names[0] != dbName {
		t.Fatalf("a closed store left %q", names)
	}
}

// A creation that was given up leaves nothing, whatever had been stored of it, and neither does one whose process died.
func TestAStagedLogIsSeenWhenItIsWhole(t *testing.T) {
	dir := t.TempDir()
	s := reopen(t, dir, Options{})
	n := 2*stagePage + 10
	seen := func(seq int64) {
		if logs, err := s.List(t.Context(), eventlog.ListQuery{}); err != nil || len(logs.Logs) != 0 {
			t.Fatalf("%d logs are listed while one is made, at seq %d (%v)", len(logs.Logs), seq, err)
		}
		if tail, err := s.Tail(t.Context(), eventlog.TailQuery{}); err != nil || len(tail.Events) != 0 {
			t.Fatalf("%d events are in the tail while a log is made (%v)", len(tail.Events), err)
		}
	}
	interrupted := func(yield func(event.Event, error) bool) {
		for _, e := range row(0, n) {
			if !yield(e, nil) {
				return
			}
		}
		seen(int64(n))
		yield(event.Event{}, os.ErrDeadlineExceeded)
	}
	_, err := s.Create(t.Context(), eventlog.Creation{Header: event.Header{ID: "a"}, Events: interrupted})
	if err != os.ErrDeadlineExceeded {
		t.Fatalf("Create: %v", err)
	}
	info := create(t, s, "a", row(0, n)...)
	if info.Seq != int64(n) {
		t.Fatalf("%+v", info)
	}
	holds(t, s, "a", row(0, n))
	closeStore(t, s)
	s = reopen(t, dir, Options{})
	holds(t, s, "a", row(0, n))
	swept(t, s)
	if events, _ := count(t, s); events != int64(n) {
		t.Fatalf("%d events are stored, %d of them seen", events, n)
	}
}

// count counts what is stored.
func count(t testing.TB, s *Store) (events, trash int64) {
	t.Helper()
	c, err := openConn(s.path, s.disk)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if events, err = c.number("SELECT count(*) FROM events"); err == nil {
		trash, err = c.number("SELECT count(*) FROM trash")
	}
	if err != nil {
		t.Fatal(err)
	}
	return events, trash
}

// swept waits until the writer has nothing left to sweep. It asks by changes that change nothing, each of which sweeps.
func swept(t testing.TB, s *Store) {
	t.Helper()
	for done := false; !done; {
		err := s.change(nowhere, 0, func(w *writer) error {
			done = !w.collectAbandoned() && !w.swept
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestDeletingLeavesNothingOnDisk(t *testing.T) {
	dir := t.TempDir()
	s := reopen(t, dir, Options{})
	const secret = "correct horse battery staple"
	var events []event.Event
	for seq := range int64(700) {
		e := ev("t", seq, `"`+secret+`"`)
		if seq == 50 {
			e.Data = []byte(`"` + strings.Repeat(secret, 2000) + `"`)
		}
		events = append(events, e)
	}
	create(t, s, "a", events...)
	create(t, s, "b", row(0, 700)...)
	row := []eventlog.Row{{Key: "n", Cut: 5, Seq: 5, Data: []byte(secret)}}
	for _, save := range []func(context.Context, eventlog.Life, []eventlog.Row) error{s.SaveRows, s.SavePast} {
		if err := save(t.Context(), eventlog.Life{ID: "a"}, row); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Append(t.Context(), eventlog.Batch{Life: eventlog.Life{ID: "a"}, Events: []event.Event{ev("t", 700, "1")}, Key: secret, Digest: secret}); err != nil {
		t.Fatal(err)
	}
	found := func() bool {
		for _, data := range files(t, dir) {
			if strings.Contains(data, secret) {
				return true
			}
		}
		return false
	}
	if !found() {
		t.Fatal("what is stored is not on disk, so this test shows nothing")
	}
	if err := s.Delete(t.Context(), eventlog.Life{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	swept(t, s)
	if found() {
		t.Error("what was deleted is still on disk")
	}
	if events, trash := count(t, s); events != 700 || trash != 0 {
		t.Errorf("%d events are stored, %d logs in the trash", events, trash)
	}
}
