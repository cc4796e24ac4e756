package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// A disk that is really full: appends are refused, nothing is lost or half there, reads go on, and all is well when there is room again.
func TestATrulyFullDisk(t *testing.T) {
	asRoot(t)
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=6m"); err != nil {
		t.Skipf("skipped: mounting is not permitted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	dir := filepath.Join(disk, "data")
	s := reopen(t, dir, Options{walPages: 200})
	create(t, s, "a")
	ballast := filepath.Join(disk, "ballast")
	n := 0
	event := func() event.Event {
		return ev("t", int64(n), fmt.Sprintf(`"%d %s"`, n, strings.Repeat("x", 3000)))
	}
	check := func() {
		t.Helper()
		events := contents(t, s, "a")
		if len(events) != n {
			t.Fatalf("%d events, %d were acknowledged", len(events), n)
		}
	}
	for round := range 3 {
		if err := os.WriteFile(ballast, make([]byte, 3<<20), 0o600); err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		var err error
		for err == nil {
			if err = add(s, "a", event()); err == nil {
				n++
			}
		}
		if e := as[*eventlog.DiskFullError](t, "Append", err); !errors.Is(e, syscall.ENOSPC) {
			t.Errorf("%v does not say why", e)
		}
		for range 3 {
			as[*eventlog.DiskFullError](t, "Append again", add(s, "a", event()))
		}
		check()
		// A start without room does no harm either.
		if round == 1 {
			end(s)
			full, err := Open(t.Context(), dir, Options{})
			if err == nil {
				closeStore(t, full)
			}
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		if round == 1 {
			s = reopen(t, dir, Options{walPages: 200})
		}
		for range 5 {
			if err := add(s, "a", event()); err != nil {
				t.Fatalf("with room again: %v", err)
			}
			n++
		}
		check()
	}
	closeStore(t, s)
	s = reopen(t, dir, Options{})
	check()
}

// The limit on the size of files, which a write meets half way.
func TestAWriteThatComesOutShort(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "limited", dir)
	acknowledged := 0
	for line := p.line(); line != ""; line = p.line() {
		if line == "read-only" {
			break
		}
		acknowledged++
	}
	if err := p.cmd.Wait(); err != nil || acknowledged == 0 {
		t.Fatalf("the child had %d events acknowledged and ended with %v: %s", acknowledged, err, p.said.String())
	}
	wholeOrNot(t, dir, acknowledged, 1)
}

func init() {
	roles["limited"] = func(dir string) error {
		s, err := Open(nowhere, dir, Options{})
		if err != nil {
			return err
		}
		if _, err := s.Create(nowhere, eventlog.Creation{Header: event.Header{ID: "a"}}); err != nil {
			return err
		}
		// No multiple of a page, so that a write is cut.
		limit := unix.Rlimit{Cur: 300_000, Max: 300_000}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
		for n := 0; ; n++ {
			err := add(s, "a", row(int64(n), 1)...)
			if _, readOnly := errors.AsType[*eventlog.ReadOnlyError](err); readOnly {
				if !errors.Is(err, syscall.EFBIG) {
					return fmt.Errorf("the reason is not given: %w", err)
				}
				if events, err := read(s, "a"); err != nil || len(events) != n {
					return fmt.Errorf("%d events are read, %d were acknowledged: %w", len(events), n, err)
				}
				fmt.Println("read-only")
				return s.Close()
			}
			if err != nil {
				return err
			}
			fmt.Println("acknowledged")
		}
	}
}
