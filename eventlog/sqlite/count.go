package sqlite

import (
	"context"
	"sync/atomic"

	sqlite3 "github.com/ncruces/go-sqlite3"
)

// tally knows how many logs and events there are. They are counted once, when somebody first asks, over one state of the database beside what is being committed; from then on, as before, the
// writer says what each transaction adds.
type tally struct {
	// logs and events are what was committed since the store was opened, less what was deleted. era rises when the writer does not know how much was.
	logs, events, era atomic.Int64
	// base is what there was at the beginning, nil when nobody has asked; it holds for one era.
	base atomic.Pointer[tallied]
	// counting has one place, for who counts.
	counting chan struct{}
}

type tallied struct{ logs, events, era int64 }

// growth is what a transaction adds. It belongs to the writer.
type growth struct {
	logs, events int64
	// unknown: a log was deleted whose length is damaged.
	unknown bool
}

// committed takes over what a transaction has added. It is called between two transactions of the writer.
func (t *tally) committed(g growth) {
	if g.unknown {
		t.era.Add(1)
	}
	t.logs.Add(g.logs)
	t.events.Add(g.events)
}

// now gives the numbers, if they are known.
func (t *tally) now() (logs, events int64, ok bool) {
	b := t.base.Load()
	if b == nil || b.era != t.era.Load() {
		return 0, 0, false
	}
	return b.logs + t.logs.Load(), b.events + t.events.Load(), true
}

// count gives how many logs and events there are.
func (s *Store) count(ctx context.Context) (logs, events int64, err error) {
	if logs, events, ok := s.tally.now(); ok {
		return logs, events, nil
	}
	select {
	case s.tally.counting <- struct{}{}:
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	defer func() { <-s.tally.counting }()
	if logs, events, ok := s.tally.now(); ok {
		return logs, events, nil
	}
	var before tallied
	err = s.reading(ctx, func(r *reader) error {
		// A transaction sees the state in which it first reads: here the one between two of the writer's, whose tally belongs to it.
		err := s.writer.betweenWithin(ctx, func() error {
			before = tallied{s.tally.logs.Load(), s.tally.events.Load(), s.tally.era.Load()}
			_, err := r.c.number("SELECT count(*) FROM (SELECT 1 FROM heads LIMIT 1)")
			return err
		})
		if err != nil {
			return err
		}
		q, err := r.c.prepare("SELECT count(*), ifnull(sum(seq), 0) FROM heads")
		if err != nil {
			return err
		}
		defer q.Close()
		_, err = first(q, func(q *sqlite3.Stmt) { logs, events = q.ColumnInt64(0), q.ColumnInt64(1) })
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	s.tally.base.Store(&tallied{logs - before.logs, events - before.events, before.era})
	return logs, events, nil
}
