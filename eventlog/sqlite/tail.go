package sqlite

import (
	"context"
	"slices"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/internal/paging"
)

// Tail implements eventlog.Store. A call that looks for rare types may come back with nothing but a higher position.
func (s *Store) Tail(ctx context.Context, q eventlog.TailQuery) (page eventlog.TailPage, err error) {
	if err := paging.CheckTail(&q); err != nil {
		return eventlog.TailPage{}, err
	}
	err = s.reading(ctx, func(r *reader) error {
		t := tailing{
			r: r, types: q.Types, at: q.After,
			room: paging.Room{Events: paging.Bound(q.Limit, paging.Events), Bytes: paging.Bytes},
		}
		// Of the same state of the database as the events: what comes later has higher positions.
		if _, err := first(r.last, func(st *sqlite3.Stmt) { t.end = st.ColumnInt64(0) }); err != nil {
			return err
		}
		if err := t.collect(); err != nil {
			return err
		}
		page = eventlog.TailPage{Events: t.events, Position: max(t.at, q.After), End: t.end}
		return nil
	})
	if err != nil {
		return eventlog.TailPage{}, err
	}
	return page, nil
}

// tailing is one Tail call: a walk over the events by their ids, which are their positions, that takes in the first events of staged logs where their
// positions stand.
type tailing struct {
	r     *reader
	types []string
	room  paging.Room
	// at is the position up to which all has been given, end the last there is.
	at, end int64
	looked  int
	events  []eventlog.TailEvent
}

// bulk is a run of events of one log whose ids are not their positions.
type bulk struct {
	position, events int64
	log              log
}

func (t *tailing) collect() error {
	if t.types != nil && len(t.types) == 0 {
		t.at = t.end
	}
	for t.at < t.end {
		var b bulk
		found, err := first(t.r.bulk, func(st *sqlite3.Stmt) {
			b = bulk{position: st.ColumnInt64(0), events: st.ColumnInt64(2)}
			b.log = log{n: st.ColumnInt64(1), id: st.ColumnText(3), incarnation: st.ColumnText(4)}
		}, t.at)
		if err != nil {
			return err
		}
		to := t.end
		if found {
			to = max(t.at, b.position-b.events)
		}
		if full, err := t.ordinary(to); full || err != nil {
			return err
		}
		t.at = to
		if found {
			if full, err := t.staged(&b); full || err != nil {
				return err
			}
			t.at = b.position
		}
	}
	return nil
}

// ordinary collects the events with ids up to to.
func (t *tailing) ordinary(to int64) (full bool, err error) {
	err = each(t.r.tail, func(st *sqlite3.Stmt) (bool, error) {
		id := st.ColumnInt64(0)
		if full = t.looked == paging.TailScan; full {
			t.at = id - 1
			return false, nil
		}
		t.looked++
		if st.ColumnType(8) == sqlite3.NULL || st.ColumnInt64(1) < st.ColumnInt64(10) {
			return true, nil // deleted, or not there yet, or it has another position
		}
		l := log{n: st.ColumnInt64(7), id: st.ColumnText(8), incarnation: st.ColumnText(9)}
		full, err = t.take(st, &l, id)
		return !full, err
	}, t.at, to)
	return full, err
}

// staged collects the events of a staged log.
func (t *tailing) staged(b *bulk) (full bool, err error) {
	begin := b.position - b.events + 1
	next := max(0, t.at+1-begin)
	err = each(t.r.events, func(st *sqlite3.Stmt) (bool, error) {
		if seq := st.ColumnInt64(1); seq != next {
			return false, missing(&b.log, next)
		}
		position := begin + next
		if full = t.looked == paging.TailScan; full {
			t.at = position - 1
			return false, nil
		}
		t.looked++
		next++
		full, err = t.take(st, &b.log, position)
		return !full, err
	}, b.log.n, next, b.events)
	if err == nil && !full && next < b.events {
		err = missing(&b.log, next)
	}
	return full, err
}

// take adds an event if it is asked for, or says that it has no room, and where to go on.
func (t *tailing) take(st *sqlite3.Stmt, l *log, position int64) (full bool, err error) {
	if t.types != nil {
		name, _, err := t.r.typeName(st.ColumnInt64(2))
		if err != nil || !slices.Contains(t.types, name) {
			return false, err
		}
	}
	if t.room.Events < 1 {
		t.at = position - 1
		return true, nil
	}
	var ev event.Event
	if ev, err = t.r.readEvent(st, l); err != nil {
		return false, err
	}
	if !t.room.Take(&ev) {
		t.at = position - 1
		return true, nil
	}
	t.events = append(t.events, eventlog.TailEvent{Life: l.life(), Position: position, Event: ev})
	return false, nil
}
