package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/internal/crashpoint"
)

// ensureDatabase makes the database when there is none, and otherwise looks whether the file is one that can be opened, without changing it.
func ensureDatabase(path string, d *disk) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(path + "-wal"); err == nil {
			return &DamagedError{Path: path, Reason: "it is gone, and the changes that belong to it (" + filepath.Base(path) + "-wal) are there: put it back beside them"}
		}
		return makeDatabase(path, d)
	}
	if err != nil {
		return dirError(filepath.Dir(path), err)
	}
	defer f.Close()
	return inspectHeader(path, f)
}

// headerSize is that of a SQLite database.
const headerSize = 100

// inspectHeader reads the header of a database: that it is one, ours, and not newer.
func inspectHeader(path string, r io.Reader) error {
	var h [headerSize]byte
	switch n, err := io.ReadFull(r, h[:]); {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return &DamagedError{Path: path, Reason: fmt.Sprintf("it was cut short, to %d bytes", n)}
	case err != nil:
		return dirError(filepath.Dir(path), err)
	}
	if !bytes.HasPrefix(h[:], []byte("SQLite format 3\x00")) {
		return &NotStoreError{Path: path, Reason: "it does not begin as a SQLite database does"}
	}
	if id := binary.BigEndian.Uint32(h[68:]); id != applicationID {
		return &NotStoreError{Path: path, Reason: fmt.Sprintf("it is the SQLite database of another application, %08x", id)}
	}
	switch version := int64(int32(binary.BigEndian.Uint32(h[60:]))); {
	case version < 0:
		return &DamagedError{Path: path, Reason: fmt.Sprintf("its format is %d, and formats count from 0", version)}
	case version > int64(len(migrations)):
		return &NewerError{Path: path, Have: version, Know: int64(len(migrations))}
	}
	return nil
}

// makeDatabase makes a new database beside its place and moves it there when it is whole and on disk, so that what stands at the place is never half made.
func makeDatabase(path string, d *disk) (err error) {
	dir := filepath.Dir(path)
	making := path + ".new"
	if err := discard(making); err != nil {
		return dirError(dir, err)
	}
	// Made here for its mode; SQLite takes an empty file for a new database.
	f, err := os.OpenFile(making, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return dirError(dir, err)
	}
	defer f.Close()
	c, err := openConn(making, d)
	if err != nil {
		return err
	}
	err = func() error {
		if err := c.exec(fmt.Sprintf("PRAGMA application_id = %d", applicationID)); err != nil {
			return err
		}
		if err := migrate(c, path, migrations); err != nil {
			return err
		}
		for key, value := range map[string]any{metaStoreID: newStoreID(), metaBoot: 0, metaRunning: "", metaPosition: 0, metaLog: 0} {
			if err := c.setMeta(key, value); err != nil {
				return err
			}
		}
		// Last, because the mode stands in the file: until here it was made with a journal.
		if err := c.exec("PRAGMA journal_mode = WAL"); err != nil {
			return err
		}
		_, err := c.Config(sqlite3.DBCONFIG_NO_CKPT_ON_CLOSE, false) // to leave nothing beside it
		return doing("configuring the connection", err)
	}()
	if closing := c.close(); err == nil {
		err = closing
	}
	if err != nil {
		if fault := d.take(); fault != nil {
			return dirError(dir, fault)
		}
		return err
	}
	crashpoint.Reach("create/made")
	if err := f.Sync(); err != nil {
		return dirError(dir, err)
	}
	if err := os.Rename(making, path); err != nil {
		return dirError(dir, err)
	}
	crashpoint.Reach("create/moved")
	return syncDir(dir)
}
