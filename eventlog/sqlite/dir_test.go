package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/foldhost/foldhost/eventlog"
)

func TestASecondOwnerIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := reopen(t, dir, Options{})
	create(t, s, "a", row(0, 2)...)
	before := files(t, dir)
	_, err := Open(t.Context(), dir, Options{})
	if e := as[*LockedError](t, "Open", err); e.PID != os.Getpid() || e.Dir != dir {
		t.Errorf("%+v, the owner is %d", e, os.Getpid())
	}
	unchanged(t, dir, before)
	if err := s.Announce("http://127.0.0.1:7420"); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), dir, Options{})
	if e := as[*LockedError](t, "Open", err); e.PID != os.Getpid() || e.URL != "http://127.0.0.1:7420" {
		t.Errorf("%+v, the owner is %d", e, os.Getpid())
	}
	mustAdd(t, s, "a", row(2, 1)...)
	closeStore(t, s)
	reopen(t, dir, Options{})
}

func TestALockLivesAsLongAsItsProcess(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "hold", dir)
	if said := p.line(); said != "open" {
		t.Fatalf("the child said %q, %s", said, p.said.String())
	}
	_, err := Open(t.Context(), dir, Options{})
	if e := as[*LockedError](t, "Open", err); e.PID != p.cmd.Process.Pid {
		t.Errorf("%+v, the owner is %d", e, p.cmd.Process.Pid)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	if _, err := os.Stat(filepath.Join(dir, lockName)); err != nil {
		t.Fatalf("the dead process's lock file is gone, so this test shows nothing: %v", err)
	}
	if s := reopen(t, dir, Options{}); s.Identity().Boot != 2 {
		t.Errorf("boot %d", s.Identity().Boot)
	}
}

func TestAPathThatIsNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]DirProblem{file: NotDir, filepath.Join(file, "below"): Unreachable} {
		_, err := Open(t.Context(), path, Options{})
		if e := as[*DirError](t, path, err); e.Problem != want || e.Remedy == "" {
			t.Errorf("%s: %+v, want %s", path, e, want)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "mine" {
		t.Errorf("the file is %q now (%v)", data, err)
	}
}

func TestAnEndedContextOpensNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := filepath.Join(t.TempDir(), "new")
	if _, err := Open(ctx, dir, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory was made")
	}
}

// made gives the directory of a closed store with a log in it, and what is in that log.
func made(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s := reopen(t, dir, Options{})
	create(t, s, "a", row(0, 300)...)
	closeStore(t, s)
	return dir
}

// A file that cannot be the database of this program is told as what it is, and stays as it is.
func TestFilesThatAreNotTheDatabase(t *testing.T) {
	isDamaged := func(t *testing.T, err error) { as[*DamagedError](t, "Open", err) }
	isNoStore := func(t *testing.T, err error) { as[*NotStoreError](t, "Open", err) }
	put := func(t *testing.T, dir, data string) {
		if err := os.WriteFile(filepath.Join(dir, dbName), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cut := func(t *testing.T, dir string, size int64) {
		if err := os.Truncate(filepath.Join(dir, dbName), size); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		want  func(*testing.T, error)
	}{
		"empty":               {func(t *testing.T, dir string) { cut(t, dir, 0) }, isDamaged},
		"cut in the header":   {func(t *testing.T, dir string) { cut(t, dir, 60) }, isDamaged},
		"cut after the first": {func(t *testing.T, dir string) { cut(t, dir, 4096) }, isDamaged},
		"cut in a page":       {func(t *testing.T, dir string) { cut(t, dir, 5*4096+17) }, isDamaged},
		"text":                {func(t *testing.T, dir string) { put(t, dir, string(make([]byte, 5000))+"no database") }, isNoStore},
		"another application": {func(t *testing.T, dir string) { flip(t, dir, 70) }, isNoStore},
		"a directory": {func(t *testing.T, dir string) {
			if err := errors.Join(os.Remove(filepath.Join(dir, dbName)), os.Mkdir(filepath.Join(dir, dbName), 0o700)); err != nil {
				t.Fatal(err)
			}
		}, func(t *testing.T, err error) { as[*DirError](t, "Open", err) }},
		"schema flipped": {func(t *testing.T, dir string) { flip(t, dir, 104) }, isDamaged},
		"a table is missing": {func(t *testing.T, dir string) {
			s := reopen(t, dir, Options{})
			if err := s.change(nowhere, 0, func(w *writer) error { return w.c.exec("DROP TABLE past") }); err != nil {
				t.Fatal(err)
			}
			closeStore(t, s)
		}, isDamaged},
		"changes without the database": {func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, dbName), filepath.Join(dir, dbName+"-wal")); err != nil {
				t.Fatal(err)
			}
		}, isDamaged},
		"a newer format": {func(t *testing.T, dir string) { set(t, dir, 60, []byte{0, 0, 0, byte(len(migrations) + 1)}) }, func(t *testing.T, err error) {
			if e := as[*NewerError](t, "Open", err); e.Have != int64(len(migrations)+1) || e.Know != int64(len(migrations)) {
				t.Errorf("%+v", e)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := made(t)
			c.spoil(t, dir)
			info, err := os.Stat(filepath.Join(dir, dbName))
			var before map[string]string
			if err != nil || !info.IsDir() {
				before = files(t, dir)
			}
			s, err := Open(t.Context(), dir, Options{})
			if err == nil {
				closeStore(t, s)
				t.Fatal("it was opened")
			}
			c.want(t, err)
			if before != nil {
				unchanged(t, dir, before)
			}
			// The lock is free again.
			l, err := acquire(dir)
			if err != nil {
				t.Fatal(err)
			}
			_ = l.release()
		})
	}
}

