package memory

import (
	"context"
	"slices"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/internal/paging"
)

// Read implements eventlog.Store. A read by types costs what it returns, however long the log.
func (s *Store) Read(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
	if err := paging.CheckQuery(&q); err != nil {
		return eventlog.Page{}, err
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
	room := paging.Room{Events: paging.Bound(q.Limit, paging.Events), Bytes: paging.Bound(q.MaxBytes, paging.Bytes)}
	if q.Types == nil {
		page.Events, page.Next = l.readRange(q.From, end, room)
	} else {
		page.Events, page.Next = l.readTypes(q.Types, q.From, end, room)
	}
	if q.Positions {
		page.Positions = make([]int64, len(page.Events))
		for i := range page.Events {
			page.Positions[i] = l.position(page.Events[i].Seq)
		}
	}
	return page, nil
}

// readRange returns events from seq from on, and where to go on. It needs l.mu.
func (l *log) readRange(from, end int64, room paging.Room) ([]event.Event, int64) {
	next := from
	for next < end && room.Take(l.events.at(next)) {
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
func (l *log) readTypes(types []string, from, end int64, room paging.Room) ([]event.Event, int64) {
	var indexes [][]int64
	asked := make(map[*typeIndex]bool, min(len(types), len(l.byType)))
	for _, typ := range types {
		idx := l.byType[typ]
		if idx == nil || asked[idx] {
			continue
		}
		asked[idx] = true
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
		if !room.Take(ev) {
			return events, seq
		}
		events = append(events, *ev)
		if indexes[first] = indexes[first][1:]; len(indexes[first]) == 0 {
			indexes = slices.Delete(indexes, first, first+1)
		}
	}
	return events, end
}
