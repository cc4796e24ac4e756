package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/internal/crashpoint"
)

// A copy that is made while several sessions are written to is one state of the store, later than all that had been acknowledged when it began.
func TestABackupOfARunningStore(t *testing.T) {
	s := reopen(t, memoryDir(t), Options{walPages: 60, backupSlice: 3})
	book := newLedger()
	w := workload{s: s, seed: 1, workers: 4, report: book.take}
	const enough = 600
	var mu sync.Mutex
	n := 0
	if err := w.run(func() bool { mu.Lock(); defer mu.Unlock(); n++; return n > enough }); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(memoryDir(t), "copy")
	began, stop := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		// What it does while the copy is made may be in it or not: only what was acknowledged before is promised.
		w := workload{s: s, seed: 2, workers: 2, report: func(line string) {
			if line[:4] == "try " {
				book.take(line)
			}
		}}
		count := 0
		err := w.run(func() bool {
			mu.Lock()
			defer mu.Unlock()
			if count++; count == 20 {
				close(began)
			}
			select {
			case <-stop:
				return true
			default:
				return false
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-began
	slices := 0
	err := s.Backup(t.Context(), path, func(done, total int) {
		if slices++; done > total || total == 0 {
			t.Errorf("%d of %d", done, total)
		}
	})
	close(stop)
	wg.Wait()
	if err != nil || slices < 10 {
		t.Fatalf("Backup in %d slices: %v", slices, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	clean(t, s)

	dir := filepath.Join(memoryDir(t), "restored")
	if err := Restore(t.Context(), path, dir); err != nil {
		t.Fatalf("Restore: %v", err)
	}
	restored := reopen(t, dir, Options{})
	clean(t, restored)
	for _, p := range book.logs {
		p.row, p.key = -1, "" // rows are not restored
	}
	book.check(t, restored, Full)
}

func TestARestoredStoreIsAnother(t *testing.T) {
	s := stocked(t)
	path := filepath.Join(memoryDir(t), "copy")
	if err := s.Backup(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(memoryDir(t), "new")
	if err := Restore(t.Context(), path, dir); err != nil {
		t.Fatal(err)
	}
	r := reopen(t, dir, Options{})
	clean(t, r)
	if was, is := s.Identity(), r.Identity(); is.StoreID == was.StoreID || is.StoreID == "" || is.Boot != 1 {
		t.Errorf("identity %+v of %+v", is, was)
	}
	for _, id := range []string{"a", "staged", "empty"} {
		holds(t, r, id, contents(t, s, id))
		was, err := s.Info(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		is, err := r.Info(t.Context(), id)
		if err != nil || is.Incarnation == was.Incarnation || is.Seq != was.Seq {
			t.Errorf("%+v of %+v (%v)", is, was, err)
		}
		if set, err := r.Rows(t.Context(), eventlog.Life{ID: id}); err != nil || len(set.Rows) != 0 {
			t.Errorf("%+v, %v", set, err)
		}
	}
	if k, ok, err := r.Lookup(t.Context(), eventlog.Life{ID: "a"}, "k"); err != nil || !ok || k.Commit.Seq != 12 {
		t.Errorf("%+v, %v, %v", k, ok, err)
	}
	// The original goes on as it was, and so does what is made of the copy.
	mustAdd(t, s, "a", row(12, 1)...)
	mustAdd(t, r, "a", row(12, 2)...)
	if left := files(t, dir); len(left) > 2 {
		t.Errorf("%d files", len(left))
	}
}

func TestABackupThatCannotBeWritten(t *testing.T) {
	s := stocked(t)
	place := memoryDir(t)
	taken := filepath.Join(place, "taken")
	if err := os.WriteFile(taken, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := s.Backup(t.Context(), taken, nil)
	if e := as[*TargetError](t, "over a file", err); !errors.Is(e, fs.ErrExist) {
		t.Errorf("%v", err)
	}
	as[*TargetError](t, "into no directory", s.Backup(t.Context(), filepath.Join(place, "none", "copy"), nil))
	as[*TargetError](t, "over the store itself", s.Backup(t.Context(), s.path, nil))
	ctx, cancel := context.WithCancel(t.Context())
	err = s.Backup(ctx, filepath.Join(place, "copy"), func(int, int) { cancel() })
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Backup: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if err := s.Backup(ctx, filepath.Join(place, "other"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Backup: %v", err)
	}
	if left := files(t, place); len(left) > 2 || left["taken"] != "mine" {
		t.Errorf("%d files are left", len(left))
	}
	mustAdd(t, s, "a", row(12, 1)...)
	clean(t, s)
}

// Given a backup under way, then another to the same place is refused and spoils nothing.
func TestTwoBackupsToOnePlace(t *testing.T) {
	s := reopen(t, memoryDir(t), Options{backupSlice: 3})
	create(t, s, "a", row(0, 500)...)
	path := filepath.Join(memoryDir(t), "copy")
	tried := false
	err := s.Backup(t.Context(), path, func(done, total int) {
		if tried || done == total {
			return
		}
		tried = true
		err := s.Backup(t.Context(), path, nil)
		if e := as[*TargetError](t, "the second", err); !errors.Is(e, fs.ErrExist) {
			t.Errorf("%v", err)
		}
	})
	if err != nil || !tried {
		t.Fatalf("the first: %v, met by a second: %v", err, tried)
	}
	dir := filepath.Join(memoryDir(t), "restored")
	if err := Restore(t.Context(), path, dir); err != nil {
		t.Fatalf("Restore: %v", err)
	}
	holds(t, reopen(t, dir, Options{}), "a", row(0, 500))
	// The place of one that has ended is free for the next.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), path, nil); err != nil {
		t.Error(err)
	}
}

func TestARestoreThatIsRefused(t *testing.T) {
	s := stocked(t)
	place := memoryDir(t)
	good := filepath.Join(place, "good")
	if err := s.Backup(t.Context(), good, nil); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	spoilt := func(name string, change func(data []byte) []byte) string {
		path := filepath.Join(place, name)
		if err := os.WriteFile(path, change(append([]byte{}, whole...)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	refuses := func(what, backup, dir string, want func(error) bool) {
		t.Helper()
		var before map[string]string
		if _, err := os.Stat(dir); err == nil {
			before = files(t, dir)
		}
		if err := Restore(t.Context(), backup, dir); err == nil || !want(err) {
			t.Errorf("%s: %v (%T)", what, err, err)
		}
		if before != nil {
			unchanged(t, dir, before)
		} else if _, err := os.Stat(dir); err == nil && len(files(t, dir)) != 0 {
			t.Errorf("%s: something was left", what)
		}
	}
	isLocked := func(err error) bool { _, ok := errors.AsType[*LockedError](err); return ok }
	isTarget := func(err error) bool { _, ok := errors.AsType[*TargetError](err); return ok }

	refuses("over a store in use", good, s.dir, isLocked)
	closed := made(t)
	refuses("over a store", good, closed, isTarget)
	refuses("a store in use as the backup", s.path, filepath.Join(place, "d0"), told)
	refuses("nothing", filepath.Join(place, "none"), filepath.Join(place, "d1"), func(err error) bool { return errors.Is(err, fs.ErrNotExist) })
	for i, path := range []string{
		spoilt("empty", func(d []byte) []byte { return nil }),
		spoilt("cut", func(d []byte) []byte { return d[:len(d)/2] }),
		spoilt("text", func(d []byte) []byte { return append([]byte("no database"), d...) }),
		spoilt("newer", func(d []byte) []byte { d[63] = 99; return d }),
		spoilt("rotten", func(d []byte) []byte {
			for i := len(d) / 2; i < len(d)/2+4096; i++ {
				d[i] ^= 0xff
			}
			return d
		}),
	} {
		refuses(filepath.Base(path), path, filepath.Join(place, fmt.Sprint("bad", i)), told)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Restore(ctx, good, filepath.Join(place, "d2")); !errors.Is(err, context.Canceled) {
		t.Errorf("Restore: %v", err)
	}
	clean(t, s)
}

// A restore that died is made again.
func TestKilledWhileRestoring(t *testing.T) {
	s := stocked(t)
	place := memoryDir(t)
	if err := s.Backup(t.Context(), filepath.Join(place, "backup"), nil); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(place, "data")
	p := start(t, "restore", dir)
	if said := p.line(); said != "dying" {
		t.Fatalf("the child said %q, %s", said, p.said.String())
	}
	_ = p.cmd.Wait()
	if _, err := os.Stat(filepath.Join(dir, dbName)); err == nil {
		t.Fatal("it was finished, so this test shows nothing")
	}
	if err := Restore(t.Context(), filepath.Join(place, "backup"), dir); err != nil {
		t.Fatal(err)
	}
	r := reopen(t, dir, Options{})
	holds(t, r, "a", row(0, 12))
	clean(t, r)
}

func init() {
	roles["restore"] = func(dir string) error {
		crashpoint.Set(func(name string) {
			if name == "restore/made" {
				fmt.Println("dying")
				killSelf()
			}
		})
		return Restore(nowhere, filepath.Join(filepath.Dir(dir), "backup"), dir)
	}
}
