package sqlite

import (
	"context"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/internal/crashpoint"
)

// Delete implements eventlog.Store. The log is gone when it returns; its content is overwritten with later commits, or as soon as there are none.
func (s *Store) Delete(ctx context.Context, life eventlog.Life) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.change(ctx, 0, func(w *writer) error { return w.delete(life) })
}

func (w *writer) delete(life eventlog.Life) error {
	l, err := w.head(life.ID)
	_, damaged := err.(*eventlog.CorruptError)
	if err != nil && !damaged {
		return err // and one that is damaged can be deleted
	}
	if err := l.is(life); err != nil {
		return err
	}
	if err := run(w.st.dropLog, l.n); err != nil {
		return err
	}
	if err := run(w.st.dropHead, l.n); err != nil {
		return err
	}
	crashpoint.Reach("delete")
	if err := run(w.st.addTrash, l.n); err != nil {
		return err
	}
	// Its positions are never given again, though nothing will tell that they were.
	if err := run(w.st.meta, metaPosition, w.position); err != nil {
		return err
	}
	if w.grown.logs--; damaged {
		w.grown.unknown = true
	}
	w.grown.events -= l.seq
	delete(w.heads, life.ID)
	n := l.n
	w.committed = append(w.committed, func() { w.trash = append(w.trash, n) })
	return nil
}

// sweepSlice is how many records a commit sweeps for others' sake: what costs it some milliseconds. A commit that does nothing else takes more.
const (
	sweepSlice = 256
	sweepAlone = 2048
	// sweepBytes bounds what is written over: each MiB costs some milliseconds, and events, answers and rows may be large.
	sweepBytes = 4 << 20
)

// collectAbandoned adds what was given up to the trash, and says whether there is any.
func (w *writer) collectAbandoned() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trash = append(w.trash, w.abandoned...)
	w.abandoned = nil
	return len(w.trash) > 0
}

// sweep deletes a slice of what is left of the first log in the trash. It runs in the transaction of a group.
func (w *writer) sweep(alone bool) error {
	if !w.collectAbandoned() {
		return nil
	}
	slice := int64(sweepSlice)
	if alone {
		slice = sweepAlone
	}
	// Zeros over what is deleted, which costs writing pages that would otherwise only be listed as free.
	if err := w.c.exec("PRAGMA secure_delete = ON"); err != nil {
		return err
	}
	done, err := w.sweepLog(w.trash[0], slice)
	if err == nil {
		err = w.c.exec("PRAGMA secure_delete = FAST")
	}
	if err != nil {
		return err
	}
	crashpoint.Reach("sweep")
	if done {
		w.committed = append(w.committed, func() {
			if w.trash = w.trash[1:]; len(w.trash) == 0 {
				w.swept = true
			}
		})
	}
	return nil
}

func (w *writer) sweepLog(log, slice int64) (done bool, err error) {
	for _, part := range []struct {
		st, sizes *sqlite3.Stmt
		limit     int64
	}{
		{w.st.sweepRows, w.st.rowSizes, slice}, {w.st.sweepPast, w.st.pastRowSizes, slice}, {w.st.sweepKeys, w.st.keySizes, slice}, {w.st.sweepEvents, w.st.eventSizes, slice},
		{w.st.sweepBulks, nil, slice},
	} {
		limit := part.limit
		if part.sizes != nil {
			if limit, err = within(part.sizes, limit, sweepBytes, log); err != nil {
				return false, err
			}
		}
		if err := run(part.st, log, limit); err != nil {
			return false, err
		}
		if w.c.Changes() >= limit {
			return false, nil
		}
	}
	return true, run(w.st.dropTrash, log)
}

// within says how many of the records whose sizes a statement gives, at most so many, have so many bytes together, or are the first. Its last parameter is how many it gives.
func within(sizes *sqlite3.Stmt, most, bytes int64, args ...any) (n int64, err error) {
	n = most
	looked := int64(0)
	err = each(sizes, func(st *sqlite3.Stmt) (bool, error) {
		if bytes -= st.ColumnInt64(0); bytes < 0 {
			n = max(looked, 1)
			return false, nil
		}
		looked++
		return true, nil
	}, append(args, most)...)
	return n, err
}