// flip flips the bits of one byte of the database.
func flip(t testing.TB, dir string, at int64) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, dbName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := []byte{0}
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0xff
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

func set(t testing.TB, dir string, at int64, data []byte) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, dbName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(data, at); err != nil {
		t.Fatal(err)
	}
}

// The database is of an older format than its WAL: a newer program made the step and died before it took the WAL over.
func TestANewerFormatInTheWALIsRefused(t *testing.T) {
	dir := made(t)
	s := reopen(t, dir, Options{})
	newer := append(append([]string{}, migrations...), "CREATE TABLE later (n INTEGER)")
	if err := migrate(s.writer.c, s.path, newer); err != nil {
		t.Fatal(err)
	}
	end(s)
	before := files(t, dir)
	_, err := Open(t.Context(), dir, Options{})
	if e := as[*NewerError](t, "Open", err); e.Have != int64(len(newer)) {
		t.Errorf("%+v", e)
	}
	unchanged(t, dir, before)
}

// A directory that the first format of released stores left behind keeps all that it has, its keys too.
func TestTheFirstFormatIsBroughtUpToDate(t *testing.T) {
	dir := made(t)
	s := reopen(t, dir, Options{})
	batch := eventlog.Batch{Life: eventlog.Life{ID: "a"}, Events: row(300, 2), Key: "k", Digest: "d"}
	first, err := s.Append(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	err = s.change(t.Context(), 0, func(w *writer) error {
		return errors.Join(w.c.exec("ALTER TABLE keys DROP COLUMN answer"), w.c.exec("PRAGMA user_version = 1"))
	})
	if err != nil {
		t.Fatal(err)
	}
	end(s)
	s = reopen(t, dir, Options{})
	k, ok, err := s.Lookup(t.Context(), batch.Life, "k")
	if want := (eventlog.KeyRecord{Digest: "d", Commit: first}); err != nil || !ok || k != want {
		t.Errorf("%+v, %v, %v, want %+v", k, ok, err, want)
	}
	again := eventlog.Batch{Life: batch.Life, Events: row(302, 1), Key: "l", Digest: "d", Answer: "yes"}
	if _, err := s.Append(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if k, _, err := s.Lookup(t.Context(), batch.Life, "l"); err != nil || k.Answer != "yes" {
		t.Errorf("%+v, %v", k, err)
	}
	holds(t, s, "a", row(0, 303))
}

func TestAMigrationIsWholeOrNotAtAll(t *testing.T) {
	dir := made(t)
	s := reopen(t, dir, Options{})
	c := s.writer.c
	steps := append(append([]string{}, migrations...), "CREATE TABLE later (n INTEGER); INSERT INTO later VALUES (1); INSERT INTO nowhere VALUES (1)")
	if err := migrate(c, s.path, steps); err == nil {
		t.Fatal("a step that fails was made")
	}
	if n, err := c.number("PRAGMA user_version"); err != nil || n != int64(len(migrations)) {
		t.Errorf("version %d, %v", n, err)
	}
	if n, err := c.number("SELECT count(*) FROM sqlite_schema WHERE name = 'later'"); err != nil || n != 0 {
		t.Errorf("half of the step is there (%v)", err)
	}
	steps[len(steps)-1] = "CREATE TABLE later (n INTEGER); INSERT INTO later VALUES (7)"
	for range 2 {
		if err := migrate(c, s.path, steps); err != nil {
			t.Fatal(err)
		}
		if n, err := c.number("SELECT sum(n) FROM later"); err != nil || n != 7 {
			t.Errorf("later has %d, %v", n, err)
		}
	}
}

// A making that was cut short leaves files that nobody takes for a store.
func TestLeftoversOfAMakingAreInNobodysWay(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{".new", ".new-wal", ".new-shm"} {
		if err := os.WriteFile(filepath.Join(dir, dbName+name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := reopen(t, dir, Options{})
	create(t, s, "a")
	closeStore(t, s)
	if left := files(t, dir); len(left) != 1 {
		t.Errorf("there are %d files", len(left))
	}
}
