package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	sqlite3 "github.com/ncruces/go-sqlite3"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/internal/paging"
)

// Info implements eventlog.Store.
func (s *Store) Info(ctx context.Context, id string) (info eventlog.Info, err error) {
	err = s.reading(ctx, func(r *reader) error {
		l, err := r.find(eventlog.Life{ID: id})
		if err == nil {
			info, err = l.info()
		}
		return err
	})
	return info, err
}

// Lookup implements eventlog.Store.
func (s *Store) Lookup(ctx context.Context, life eventlog.Life, key string) (k eventlog.KeyRecord, ok bool, err error) {
	err = s.reading(ctx, func(r *reader) error {
		l, err := r.find(life)
		if err == nil {
			k, ok, err = findKey(r.key, l.n, key)
		}
		return err
	})
	return k, ok, err
}

// findKey looks for an idempotency key by a statement that asks for it.
func findKey(st *sqlite3.Stmt, log int64, key string) (k eventlog.KeyRecord, ok bool, err error) {
	ok, err = first(st, func(st *sqlite3.Stmt) {
		k = eventlog.KeyRecord{Digest: string(st.ColumnRawBlob(0)), Answer: string(st.ColumnRawBlob(5)), Commit: eventlog.Commit{
			First: st.ColumnInt64(1), Seq: st.ColumnInt64(2), Position: st.ColumnInt64(3), Time: st.ColumnInt64(4),
		}}
	}, log, blob(key))
	return k, ok, err
}

// blob gives the bytes of a string that need not be text.
func blob(s string) []byte { return append([]byte{}, s...) }

// List implements eventlog.Store. A log whose header or head is damaged is left out and logged.
func (s *Store) List(ctx context.Context, q eventlog.ListQuery) (page eventlog.ListPage, err error) {
	if err := paging.CheckList(&q); err != nil {
		return eventlog.ListPage{}, err
	}
	before, err := paging.Before(q.Cursor)
	if err != nil {
		return eventlog.ListPage{}, err
	}
	limit := paging.Bound(q.Limit, paging.Logs)
	err = s.reading(ctx, func(r *reader) error {
		page = eventlog.ListPage{}
		looked, last := 0, int64(0)
		return each(r.list, func(st *sqlite3.Stmt) (bool, error) {
			if looked == limit {
				page.Cursor = paging.Cursor(last)
				return false, nil
			}
			l, err := readLog(st)
			looked, last = looked+1, l.position
			if err == nil {
				var info eventlog.Info
				if info, err = l.info(); err == nil {
					page.Logs = append(page.Logs, info)
					return true, nil
				}
			}
			s.leftOut(&l, err)
			return last > 0, nil // No other can stand below a position that none has.
		}, before, int64(limit)+1)
	})
	if err != nil {
		return eventlog.ListPage{}, err
	}
	return page, nil
}

// leftOut logs, once for each log, that one is damaged and so in no list: whoever lists is not told, and whoever asks for it is.
func (s *Store) leftOut(l *log, err error) {
	if _, told := s.told.LoadOrStore(l.n, true); !told {
		s.log.Error("a session is damaged and left out of lists; `foldhost store check` tells what else is, `foldhost store salvage` exports what is whole", "dir", s.dir, "session", l.id, "error", err)
	}
}

// Read implements eventlog.Store. A read by types costs what it returns and, when there are several types, a look at the index for each of them.
func (s *Store) Read(ctx context.Context, q eventlog.Query) (page eventlog.Page, err error) {
	if err := paging.CheckQuery(&q); err != nil {
		return eventlog.Page{}, err
	}
	err = s.reading(ctx, func(r *reader) error {
		l, err := r.find(q.Life)
		if err != nil {
			return err
		}
		end := l.seq
		if q.To > 0 {
			end = min(end, q.To)
		}
		page = eventlog.Page{Next: max(q.From, end), End: end, Incarnation: l.incarnation}
		if q.From >= end {
			return nil
		}
		room := paging.Room{Events: paging.Bound(q.Limit, paging.Events), Bytes: paging.Bound(q.MaxBytes, paging.Bytes)}
		if q.Types == nil {
			page.Events, page.Next, err = r.readRange(&l, q.From, end, room)
		} else {
			page.Events, page.Next, err = r.readTypes(&l, q.Types, q.From, end, room)
		}
		if err == nil && q.Positions {
			page.Positions, err = r.positions(&l, page.Events)
		}
		return err
	})
	if err != nil {
		return eventlog.Page{}, err
	}
	return page, nil
}

// readRange gives events from seq from on, and where to go on. That none is missing is checked: a hole is damage.
func (r *reader) readRange(l *log, from, end int64, room paging.Room) (events []event.Event, next int64, err error) {
	next = from
	full := false
	err = each(r.events, func(st *sqlite3.Stmt) (bool, error) {
		if room.Events < 1 {
			full = true
			return false, nil
		}
		ev, err := r.readEvent(st, l)
		if err != nil {
			return false, err
		}
		if ev.Seq != next {
			return false, missing(l, next)
		}
		if full = !room.Take(&ev); full {
			return false, nil
		}
		events = append(events, ev)
		next++
		return true, nil
	}, l.n, from, end)
	if err == nil && !full && next < end {
		err = missing(l, next)
	}
	if err != nil {
		return nil, 0, err
	}
	return events, next, nil
}

