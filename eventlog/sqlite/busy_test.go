package sqlite

import (
	"testing"
	"time"

	sqlite3 "github.com/ncruces/go-sqlite3"
)

// A program that does not ask for the lock file, such as a shell of the engine, keeps changes from being made for as long as it has the database locked, and no longer.
func TestAForeignProgramHasItLocked(t *testing.T) {
	s := reopen(t, t.TempDir(), Options{})
	create(t, s, "a")
	if err := s.change(nowhere, 0, func(w *writer) error { return w.c.BusyTimeout(10 * time.Millisecond) }); err != nil {
		t.Fatal(err)
	}
	foreign, err := sqlite3.Open("file:" + s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	if err := foreign.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	if e := as[*BusyError](t, "Append", add(s, "a", row(0, 1)...)); e.Path != s.path {
		t.Errorf("%+v", e)
	}
	holds(t, s, "a", nil)
	if err := foreign.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	mustAdd(t, s, "a", row(0, 1)...)
}
