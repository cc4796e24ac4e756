package sqlite

import (
	"errors"
	"time"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/internal/crashpoint"
)

// Bounds on the WAL, in pages of 4 KiB.
const (
	// 4,000 pages, 16 MiB: taken over in some tens of milliseconds, and large enough that a page which is changed by every commit is written to the
	// database once for some hundred of them.
	walPages = 4000
	// 8 times that, 128 MiB: readers have followed each other so closely, or one has read for so long, that the WAL could not start over. From here on the writer
	// waits for them, for as long as restartWait; ours are done within a page.
	walPatience = 8
)

const restartWait = 100 * time.Millisecond

// walStep says how the WAL is to be taken over into the database when it has so many pages and had tried of them at the last attempt, if at all; step is after how
// many pages to try.
func walStep(pages, tried, step int) (mode sqlite3.CheckpointMode, now bool) {
	switch {
	case pages-tried < step:
		return 0, false
	case pages >= walPatience*step:
		return sqlite3.CHECKPOINT_RESTART, true
	}
	return sqlite3.CHECKPOINT_PASSIVE, true
}

// fold takes the WAL over into the database when it is time. Appends wait meanwhile, some tens of milliseconds; beside them it would never get to the end of a WAL
// that grows.
func (w *writer) fold() {
	if mode, now := walStep(w.pages, w.tried, w.walPages); now && w.s.Failed() == nil {
		w.takeOver(mode)
	}
}

// takeOver says whether the whole WAL is in the database.
func (w *writer) takeOver(mode sqlite3.CheckpointMode) bool {
	w.s.disk.take()
	crashpoint.Reach("fold")
	var pages, folded int
	err := contained(func() (err error) {
		if err := w.c.BusyTimeout(restartWait); err != nil {
			return doing("configuring the connection", err)
		}
		pages, folded, err = w.c.WALCheckpoint("main", mode)
		return errors.Join(doing("taking the WAL over into the database", err), doing("configuring the connection", w.c.BusyTimeout(busyWait)))
	})
	crashpoint.Reach("folded")
	w.tried = w.pages
	switch {
	case err == nil && pages == folded:
		// The next commit starts the WAL over.
		w.pages, w.tried = 0, 0
		w.s.reserve.keep() // There may be room again.
		return true
	case err == nil, errors.Is(err, sqlite3.BUSY):
	default:
		w.s.log.Warn("changes cannot be taken over from the WAL into the database now; they stay where they are", "dir", w.s.dir, "error", w.failure(err))
	}
	return false
}
