package sqlite

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// onBadDisk opens a store with a log of 3 events on a disk that does as it is told.
func onBadDisk(t *testing.T, o Options) (*Store, *badDisk, string) {
	t.Helper()
	d, dir := newBadDisk(), memoryDir(t)
	o.base = d
	s := reopen(t, dir, o)
	create(t, s, "a", row(0, 3)...)
	return s, d, dir
}

// wholeOrNot checks that the log in a directory is what was acknowledged, with or without what was not.
func wholeOrNot(t *testing.T, dir string, acknowledged, other int) {
	t.Helper()
	s := reopen(t, dir, Options{})
	defer closeStore(t, s)
	n := len(contents(t, s, "a"))
	if n != acknowledged && n != acknowledged+other {
		t.Fatalf("the log has %d events; %d were acknowledged, %d more were tried", n, acknowledged, other)
	}
	holds(t, s, "a", row(0, n))
	mustAdd(t, s, "a", row(int64(n), 1)...)
}

// A disk that lies once cannot be trusted: what the sync should have kept may be gone, and the next sync would say that all is well.
func TestAfterAFailedSyncOrShortWriteTheStoreOnlyReads(t *testing.T) {
	for _, c := range []struct {
		op  diskOp
		err error
	}{{opSync, syscall.EIO}, {opSync, syscall.ENOSPC}, {opWrite, syscall.EIO}, {opWrite, syscall.EFBIG}, {opWrite, io.ErrShortWrite}} {
		for _, d := range []Durability{Full, Relaxed} {
			if d == Relaxed && c.op == opSync {
				continue // there is none
			}
			t.Run(fmt.Sprint(c.op, " ", c.err, " ", d), func(t *testing.T) {
				s, disk, dir := onBadDisk(t, Options{Durability: d})
				disk.when(always(c.op, "-wal", c.err))
				err := add(s, "a", row(3, 2)...)
				if disk.hits() == 0 {
					t.Fatal("the fault did not happen")
				}
				as[*eventlog.ReadOnlyError](t, "Append", err)
				if !errors.Is(err, c.err) || !errors.Is(s.Failed(), c.err) {
					t.Errorf("%v, %v: the reason is %v", err, s.Failed(), c.err)
				}
				disk.when(nil)
				changes := map[string]func() error{
					"Append": func() error { return add(s, "a", row(3, 1)...) },
					"Create": func() error {
						_, err := s.Create(t.Context(), eventlog.Creation{Header: event.Header{ID: "b"}})
						return err
					},
					"Delete": func() error { return s.Delete(t.Context(), eventlog.Life{ID: "a"}) },
					"SaveRows": func() error {
						return s.SaveRows(t.Context(), eventlog.Life{ID: "a"}, []eventlog.Row{{Key: "n", Cut: 1, Seq: 1}})
					},
				}
				for name, change := range changes {
					as[*eventlog.ReadOnlyError](t, name, change())
				}
				holds(t, s, "a", row(0, 3))
				if _, err := s.List(t.Context(), eventlog.ListQuery{}); err != nil {
					t.Errorf("List: %v", err)
				}
				if _, err := s.Tail(t.Context(), eventlog.TailQuery{}); err != nil {
					t.Errorf("Tail: %v", err)
				}
				closeStore(t, s)
				wholeOrNot(t, dir, 3, 2)
			})
		}
	}
}

func TestAFullDiskPasses(t *testing.T) {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		t.Run(full.Error(), func(t *testing.T) {
			s, disk, dir := onBadDisk(t, Options{})
			for round := range int64(3) {
				disk.when(always(opWrite, "-wal", full))
				err := add(s, "a", row(3+round, 1)...)
				if e := as[*eventlog.DiskFullError](t, "Append", err); !errors.Is(e, full) {
					t.Errorf("%v does not say %v", e, full)
				}
				if s.Failed() != nil {
					t.Fatalf("the store gave up: %v", s.Failed())
				}
				if _, err := s.Create(t.Context(), eventlog.Creation{Header: event.Header{ID: "b"}}); err == nil {
					t.Error("a log was created on a full disk")
				}
				holds(t, s, "a", row(0, int(3+round)))
				disk.when(nil)
				mustAdd(t, s, "a", row(3+round, 1)...)
			}
			create(t, s, "b")
			closeStore(t, s)
			wholeOrNot(t, dir, 6, 0)
		})
	}
}

// Appends that fit are not refused for one that does not.
func TestOnAnAlmostFullDiskSmallAppendsGoOn(t *testing.T) {
	s, disk, _ := onBadDisk(t, Options{})
	create(t, s, "large")
	// Room for 20 pages, each of which is two writes, from one sync or refusal to the next.
	const fits = 20
	var used atomic.Int64
	disk.when(func(op diskOp, path string, _ int) error {
		if op == opSync {
			used.Store(0)
		}
		if op == opWrite && strings.HasSuffix(path, "-wal") && used.Add(1) > 2*fits {
			used.Store(0)
			return syscall.ENOSPC
		}
		return nil
	})
	release := holdWriter(s)
	big := ev("t", 0, `"`+strings.Repeat("x", 100*4096)+`"`)
	var wg sync.WaitGroup
	var small, large error
	wg.Go(func() { small = add(s, "a", row(3, 1)...) })
	waitForLine(s, 1)
	wg.Go(func() { large = add(s, "large", big) })
	waitForLine(s, 2)
	release()
	wg.Wait()
	if disk.hits() == 0 {
		t.Fatal("the fault did not happen")
	}
	as[*eventlog.DiskFullError](t, "the large append", large)
	if small != nil {
		t.Errorf("the small append: %v", small)
	}
	disk.when(nil)
	holds(t, s, "a", row(0, 4))
	mustAdd(t, s, "large", big)
}

