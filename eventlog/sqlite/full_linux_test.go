package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
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
	disk, _ := small(t, "tmpfs")
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

// small mounts a file system of some MiB, and gives what fills it up to so many bytes.
func small(t *testing.T, kind string) (disk string, fill func(free int64)) {
	t.Helper()
	asRoot(t)
	disk = t.TempDir()
	switch kind {
	case "tmpfs":
		if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=6m"); err != nil {
			t.Skipf("skipped: mounting is not permitted here: %v", err)
		}
	case "ext4":
		image := filepath.Join(t.TempDir(), "image")
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(image, 12<<20); err != nil {
			t.Fatal(err)
		}
		for _, command := range [][]string{{"mkfs.ext4", "-q", "-m", "0", image}, {"mount", "-o", "loop", image, disk}} {
			if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
				t.Skipf("skipped: %s is not to be had here: %v, %s", command[0], err, out)
			}
		}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(disk, "ballast")
	return disk, func(free int64) {
		t.Helper()
		f, err := os.OpenFile(ballast, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, piece := range []int{1 << 20, 4096, 1} {
			for {
				_, err := f.Write(make([]byte, piece))
				if errors.Is(err, syscall.ENOSPC) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		info, err := f.Stat()
		if err == nil {
			err = errors.Join(f.Truncate(max(0, info.Size()-free)), f.Sync())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A disk that is full before the store is opened, whether it was closed or its process died: it opens, as any start, in the room that it keeps for that; what is there is read, appends are refused
// while there is no room, and are taken when there is. After the next full start, too.
func TestAStartOnAFullDisk(t *testing.T) {
	for _, kind := range []string{"tmpfs", "ext4"} {
		if kind == "ext4" && testing.Short() {
			continue // A second for each, of which most is mkfs.
		}
		for _, how := range []string{"closed", "died"} {
			for _, d := range []Durability{Full, Relaxed} {
				t.Run(fmt.Sprint(kind, " ", how, " ", d), func(t *testing.T) {
					disk, fill := small(t, kind)
					dir := filepath.Join(disk, "data")
					o := Options{Durability: d, walPages: 200}
					s := reopen(t, dir, o)
					was := create(t, s, "a")
					n := 0
					event := func() event.Event { return ev("t", int64(n), fmt.Sprintf(`"%d %s"`, n, strings.Repeat("x", 3000))) }
					for range 20 {
						mustAdd(t, s, "a", event())
						n++
					}
					boot := s.Identity().Boot
					for range 3 {
						if how == "closed" {
							closeStore(t, s)
							fill(0)
						} else {
							fill(0)
							end(s)
						}
						s = reopen(t, dir, o)
						if boot++; s.Identity().Boot != boot {
							t.Errorf("it is start %d, want %d", s.Identity().Boot, boot)
						}
						info, err := s.Info(t.Context(), "a")
						if err != nil || (info.Incarnation == was.Incarnation) != (how == "closed" || d == Full) {
							t.Errorf("incarnation %s, it was %s (%v)", info.Incarnation, was.Incarnation, err)
						}
						was = info
						fill(0)
						for err = nil; err == nil; {
							if err = add(s, "a", event()); err == nil {
								n++
							}
						}
						as[*eventlog.DiskFullError](t, "Append", err)
						if len(contents(t, s, "a")) != n {
							t.Errorf("%d events, %d were acknowledged", len(contents(t, s, "a")), n)
						}
					}
					if err := os.Remove(filepath.Join(disk, "ballast")); err != nil {
						t.Fatal(err)
					}
					mustAdd(t, s, "a", event())
					n++
					closeStore(t, s)
					s = reopen(t, dir, o)
					if len(contents(t, s, "a")) != n {
						t.Errorf("in the end there are %d events, %d were acknowledged", len(contents(t, s, "a")), n)
					}
					if info, err := os.Stat(s.reserve.path); err != nil || info.Size() < reserveBytes {
						t.Errorf("it keeps no room for another start: %v", err)
					}
				})
			}
		}
	}
}

// Without the room that is kept, a start on a full disk fails, says where there is too little, how much, and what to do, and does no harm.
func TestAStartOnAFullDiskWithoutItsReserve(t *testing.T) {
	for _, free := range []int64{0, 36 << 10} { // For nothing, and for the index of the WAL alone.
		disk, fill := small(t, "tmpfs")
		dir := filepath.Join(disk, "data")
		s := reopen(t, dir, Options{})
		create(t, s, "a", row(0, 20)...)
		closeStore(t, s)
		if err := os.Remove(s.reserve.path); err != nil {
			t.Fatal(err)
		}
		fill(free)
		before := files(t, dir)
		_, err := Open(t.Context(), dir, Options{})
		as[*eventlog.DiskFullError](t, "Open", err)
		for _, part := range []string{"no room on the disk, make some", dir, " are free there"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
		if after := files(t, dir); after[dbName] != before[dbName] {
			t.Error("the database has changed")
		}
		if _, err := os.Stat(s.reserve.path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what is left was taken: %v", err)
		}
		if err := os.Remove(filepath.Join(disk, "ballast")); err != nil {
			t.Fatal(err)
		}
		s = reopen(t, dir, Options{})
		holds(t, s, "a", row(0, 20))
	}
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
