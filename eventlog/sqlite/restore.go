package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/internal/crashpoint"
)

// otherBackup is what to do about a backup that cannot be restored.
const otherBackup = "nothing was restored; take another backup"

// Restore makes the store of a directory out of a file that Backup made. It is another store than the one that was copied: it has an id of its own, each of its logs another
// incarnation, and no checkpoint rows, because what clients and caches know of the old one may be of a later state. The whole of the file is checked first.
//
// Errors: *LockedError while the directory is in use, *TargetError when there is a database in it (move it away), *DirError, *NotStoreError, *NewerError and *DamagedError for the
// backup, ctx's. Whichever it is, nothing has changed.
func Restore(ctx context.Context, backup, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("finding the data directory: %w", err)
	}
	source, err := os.Open(backup)
	if err != nil {
		return fmt.Errorf("the backup cannot be read: %w", err)
	}
	defer source.Close()
	if err := inspectHeader(backup, source); err != nil {
		return withRemedy(err, otherBackup)
	}
	if _, err := os.Stat(backup + "-wal"); err == nil {
		return &NotStoreError{Path: backup, Reason: "it is a database in use, or was not closed, and some of it may be in the file beside it", Remedy: "nothing was restored; take a file that backup made"}
	}
	if err := prepareDir(dir); err != nil {
		return err
	}
	l, err := acquire(dir)
	if err != nil {
		return err
	}
	defer l.release()
	path := filepath.Join(dir, dbName)
	for _, name := range []string{path, path + "-wal"} {
		if err := vacant(name); err != nil {
			return err
		}
	}
	making := path + ".new"
	if err := discard(making); err != nil {
		return dirError(dir, err)
	}
	defer discard(making) // which has moved away if all went well
	f, err := os.OpenFile(making, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return dirError(dir, err)
	}
	defer f.Close()
	if _, err := source.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("reading the backup: %w", err)
	}
	if _, err := io.Copy(f, &cancelReader{ctx, source}); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return dirError(dir, err)
	}
	d := newDisk(Options{}.withDefaults().base)
	defer d.close()
	if err := contained(func() error { return rebear(ctx, making, backup, d) }); err != nil {
		switch fault := d.take(); {
		case ctx.Err() != nil:
			return ctx.Err()
		case fault != nil:
			return dirError(dir, fault)
		case isDB(err):
			return &DamagedError{Path: backup, Reason: "the copy of it cannot be used", Remedy: otherBackup, Err: err}
		}
		return withRemedy(err, otherBackup)
	}
	crashpoint.Reach("restore/made")
	return publish(f, making, path)
}

// discard removes a database that was being made.
func discard(making string) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(making + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// rebear checks a copy of a database and makes another store of it.
func rebear(ctx context.Context, path, backup string, d *disk) error {
	c, err := openConn(path, d, "synchronous = FULL", "secure_delete = FAST")
	if err != nil {
		return err
	}
	c.SetInterrupt(ctx)
	err = func() error {
		if err := c.sound(backup); err != nil {
			return err
		}
		if err := migrate(c, backup, migrations); err != nil {
			return err
		}
		err := c.transaction(func() error {
			if err := c.renew(); err != nil {
				return err
			}
			for key, value := range map[string]any{metaStoreID: newStoreID(), metaBoot: 0, metaRunning: ""} {
				if err := c.setMeta(key, value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		_, err = c.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, false)
		return doing("configuring the connection", err)
	}()
	c.SetInterrupt(context.Background())
	return errors.Join(err, c.close())
}

// sound has the engine check a whole database, which is named path in the error.
func (c *conn) sound(path string) error {
	st, err := c.prepare("PRAGMA integrity_check(1)")
	if err != nil {
		return err
	}
	defer st.Close()
	return each(st, func(st *sqlite3.Stmt) (bool, error) {
		if text := st.ColumnText(0); text != "ok" {
			return false, &DamagedError{Path: path, Reason: text}
		}
		return true, nil
	})
}

// cancelReader ends with a context.
type cancelReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *cancelReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