// holdWriter keeps the writer in a change that does nothing until it is released.
func holdWriter(s *Store) (release func()) {
	holding, released := make(chan struct{}), make(chan struct{})
	var once sync.Once // a change may be tried again
	go func() {
		_ = s.change(nowhere, 0, func(*writer) error {
			once.Do(func() { close(holding) })
			<-released
			return nil
		})
	}()
	<-holding
	return func() { close(released) }
}

// waitForLine waits until so many stand in line.
func waitForLine(s *Store, n int) {
	for {
		s.writer.mu.Lock()
		have := len(s.writer.line)
		s.writer.mu.Unlock()
		if have >= n {
			return
		}
	}
}

// What cannot be taken over into the database stays in the WAL: appends go on while there is room for it.
func TestNoRoomToTakeTheWALOver(t *testing.T) {
	s, disk, dir := onBadDisk(t, Options{walPages: 10})
	disk.when(always(opWrite, dbName, syscall.ENOSPC))
	for seq := range int64(40) {
		mustAdd(t, s, "a", row(3+seq, 1)...)
	}
	if disk.hits() == 0 {
		t.Fatal("the fault did not happen")
	}
	disk.when(nil)
	holds(t, s, "a", row(0, 43))
	closeStore(t, s)
	wholeOrNot(t, dir, 43, 0)
}

// A failed sync of the database is as bad as one of the WAL, and comes when the append has been acknowledged: the next one is told.
func TestAFailedSyncOfTheDatabase(t *testing.T) {
	s, disk, dir := onBadDisk(t, Options{walPages: 100}) // more than it takes to make the store and its log
	disk.when(always(opSync, dbName, syscall.EIO))
	acknowledged := 3
	var err error
	for err == nil {
		if err = add(s, "a", row(int64(acknowledged), 1)...); err == nil {
			acknowledged++
		}
	}
	as[*eventlog.ReadOnlyError](t, "Append", err)
	if disk.hits() == 0 || acknowledged == 3 {
		t.Fatalf("%d faults, %d acknowledged", disk.hits(), acknowledged)
	}
	holds(t, s, "a", row(0, acknowledged))
	closeStore(t, s)
	wholeOrNot(t, dir, acknowledged, 0)
}

// Whatever operation fails first, and with whatever, nothing that was acknowledged is lost, and nothing is half there.
func TestAnyOperationMayFail(t *testing.T) {
	notUnderRace(t)
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC} {
		for nth := 1; ; nth++ {
			fired := false
			t.Run(fmt.Sprint(fault, " at ", nth), func(t *testing.T) {
				s, disk, dir := onBadDisk(t, Options{walPages: 12})
				n := 0
				disk.when(func(diskOp, string, int) error {
					if n++; n == nth {
						return fault
					}
					return nil
				})
				acknowledged, tried := 3, 0
				for range 12 {
					// Once refused, the log may have what was refused after all, but only when the store has given up.
					if err := add(s, "a", row(int64(acknowledged), 2)...); err == nil {
						acknowledged += 2
					} else if s.Failed() != nil {
						tried = 2
						break
					}
				}
				holds(t, s, "a", row(0, acknowledged))
				fired = disk.hits() > 0
				disk.when(nil)
				closeStore(t, s)
				wholeOrNot(t, dir, acknowledged, tried)
			})
			if !fired {
				if nth < 40 {
					t.Fatalf("there are only %d operations", nth-1)
				}
				break
			}
		}
	}
}

func TestAStoreThatCannotBeMadeIsNotThere(t *testing.T) {
	notUnderRace(t)
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC} {
		for nth := 1; ; nth++ {
			fired := false
			t.Run(fmt.Sprint(fault, " at ", nth), func(t *testing.T) {
				dir, disk, n := memoryDir(t), newBadDisk(), 0
				disk.when(func(diskOp, string, int) error {
					if n++; n == nth {
						return fault
					}
					return nil
				})
				s, err := Open(t.Context(), dir, Options{base: disk})
				if fired = disk.hits() > 0; err == nil {
					end(s)
				} else if !fired {
					t.Fatalf("Open: %v", err)
				}
				s = reopen(t, dir, Options{})
				create(t, s, "a", row(0, 2)...)
				holds(t, s, "a", row(0, 2))
			})
			if !fired {
				if nth < 20 {
					t.Fatalf("there are only %d operations", nth-1)
				}
				break
			}
		}
	}
}
