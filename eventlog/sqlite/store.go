package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/internal/measure"
)

// Store implements eventlog.Store and eventlog.RowStore over one directory. Use Open.
//
// life guards whether the store is open and counts the calls under way; failed is set once; copying and told guard themselves; all else that changes belongs to the writer or to whoever has
// taken a reader out of the pool.
type Store struct {
	dir, path  string
	identity   eventlog.Identity
	durability Durability
	log        *slog.Logger

	disk    *disk
	lock    *lock
	reserve reserve
	writer  *writer
	readers *pool

	backupSlice, dropSlice int
	// copying are the paths that backups under way are to appear at, told the numbers of the damaged logs that were logged.
	copying, told sync.Map

	// changes and groups count what was committed, together and in how many transactions; groupSizes and groupSeconds are how large those were and how long they took.
	changes, groups atomic.Int64
	groupSizes      *measure.Histogram
	groupSeconds    *measure.Histogram
	tally           tally

	failed atomic.Pointer[eventlog.ReadOnlyError]

	life struct {
		mu     sync.Mutex
		closed bool
		calls  sync.WaitGroup
	}
}

var (
	_ eventlog.Store    = (*Store)(nil)
	_ eventlog.RowStore = (*Store)(nil)
	_ eventlog.Grouper  = (*Store)(nil)
)

// Open opens the store in a directory, which it makes when it is missing. Until Close the store is this process's alone. Errors: *DirError, *LockedError, *NewerError,
// *NotStoreError, *DamagedError, *BusyError, *eventlog.DiskFullError, ctx's; whichever it is, nothing that was there has been changed.
func Open(ctx context.Context, dir string, o Options) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the data directory: %w", err)
	}
	if err := prepareDir(dir); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, path: filepath.Join(dir, dbName), durability: o.Durability, log: o.Logger, backupSlice: o.backupSlice, dropSlice: o.dropSlice,
		groupSizes: measure.NewCounts(), groupSeconds: measure.NewSeconds(), tally: tally{counting: make(chan struct{}, 1)}}
	if s.lock, err = acquire(dir); err != nil {
		return nil, err
	}
	s.reserve = reserveOf(dir)
	err = s.tryOpen(o)
	full, isFull := errors.AsType[*eventlog.DiskFullError](err)
	for isFull && s.reserve.give() {
		if err = s.tryOpen(o); err == nil {
			s.log.Warn("the disk is full: the store was opened in the room that it keeps for that, and takes changes when there is more", "dir", dir)
			s.reserve.hold() // What is left, which those who append would take at once.
		}
		full, isFull = errors.AsType[*eventlog.DiskFullError](err)
	}
	if isFull {
		err = noStart(dir, full.Cause)
	}
	if err != nil {
		return nil, errors.Join(err, s.lock.release())
	}
	s.reserve.keep()
	go s.writer.work()
	return s, nil
}

// tryOpen opens the store, or leaves nothing open but the lock.
func (s *Store) tryOpen(o Options) error {
	s.disk, s.readers, s.writer = newDisk(o.base), nil, nil
	err := contained(func() error { return s.open(o) })
	if err != nil {
		err = s.openError(err)
		_ = s.teardown()
	}
	return err
}

func (s *Store) open(o Options) error {
	if err := ensureDatabase(s.path, s.disk); err != nil {
		return err
	}
	c, err := openConn(s.path, s.disk,
		// Until the start has been counted, whatever the durability.
		"synchronous = FULL",
		"fullfsync = ON", "checkpoint_fullfsync = ON", // where a sync means less: macOS
		// 16 MiB of pages: the tails of some thousand logs.
		"cache_size = -16384",
		// The WAL file shrinks to this when it starts over, after a burst or a long foreign reader.
		"journal_size_limit = 67108864",
		"secure_delete = FAST",
	)
	if err != nil {
		return err
	}
	s.writer = newWriter(s, c, o.walPages)
	// A database whose header says nothing of a newer format may have one in its WAL. This is also the first look at its pages.
	if err := migrate(c, s.path, migrations); err != nil {
		return err
	}
	if s.identity.StoreID, err = c.metaText(metaStoreID); err != nil {
		return err
	}
	if s.identity.StoreID == "" {
		return &DamagedError{Path: s.path, Reason: "it does not say which store it is"}
	}
	// All that can be found wrong is found before the first change.
	if err := s.writer.prepare(); err != nil {
		return err
	}
	if s.readers, err = newPool(s, o.Readers); err != nil {
		return err
	}
	boot, ended, err := c.start(o.Durability)
	if err != nil {
		return err
	}
	s.identity.Boot = boot
	if ended != "" {
		s.log.Warn("the store was not closed when it was last open", "dir", s.dir, "durability", ended, "incarnations renewed", ended == Relaxed.String())
	}
	if o.Durability == Relaxed {
		// A WAL with this is synced when it is taken over into the database, and stays whole in between.
		if err := c.exec("PRAGMA synchronous = NORMAL"); err != nil {
			return err
		}
	}
	s.writer.position, err = c.number(lastPosition) // which may have leapt
	return err
}

// openError says what kept a store from being opened.
func (s *Store) openError(err error) error {
	if !isDB(err) {
		return err
	}
	fault := s.disk.take()
	switch {
	case isFull(fault, err):
		return diskFull(fault, err)
	case fault != nil:
		return dirError(s.dir, fault)
	case errors.Is(err, sqlite3.CANTOPEN) || errors.Is(err, sqlite3.READONLY) || errors.Is(err, sqlite3.PERM):
		return &DirError{Dir: s.dir, Problem: ReadOnly, Remedy: "give this user the right to write the files in it", Err: err}
	case errors.Is(err, sqlite3.BUSY):
		return &BusyError{Path: s.path, Err: err}
	}
	return &DamagedError{Path: s.path, Reason: "it cannot be opened", Err: err}
}

// Announce writes into the lock file where the owner serves, for those who find the directory in use; see LockedError.
func (s *Store) Announce(url string) error {
	if err := s.lock.sign(url); err != nil {
		return dirError(s.dir, err)
	}
	return nil
}

// Identity implements eventlog.Store.
func (s *Store) Identity() eventlog.Identity { return s.identity }

// Failed says why the store takes no changes any more, nil while it does.
func (s *Store) Failed() error {
	if e := s.failed.Load(); e != nil {
		return e
	}
	return nil
}

// enter begins a call; leave ends it.
func (s *Store) enter(ctx context.Context) error {
	s.life.mu.Lock()
	defer s.life.mu.Unlock()
	if s.life.closed {
		return eventlog.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.life.calls.Add(1)
	return nil
}

func (s *Store) leave() { s.life.calls.Done() }

// Close implements eventlog.Store. It waits for the calls under way, takes the WAL over into the database and lets go of the directory. A second call gives
// ErrClosed.
func (s *Store) Close() error {
	s.life.mu.Lock()
	if s.life.closed {
		s.life.mu.Unlock()
		return eventlog.ErrClosed
	}
	s.life.closed = true
	s.life.mu.Unlock()
	s.life.calls.Wait()
	s.writer.end()
	err := s.teardown()
	s.reserve.hold() // Where it was given up: the WAL has left some room.
	return errors.Join(err, s.lock.release())
}

// teardown closes what is open but the lock. Of a store that has failed nothing more is written.
func (s *Store) teardown() error {
	var errs []error
	if s.readers != nil {
		errs = append(errs, s.readers.close())
	}
	if s.writer != nil {
		errs = append(errs, contained(s.writer.close))
	}
	s.disk.close()
	return errors.Join(errs...)
}
