package memory

import (
	"context"
	"slices"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/internal/paging"
)

// Tail implements eventlog.Store. A call that looks for rare types may come back with nothing but a higher position.
func (s *Store) Tail(ctx context.Context, q eventlog.TailQuery) (eventlog.TailPage, error) {
	if err := paging.CheckTail(&q); err != nil {
		return eventlog.TailPage{}, err
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
	room := paging.Room{Events: paging.Bound(q.Limit, paging.Events), Bytes: paging.Bytes}
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
func (sp span) collect(page *eventlog.TailPage, q eventlog.TailQuery, room *paging.Room, looked *int) (stop bool) {
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
		if *looked == paging.TailScan {
			page.Position = position - 1
			return true
		}
		*looked++
		ev := l.events.at(sp.first + i)
		if q.Types != nil && !slices.Contains(q.Types, ev.Type) {
			continue
		}
		if !room.Take(ev) {
			page.Position = position - 1
			return true
		}
		page.Events = append(page.Events, eventlog.TailEvent{Life: life, Position: position, Event: *ev})
	}
	return false
}

// List implements eventlog.Store.
func (s *Store) List(ctx context.Context, q eventlog.ListQuery) (eventlog.ListPage, error) {
	if err := paging.CheckList(&q); err != nil {
		return eventlog.ListPage{}, err
	}
	before, err := paging.Before(q.Cursor)
	if err != nil {
		return eventlog.ListPage{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return eventlog.ListPage{}, err
	}
	var page eventlog.ListPage
	var more bool
	page.Logs, more = s.order.list(before, paging.Bound(q.Limit, paging.Logs))
	if more {
		page.Cursor = paging.Cursor(page.Logs[len(page.Logs)-1].Position)
	}
	return page, nil
}
