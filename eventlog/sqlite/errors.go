package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/eventlog"
)

// LockedError: another process, or another store of this one, owns the directory.
type LockedError struct {
	Dir string
	// PID is the owner's process id, 0 when it cannot be told. URL is where it serves, empty when it does not.
	PID int
	URL string
}

func (e *LockedError) Error() string {
	owner := "another process"
	if e.PID > 0 {
		owner = fmt.Sprintf("process %d", e.PID)
	}
	if e.URL != "" {
		owner += ", which serves " + e.URL
	}
	return fmt.Sprintf("%s is in use by %s: talk to that one, or stop it first", e.Dir, owner)
}

// BusyError: a program that is not the owner has locked the database. Nothing was changed.
type BusyError struct {
	Path string
	Err  error
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("another program has locked %s, and none but the owner of its directory should open it: end that program and try again", e.Path)
}

func (e *BusyError) Unwrap() error { return e.Err }

// DirProblem says what is wrong with a directory.
type DirProblem string

// The problems that a directory can have.
const (
	NotDir      DirProblem = "not-a-directory"
	ReadOnly    DirProblem = "read-only"
	Foreign     DirProblem = "foreign-owner"
	Unreachable DirProblem = "unreachable"
)

// DirError: the directory cannot hold a store as it is. Nothing was changed.
type DirError struct {
	Dir     string
	Problem DirProblem
	// Remedy says what to do about it.
	Remedy string
	Err    error
}

func (e *DirError) Error() string {
	msg := fmt.Sprintf("the data directory %s cannot be used (%s)", e.Dir, e.Problem)
	if e.Err != nil {
		cause := e.Err
		if at, ok := cause.(*fs.PathError); ok && at.Path == e.Dir {
			cause = at.Err // Without the directory once more.
		}
		msg += ": " + cause.Error()
	}
	return msg + ": " + e.Remedy
}

func (e *DirError) Unwrap() error { return e.Err }

// NewerError: the database was written by a newer version. It was not touched.
type NewerError struct {
	Path string
	// Have is the version of the database, Know the newest that this program can read.
	Have, Know int64
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("%s has format %d and this program knows formats up to %d: use the newer program again, or restore an older backup", e.Path, e.Have, e.Know)
}

// NotStoreError: the file is no database of this program. Remedy says what to do where that is something else than for a store that is to be opened.
type NotStoreError struct{ Path, Reason, Remedy string }

func (e *NotStoreError) Error() string {
	return fmt.Sprintf("%s is not a foldhost database (%s), or its beginning is damaged: %s", e.Path, e.Reason, cmp.Or(e.Remedy, "move it away, or restore a backup"))
}

// DamagedError: the database is broken below the level of single logs. It was not changed. Remedy says what to do where that is something else than for a store that is to be opened.
type DamagedError struct {
	Path, Reason, Remedy string
	Err                  error
}

func (e *DamagedError) Error() string {
	msg := fmt.Sprintf("%s is damaged: %s", e.Path, e.Reason)
	if e.Err != nil {
		msg += fmt.Sprintf(" (%v)", e.Err)
	}
	return msg + ": " + cmp.Or(e.Remedy, "restore a backup, or export what is whole with `foldhost store salvage`")
}

func (e *DamagedError) Unwrap() error { return e.Err }

// withRemedy says of a database that cannot be used what to do in this case.
func withRemedy(err error, remedy string) error {
	if e, ok := errors.AsType[*DamagedError](err); ok {
		e.Remedy = remedy
	}
	if e, ok := errors.AsType[*NotStoreError](err); ok {
		e.Remedy = remedy
	}
	return err
}

// dbError is what SQLite, or the disk below it, said to a statement. It tells failures of the store from refusals.
type dbError struct {
	doing string
	err   error
}

func (e *dbError) Error() string { return e.doing + ": " + e.err.Error() }

func (e *dbError) Unwrap() error { return e.err }

// doing wraps what SQLite said.
func doing(what string, err error) error {
	if err == nil {
		return nil
	}
	return &dbError{doing: what, err: err}
}

func isDB(err error) bool {
	_, ok := errors.AsType[*dbError](err)
	return ok
}

// damage says whether SQLite met a database that is broken.
func damage(err error) bool {
	return errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.NOTADB) || errors.Is(err, sqlite3.IOERR_SHORT_READ) ||
		errors.Is(err, sqlite3.IOERR_CORRUPTFS) || errors.Is(err, sqlite3.IOERR_DATA)
}

// isFull says whether there was no room for something: by what the disk said, if it said anything, and else by what the engine did. The index of the WAL, which holds nothing of its own, is asked for in another
// way, and what the system says of that is lost.
func isFull(fault *diskFault, err error) bool {
	if fault != nil {
		return fault.full()
	}
	return errors.Is(err, sqlite3.FULL) || noRoom(err) || errors.Is(err, sqlite3.IOERR_SHMSIZE) || errors.Is(err, sqlite3.IOERR_SHMMAP) || errors.Is(err, sqlite3.IOERR_SHMOPEN)
}

// diskFull is the error for it.
func diskFull(fault *diskFault, err error) error {
	if fault != nil {
		err = fault
	}
	return &eventlog.DiskFullError{Cause: err}
}

// readError turns what a read met into what its caller can use.
func (s *Store) readError(ctx context.Context, err error) error {
	switch {
	case err == nil || !isDB(err):
		return err
	case ctx.Err() != nil && errors.Is(err, sqlite3.INTERRUPT):
		return ctx.Err()
	case damage(err):
		return &DamagedError{Path: s.path, Reason: "a read met pages that make no sense", Err: err}
	}
	return err
}