// positions are those of events of a log, in the state of the database that they were read from.
func (r *reader) positions(l *log, events []event.Event) ([]int64, error) {
	var b bulk
	if _, err := first(r.staged, func(st *sqlite3.Stmt) { b.position, b.events = st.ColumnInt64(0), st.ColumnInt64(1) }, l.n); err != nil {
		return nil, err
	}
	positions := make([]int64, len(events))
	for i := range events {
		seq := events[i].Seq
		if seq < b.events {
			positions[i] = b.position - b.events + 1 + seq
			continue
		}
		found, err := first(r.place, func(st *sqlite3.Stmt) { positions[i] = st.ColumnInt64(0) }, l.n, seq)
		if err != nil {
			return nil, err
		}
		if !found {
			return nil, missing(l, seq)
		}
	}
	return positions, nil
}

func missing(l *log, seq int64) error {
	return &eventlog.CorruptError{ID: l.id, Seq: seq, Reason: "no event stands there"}
}

// readTypes is readRange for some types. Each type's index is asked for as many seqs as the page can hold, below the first that what was found before leaves no room for; together they
// are sorted, and only what then fits is read.
func (r *reader) readTypes(l *log, types []string, from, end int64, room paging.Room) (events []event.Event, next int64, err error) {
	type place struct{ id, seq int64 }
	var places []place
	bySeq := func(a, b place) int { return cmp.Compare(a.seq, b.seq) }
	asked := make(map[string]bool, len(types))
	next = end
	for _, typ := range types {
		if asked[typ] {
			continue
		}
		asked[typ] = true
		n, err := r.typeNumber(typ)
		if err != nil {
			return nil, 0, err
		}
		if n == 0 {
			continue
		}
		err = each(r.seqs, func(st *sqlite3.Stmt) (bool, error) {
			places = append(places, place{st.ColumnInt64(0), st.ColumnInt64(1)})
			return true, nil
		}, l.n, n, from, next, int64(room.Events)+1)
		if err != nil {
			return nil, 0, err
		}
		if len(places) > room.Events {
			// There is more than fits, so nothing from the first that does not on will.
			slices.SortFunc(places, bySeq)
			next = places[room.Events].seq
			places = places[:room.Events]
		}
	}
	slices.SortFunc(places, bySeq)
	for _, p := range places {
		var ev event.Event
		var bad error
		found, err := first(r.event, func(st *sqlite3.Stmt) { ev, bad = r.readEvent(st, l) }, p.id)
		switch {
		case err != nil:
			return nil, 0, err
		case bad != nil:
			return nil, 0, bad
		case !found || ev.Seq != p.seq:
			return nil, 0, missing(l, p.seq)
		}
		if !room.Take(&ev) {
			return events, p.seq, nil
		}
		events = append(events, ev)
	}
	return events, next, nil
}

// readEvent reads eventColumns of an event that belongs to a log, and checks what it read.
func (r *reader) readEvent(st *sqlite3.Stmt, l *log) (event.Event, error) {
	ev := event.Event{Seq: st.ColumnInt64(1), Time: st.ColumnInt64(3), Data: st.ColumnBlob(4, nil)}
	typ := st.ColumnInt64(2)
	var extra []byte
	if st.ColumnType(5) != sqlite3.NULL {
		extra = st.ColumnRawBlob(5)
	}
	r.had(len(ev.Data) + len(extra))
	fault := func(reason string) error { return &eventlog.CorruptError{ID: l.id, Seq: ev.Seq, Reason: reason} }
	sum := st.ColumnInt64(6)
	var known bool
	var err error
	if ev.Type, known, err = r.typeName(typ); err != nil {
		return event.Event{}, err
	}
	if !known {
		return event.Event{}, fault(fmt.Sprintf("its type, number %d, is not there", typ))
	}
	if sum != eventSum(l.n, &ev, extra) {
		return event.Event{}, fault("the event does not have the checksum that it was stored with")
	}
	if err := decodeExtra(extra, &ev); err != nil {
		return event.Event{}, fault(err.Error())
	}
	return ev, nil
}

// typeName gives the name of a type by number.
func (r *reader) typeName(n int64) (name string, known bool, err error) {
	if name, known = r.names[n]; known {
		return name, true, nil
	}
	known, err = first(r.name, func(st *sqlite3.Stmt) { name = string(st.ColumnRawBlob(0)) }, n)
	if known && err == nil {
		if len(r.names) >= namesMax {
			clear(r.names)
		}
		r.names[n] = name
	}
	return name, known, err
}

// typeNumber gives the number of a type, 0 for one that no event has.
func (r *reader) typeNumber(name string) (n int64, err error) {
	_, err = first(r.number, func(st *sqlite3.Stmt) { n = st.ColumnInt64(0) }, blob(name))
	return n, err
}

// reading is one call that reads.
func (s *Store) reading(ctx context.Context, f func(*reader) error) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	return s.readers.read(ctx, f)
}
