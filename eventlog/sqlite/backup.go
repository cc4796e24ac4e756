package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	sqlite3 "github.com/ncruces/go-sqlite3"
)

// backupSlice is how many pages are copied between two commits: 1 MiB, some milliseconds.
const backupSlice = 256

// Backup copies a store that is in use to a new file, which appears at path when it is whole and on disk. It is one state of the store, that at the end of the
// copy: what is committed meanwhile goes into both. Appends go on between slices, and no read transaction stays open. progress, if not nil, is told after each slice how many of how many pages are copied.
//
// Errors: *TargetError when there is something at path, another backup is making it, or the copy cannot be written, ctx's, ErrClosed, *eventlog.ReadOnlyError.
func (s *Store) Backup(ctx context.Context, path string, progress func(done, total int)) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	path, err := filepath.Abs(path)
	if err != nil {
		return &TargetError{Path: path, Err: err}
	}
	if _, busy := s.copying.LoadOrStore(path, true); busy {
		// Both would write the same file, and the first would call whole what the second has emptied.
		return &TargetError{Path: path, Err: fmt.Errorf("another backup is being made there: %w", fs.ErrExist)}
	}
	defer s.copying.Delete(path)
	if err := vacant(path); err != nil {
		return err
	}
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return &TargetError{Path: path, Err: err}
	}
	defer f.Close()
	defer os.Remove(part) // which has moved away if all went well
	if err := s.copyTo(ctx, part, progress); err != nil {
		if isDB(err) {
			return &TargetError{Path: path, Err: err}
		}
		return err
	}
	return publish(f, part, path)
}

// TargetError: a file cannot be written where it was asked for. What stood there still does.
type TargetError struct {
	Path string
	Err  error
}

func (e *TargetError) Error() string {
	if e.Err == fs.ErrExist {
		return e.Path + " is there already, and is kept: name a new file"
	}
	return fmt.Sprintf("%s cannot be written: %v: name a new file in a directory with room", e.Path, e.Err)
}

func (e *TargetError) Unwrap() error { return e.Err }

func vacant(path string) error {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = fs.ErrExist
	}
	return &TargetError{Path: path, Err: err}
}

// publish syncs a file and gives it its name.
func publish(f *os.File, from, to string) error {
	if err := f.Sync(); err != nil {
		return &TargetError{Path: to, Err: err}
	}
	if err := os.Rename(from, to); err != nil {
		return &TargetError{Path: to, Err: err}
	}
	return syncDir(filepath.Dir(to))
}

// copyTo has the writer copy the database, a slice at a time: the engine carries what the same connection changes meanwhile into the copy.
func (s *Store) copyTo(ctx context.Context, path string, progress func(done, total int)) error {
	var b *sqlite3.Backup
	err := s.writer.between(func() (err error) {
		if err := s.Failed(); err != nil {
			return err
		}
		// Through the system's own files: what goes wrong with them is nothing that the store suffers from.
		b, err = s.writer.c.BackupInit("main", location(path, "os"))
		return doing("opening the copy", err)
	})
	for more := true; err == nil && more; {
		if err = ctx.Err(); err != nil {
			break
		}
		var done, total int
		err = s.writer.between(func() error {
			finished, err := b.Step(s.backupSlice)
			more = !finished
			total, done = b.PageCount(), b.PageCount()-b.Remaining()
			return doing("copying pages", err)
		})
		if err == nil && progress != nil {
			progress(done, total)
		}
	}
	if b == nil {
		return err
	}
	closing := s.writer.between(func() error { return doing("closing the copy", b.Close()) })
	if err == nil {
		err = closing
	}
	return err
}
