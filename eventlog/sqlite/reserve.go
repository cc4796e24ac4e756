package sqlite

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"

	"github.com/foldhost/foldhost/eventlog"
)

const (
	// startBytes is what a start needs where the last end left nothing but the database: 32 KiB for the index of the WAL and some pages in the WAL, which count the start; and what the file system takes.
	startBytes = 64 << 10
	// reserveBytes is several times that: until there is room each start, and each end, takes some of those pages.
	reserveBytes = 4 * startBytes
	// spareBytes is how much has to be free before the place is held at first: 1 MiB. With less the disk is about to be full, and who appends is to have it.
	spareBytes = 1 << 20
)

// reserve is a file that holds nothing but its place. On a disk that is full some of it is given up so that the store can be opened, all of it and as ever: what is there can be read, and what is to be
// added has to wait until there is room. The place is held again as soon as there is.
type reserve struct{ path string }

func reserveOf(dir string) reserve { return reserve{filepath.Join(dir, reserveName)} }

// keep sees to it that the place is held, where there is room for that and for others.
func (r reserve) keep() {
	if free, known := freeSpace(filepath.Dir(r.path)); !known || free >= spareBytes {
		r.hold()
	}
}

// hold sees to it that the place is held, or as much of it as there is: for when some was given up that may not have been needed, and when the store has been closed.
func (r reserve) hold() {
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return
	}
	// What is there stays: a file system may have no use for its place before it has written down that it is free. In pieces, since the last may not fit, and of what nothing can be made smaller of: some
	// file systems keep no place for zeros.
	var piece [4096]byte
	for at := info.Size(); at < reserveBytes && err == nil; at += int64(len(piece)) {
		_, _ = rand.Read(piece[:])
		_, err = f.WriteAt(piece[:], at)
	}
}

// give gives up what a start needs, and says whether there was any.
func (r reserve) give() bool {
	info, err := os.Stat(r.path)
	return err == nil && info.Size() > 0 && os.Truncate(r.path, max(0, info.Size()-startBytes)) == nil
}

// noStart says what a start needs that found no room.
func noStart(dir string, err error) error {
	room := "its disk has no room for them, or the quota of this user is used up"
	if free, known := freeSpace(dir); known {
		room = fmt.Sprintf("%d are free there", free)
	}
	return &eventlog.DiskFullError{Cause: fmt.Errorf("to open %s takes some %d bytes, and %s (%w)", dir, startBytes, room, err)}
}
