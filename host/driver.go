package host

import (
	"context"
	"sync"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// driver is the one subscription from sessions to the registry.
type driver struct {
	store    eventlog.Store
	registry *registry.Registry
	// page bounds what is read at once.
	page int

	mu sync.Mutex
	// A deleted session and its successor of the same id are two lives.
	live map[eventlog.Life]*registry.Session
}

// Attach implements session.Driver.
func (d *driver) Attach(s *session.Session, head int64) session.Drive {
	life := lifeOf(s)
	rs := d.registry.Attach(storedLog{d.store, life, d.page}, setOf(s.Header()), head, registry.Rows{})
	d.mu.Lock()
	d.live[life] = rs
	d.mu.Unlock()
	return &drive{Session: rs, driver: d, life: life}
}

// of gives the registry's side of a live session, nil when it is cold.
func (d *driver) of(s *session.Session) *registry.Session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live[lifeOf(s)]
}

func lifeOf(s *session.Session) eventlog.Life {
	return eventlog.Life{ID: s.ID(), Incarnation: s.Incarnation()}
}

// setOf names the set of registrants that a session belongs to: its preset, or the default set.
func setOf(h event.Header) string {
	if h.AgentPreset == nil {
		return ""
	}
	return *h.AgentPreset
}

// drive is the registry's side of one live session, which leaves the table when the session goes cold.
type drive struct {
	*registry.Session
	driver *driver
	life   eventlog.Life
}

// Detach implements session.Drive.
func (d *drive) Detach(deleted bool) {
	d.driver.mu.Lock()
	if d.driver.live[d.life] == d.Session {
		delete(d.driver.live, d.life)
	}
	d.driver.mu.Unlock()
	d.Session.Detach(deleted)
}

// storedLog reads a session's events straight from the store: cells are built without touching the session, so that
// reading never keeps one live nor waits for one that is going cold.
type storedLog struct {
	store eventlog.Store
	life  eventlog.Life
	page  int
}

// pageEvents is the registry's own batch: what a page holds beyond it is read once more for the next batch.
const pageEvents = 256

func (l storedLog) ID() string          { return l.life.ID }
func (l storedLog) Incarnation() string { return l.life.Incarnation }

// ReadPage implements registry.Log.
func (l storedLog) ReadPage(ctx context.Context, from, to int64, types []string) ([]event.Event, int64, error) {
	if to <= from {
		return nil, to, nil // To = 0 would mean the end of the log.
	}
	page, err := l.store.Read(ctx, eventlog.Query{Life: l.life, From: from, To: to, Types: types, Limit: l.page})
	return page.Events, page.Next, err
}
