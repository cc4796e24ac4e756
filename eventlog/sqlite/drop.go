package sqlite

import (
	"context"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/internal/crashpoint"
)

// DropRows implements eventlog.RowStore. It goes a slice at a time, each of them a change of its own, so that the changes of others come in between however much there is to drop.
//
// Whatever comes in between, a row that was there when the call began cannot be read once it has returned nil. The walk goes over the keys, and over the past rows of a key by seq, always onwards,
// and a slice removes all that it passes; a row only ever stays where it is, by its key and seq. What stands where the walk has been was saved after that slice, and is another row. When the log is
// deleted in between, and even made anew, the next slice finds another life and touches nothing: the rows are gone with the log.
//
// A process that dies in between leaves the rows that no slice had come to. Nobody was told that they are gone, and each is as good as it was: a row stands alone, and whoever reads rows of a log
// goes without those that are not there. It ends because both walks end: that over a key at the last past row that there was when it came to the key.
func (s *Store) DropRows(ctx context.Context, life eventlog.Life, keys ...string) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	d := dropping{life: life, keys: keys}
	if len(keys) == 0 {
		d.all, d.keys = true, []string{eventlog.SurfaceKey} // which no other key comes before
	}
	for len(d.keys) > 0 {
		var next dropping
		err := s.change(ctx, sweepBytes, func(w *writer) (err error) {
			next, err = d.slice(w, dropRoom{most: s.dropSlice, bytes: sweepBytes}) // from d each time: it may be called again
			return err
		})
		if err != nil {
			return err
		}
		d = next
	}
	return nil
}

// dropping is how far a DropRows has come.
type dropping struct {
	life eventlog.Life
	// keys are those that it has not done with. all says that the last of them is not the last that there is.
	keys []string
	all  bool
	// past says that of the first key it has come to the past rows: those up to after are gone, those up to last are to go.
	past        bool
	after, last int64
}

// dropRoom is what a slice may still remove: so many records, of which it has had some, and so many bytes.
type dropRoom struct{ most, had, bytes int }

// take says whether a record has room; the first has, whatever its size.
func (r *dropRoom) take(size int64) bool {
	if r.had > 0 && (r.had >= r.most || size > int64(r.bytes)) {
		return false
	}
	r.had++
	r.bytes -= int(size)
	return true
}

// slice removes what has room. It runs in the transaction of a group.
func (d dropping) slice(w *writer, room dropRoom) (dropping, error) {
	l, err := w.head(d.life.ID)
	if err != nil {
		return d, err
	}
	if err := l.is(d.life); err != nil {
		return d, err
	}
	d.life = l.life() // the next slice is of the same
	for full := false; !full && len(d.keys) > 0; {
		if full, err = d.dropKey(w, l.n, &room); err != nil {
			return d, err
		}
	}
	crashpoint.Reach("rows/drop")
	return d, nil
}

// dropKey removes rows of the first key, and goes on to the next when none is left. A key without rows takes room as well, since it has to be looked for.
func (d *dropping) dropKey(w *writer, log int64, room *dropRoom) (full bool, err error) {
	key := d.keys[0]
	if !d.past {
		size := int64(0)
		if _, err := first(w.st.rowSize, func(st *sqlite3.Stmt) { size = st.ColumnInt64(0) }, log, key); err != nil {
			return false, err
		}
		if !room.take(size) {
			return true, nil
		}
		if err := run(w.st.dropRow, log, key); err != nil {
			return false, err
		}
		d.past, d.after, d.last = true, noSeq, noSeq
		if _, err := first(w.st.lastPast, func(st *sqlite3.Stmt) { d.last = st.ColumnInt64(0) }, log, key); err != nil {
			return false, err
		}
	}
	to := d.after
	err = each(w.st.pastSizes, func(st *sqlite3.Stmt) (bool, error) {
		if full = !room.take(st.ColumnInt64(1)); full {
			return false, nil
		}
		to = st.ColumnInt64(0)
		return true, nil
	}, log, key, d.after, d.last)
	if err != nil {
		return false, err
	}
	if err := run(w.st.dropPast, log, key, d.after, to); err != nil {
		return false, err
	}
	if d.after = to; full {
		return true, nil
	}
	d.past, d.keys = false, d.keys[1:]
	if d.all {
		_, err = first(w.st.nextKey, func(st *sqlite3.Stmt) { d.keys = []string{st.ColumnText(0)} }, log, key)
	}
	return false, err
}

// noSeq is below the seq of every row.
const noSeq = int64(-2)
