package memory

import (
	"context"
	"slices"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// Read implements eventlog.Store. A read by types costs what it returns, however long the log.
func (s *Store) Read(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
	switch {
	case q.From < 0:
		return eventlog.Page{}, negative("Query.From", q.From)
	case q.Limit < 0:
		return eventlog.Page{}, negative("Query.Limit", int64(q.Limit))
	case q.MaxBytes < 0:
		return eventlog.Page{}, negative("Query.MaxBytes", int64(q.MaxBytes))
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	l, err := s.find(ctx, q.Life)
	if err != nil {
		return eventlog.Page{}, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	end := l.events.len()
	if q.To > 0 {
		end = min(end, q.To)
	}
	page := eventlog.Page{Next: max(q.From, end), End: end, Incarnation: l.incarnation}
	if q.From >= end {
		return page, nil
	}
	room := room{events: bound(q.Limit, pageEvents), bytes: bound(q.MaxBytes, pageBytes)}
	if q.Types == nil {
		page.Events, page.Next = l.readRange(q.From, end, room)
	} else {
		page.Events, page.Next = l.readTypes(q.Types, q.From, end, room)
	}
	return page, nil
}

// readRange returns events from seq from on, and where to go on. It needs l.mu.
func (l *log) readRange(from, end int64, room room) ([]event.Event, int64) {
	next := from
	for next < end && room.take(l.events.at(next)) {
		next++
	}
	events := make([]event.Event, 0, next-from)
	for from < next {
		chunk := l.events.list[from>>chunkBits][from&(chunkSize-1):]
		chunk = chunk[:min(int64(len(chunk)), next-from)]
		events = append(events, chunk...)
		from += int64(len(chunk))
	}
	return events, next
}

// readTypes is readRange for some types: a merge of their indexes. It needs l.mu.
func (l *log) readTypes(types []string, from, end int64, room room) ([]event.Event, int64) {
	var indexes [][]int64
	for i, typ := range types {
		idx := l.byType[typ]
		if idx == nil || slices.Contains(types[:i], typ) {
			continue
		}
		lo, _ := slices.BinarySearch(idx.seqs, from)
		hi, _ := slices.BinarySearch(idx.seqs, end)
		if lo < hi {
			indexes = append(indexes, idx.seqs[lo:hi])
		}
	}
	var events []event.Event
	for len(indexes) > 0 {
		first := 0
		for i := range indexes {
			if indexes[i][0] < indexes[first][0] {
				first = i
			}
		}
		seq := indexes[first][0]
		ev := l.events.at(seq)
		if !room.take(ev) {
			return events, seq
		}
		events = append(events, *ev)
		if indexes[first] = indexes[first][1:]; len(indexes[first]) == 0 {
			indexes = slices.Delete(indexes, first, first+1)
		}
	}
	return events, end
}

// room is what is left of a page.
type room struct {
	events, bytes int
	begun         bool
}

// take makes room for an event, or says that the page is full. The first event always fits.
func (r *room) take(ev *event.Event) bool {
	size := sizeOf(ev)
	if r.begun && (r.events < 1 || r.bytes < size) {
		return false
	}
	r.begun = true
	r.events--
	r.bytes -= size
	return true
}

// sizeOf is about what an event takes as JSON: its data and type, and 64 bytes for the rest of the envelope. Exact sizes would mean
// formatting numbers for every event read.
func sizeOf(ev *event.Event) int {
	return len(ev.Data) + len(ev.Type) + 64 + 8*len(ev.Sources)
}
