package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/foldhost/foldhost/eventlog"
)

var _ eventlog.RowStore = (*Store)(nil)

// rows are the checkpoint rows of one log; log.mu guards them.
type rows struct {
	latest map[string]eventlog.Row
	// past are sorted by seq.
	past map[string][]eventlog.Row
}

// Rows implements eventlog.RowStore.
func (s *Store) Rows(ctx context.Context, life eventlog.Life) (eventlog.RowSet, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	l, err := s.find(ctx, life)
	if err != nil {
		return eventlog.RowSet{}, err
	}
	return s.rowsOf(l), nil
}

// RowsOf implements eventlog.RowStore.
func (s *Store) RowsOf(ctx context.Context, ids []string) ([]eventlog.RowSet, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	var sets []eventlog.RowSet
	for _, id := range ids {
		if l := s.logs[id]; l != nil {
			sets = append(sets, s.rowsOf(l))
		}
	}
	return sets, nil
}

// rowsOf needs s.mu.
func (s *Store) rowsOf(l *log) eventlog.RowSet {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return eventlog.RowSet{Info: s.order.info(l), Rows: slices.Collect(maps.Values(l.rows.latest))}
}

// SaveRows implements eventlog.RowStore.
func (s *Store) SaveRows(ctx context.Context, life eventlog.Life, rs []eventlog.Row) error {
	return s.write(ctx, life, rs, func(l *log) {
		if l.rows.latest == nil {
			l.rows.latest = map[string]eventlog.Row{}
		}
		for _, r := range rs {
			if have, ok := l.rows.latest[r.Key]; !ok || have.Cut <= r.Cut {
				l.rows.latest[r.Key] = r
			}
		}
	})
}

// SavePast implements eventlog.RowStore.
func (s *Store) SavePast(ctx context.Context, life eventlog.Life, rs []eventlog.Row) error {
	return s.write(ctx, life, rs, func(l *log) {
		if l.rows.past == nil {
			l.rows.past = map[string][]eventlog.Row{}
		}
		for _, r := range rs {
			kept := l.rows.past[r.Key]
			i, found := after(kept, r.Seq)
			if found {
				kept[i-1] = r
			} else {
				kept = slices.Insert(kept, i, r)
			}
			l.rows.past[r.Key] = kept
		}
	})
}

// after gives the place behind the last row at or below seq; found says that that one is at seq.
func after(kept []eventlog.Row, seq int64) (i int, found bool) {
	i, _ = slices.BinarySearchFunc(kept, seq+1, func(r eventlog.Row, seq int64) int { return int(r.Seq - seq) })
	return i, i > 0 && kept[i-1].Seq == seq
}

// PastRow implements eventlog.RowStore.
func (s *Store) PastRow(ctx context.Context, life eventlog.Life, key string, seq int64) (eventlog.Row, bool, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	l, err := s.find(ctx, life)
	if err != nil {
		return eventlog.Row{}, false, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	kept := l.rows.past[key]
	i, _ := after(kept, seq)
	if i == 0 {
		return eventlog.Row{}, false, nil
	}
	return kept[i-1], true, nil
}

// DropRows implements eventlog.RowStore.
func (s *Store) DropRows(ctx context.Context, life eventlog.Life, keys ...string) error {
	return s.write(ctx, life, nil, func(l *log) {
		if len(keys) == 0 {
			l.rows = rows{}
		}
		for _, key := range keys {
			delete(l.rows.latest, key)
			delete(l.rows.past, key)
		}
	})
}

// write checks rows and calls do with the log locked.
func (s *Store) write(ctx context.Context, life eventlog.Life, rs []eventlog.Row, do func(*log)) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	l, err := s.find(ctx, life)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := eventlog.CheckRows(l.events.len(), rs); err != nil {
		return err
	}
	do(l)
	return nil
}
