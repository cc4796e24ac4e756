package memory

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/foldhost/foldhost/eventlog"
)

// Tail implements eventlog.Store. A call that looks for rare types may come back with nothing but a higher position.
func (s *Store) Tail(ctx context.Context, q eventlog.TailQuery) (eventlog.TailPage, error) {
	switch {
	case q.After < 0:
		return eventlog.TailPage{}, negative("TailQuery.After", q.After)
	case q.Limit < 0:
		return eventlog.TailPage{}, negative("TailQuery.Limit", int64(q.Limit))
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return eventlog.TailPage{}, err
	}
	spans, more, end := s.order.after(q.After)
	page := eventlog.TailPage{Position: max(q.After, end), End: end}
	if more {
		page.Position = spans[len(spans)-1].end
	}
	room := room{events: bound(q.Limit, pageEvents), bytes: pageBytes}
	looked := 0
	for _, sp := range spans {
		if stop := sp.collect(&page, q, &room, &looked); stop {
			break
		}
	}
	return page, nil
}

// collect adds the events of a span that match. When the page is full it sets the position to go on from and says stop. It needs
// Store.mu.
func (sp span) collect(page *eventlog.TailPage, q eventlog.TailQuery, room *room, looked *int) (stop bool) {
	l := sp.log
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.events.len() == 0 {
		return false // deleted
	}
	life := eventlog.Life{ID: l.header.ID, Incarnation: l.incarnation}
	begin := sp.end - sp.n + 1
	for i := max(0, q.After+1-begin); i < sp.n; i++ {
		position := begin + i
		if *looked == tailScan {
			page.Position = position - 1
			return true
		}
		*looked++
		ev := l.events.at(sp.first + i)
		if q.Types != nil && !slices.Contains(q.Types, ev.Type) {
			continue
		}
		if !room.take(ev) {
			page.Position = position - 1
			return true
		}
		page.Events = append(page.Events, eventlog.TailEvent{Life: life, Position: position, Event: *ev})
	}
	return false
}

// List implements eventlog.Store. The cursor is the position of the last log given, so a log that commits while somebody pages is
// not given twice; it stands at the front of the next listing.
func (s *Store) List(ctx context.Context, q eventlog.ListQuery) (eventlog.ListPage, error) {
	if q.Limit < 0 {
		return eventlog.ListPage{}, negative("ListQuery.Limit", int64(q.Limit))
	}
	before := int64(math.MaxInt64)
	if q.Cursor != "" {
		n, err := strconv.ParseInt(q.Cursor, 10, 64)
		if err != nil || n < 1 {
			return eventlog.ListPage{}, &eventlog.InvalidError{Reason: "the cursor is not one that this store gave: start without one"}
		}
		before = n
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return eventlog.ListPage{}, err
	}
	var page eventlog.ListPage
	var more bool
	page.Logs, more = s.order.list(before, bound(q.Limit, pageLogs))
	if more {
		page.Cursor = strconv.FormatInt(page.Logs[len(page.Logs)-1].Position, 10)
	}
	return page, nil
}
