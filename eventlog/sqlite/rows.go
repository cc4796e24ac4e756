package sqlite

import (
	"context"
	"fmt"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/internal/crashpoint"
)

// Rows implements eventlog.RowStore. A row that is damaged is not given.
func (s *Store) Rows(ctx context.Context, life eventlog.Life) (set eventlog.RowSet, err error) {
	err = s.reading(ctx, func(r *reader) error {
		l, err := r.find(life)
		if err == nil {
			set, err = r.rowsOf(&l)
		}
		return err
	})
	if err != nil {
		return eventlog.RowSet{}, err
	}
	return set, nil
}

// RowsOf implements eventlog.RowStore. A log that is damaged as a whole is left out, as in List.
func (s *Store) RowsOf(ctx context.Context, ids []string) (sets []eventlog.RowSet, err error) {
	err = s.reading(ctx, func(r *reader) error {
		sets = nil
		seen := make(map[string]bool, len(ids))
		for _, id := range ids {
			if seen[id] {
				continue
			}
			seen[id] = true
			var set eventlog.RowSet
			l, err := r.find(eventlog.Life{ID: id})
			if err == nil {
				set, err = r.rowsOf(&l)
			}
			switch err.(type) {
			case nil:
				sets = append(sets, set)
			case *eventlog.NotFoundError:
			case *eventlog.CorruptError:
				s.leftOut(&l, err)
			default:
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return sets, nil
}

func (r *reader) rowsOf(l *log) (set eventlog.RowSet, err error) {
	if set.Info, err = l.info(); err != nil {
		return set, err
	}
	err = each(r.rows, func(st *sqlite3.Stmt) (bool, error) {
		row, whole := readRow(st, l.n)
		r.had(len(row.Data))
		if whole {
			set.Rows = append(set.Rows, row)
		}
		return true, nil
	}, l.n, l.seq)
	return set, err
}

// PastRow implements eventlog.RowStore. A row that is damaged is passed over.
func (s *Store) PastRow(ctx context.Context, life eventlog.Life, key string, seq int64) (row eventlog.Row, ok bool, err error) {
	err = s.reading(ctx, func(r *reader) error {
		l, err := r.find(life)
		if err != nil {
			return err
		}
		return each(r.past, func(st *sqlite3.Stmt) (bool, error) {
			row, ok = readRow(st, l.n)
			r.had(len(row.Data))
			return !ok, nil
		}, l.n, key, seq, l.seq)
	})
	if err != nil || !ok {
		return eventlog.Row{}, false, err
	}
	return row, true, nil
}

// readRow reads a row of a log, and says whether it is as it was stored.
func readRow(st *sqlite3.Stmt, log int64) (row eventlog.Row, whole bool) {
	row = eventlog.Row{Key: st.ColumnText(0), Cut: st.ColumnInt64(1), Seq: st.ColumnInt64(2), Data: st.ColumnBlob(3, []byte{})}
	return row, st.ColumnInt64(4) == rowSum(log, &row)
}

// SaveRows implements eventlog.RowStore.
func (s *Store) SaveRows(ctx context.Context, life eventlog.Life, rows []eventlog.Row) error {
	return s.writeRows(ctx, life, rows, func(w *writer, l *log, r *eventlog.Row) error {
		return run(w.st.addRow, l.n, r.Key, r.Cut, r.Seq, r.Data, rowSum(l.n, r), l.seq)
	})
}

// SavePast implements eventlog.RowStore.
func (s *Store) SavePast(ctx context.Context, life eventlog.Life, rows []eventlog.Row) error {
	return s.writeRows(ctx, life, rows, func(w *writer, l *log, r *eventlog.Row) error {
		return run(w.st.addPast, l.n, r.Key, r.Cut, r.Seq, r.Data, rowSum(l.n, r))
	})
}

// writeRows writes rows of one log, which it checks first.
func (s *Store) writeRows(ctx context.Context, life eventlog.Life, rows []eventlog.Row, write func(*writer, *log, *eventlog.Row) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	size := 0
	whole := make([]eventlog.Row, len(rows))
	for i, r := range rows {
		if len(r.Data) > eventMax {
			return &eventlog.InvalidError{Reason: fmt.Sprintf("row %q takes %d bytes and this store holds rows of up to %d", r.Key, len(r.Data), eventMax)}
		}
		if r.Data == nil {
			r.Data = []byte{}
		}
		whole[i] = r
		size += len(r.Data) + 128
	}
	return s.change(ctx, size, func(w *writer) error {
		l, err := w.head(life.ID)
		if err != nil {
			return err
		}
		if err := l.is(life); err != nil {
			return err
		}
		if err := eventlog.CheckRows(l.seq, whole); err != nil {
			return err
		}
		for i := range whole {
			if err := write(w, l, &whole[i]); err != nil {
				return err
			}
			crashpoint.Reach("rows/row")
		}
		return nil
	})
}
