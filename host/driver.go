package host

import (
	"context"
	"sync"
	"time"

	"github.com/foldhost/foldhost/checkpoint"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// driver is the one subscription from sessions to the registry.
type driver struct {
	logs     logs
	registry *registry.Registry
	// rows reads what is stored for a session that becomes live, writer writes it from time to time. writer is nil when the store keeps no rows.
	rows   *checkpoint.Reader
	writer *checkpoint.Writer

	mu sync.Mutex
	// A deleted session and its successor of the same id are two lives.
	live map[eventlog.Life]*registry.Session
	// ids are the same by id: the life that became live last.
	ids map[string]*registry.Session
}

// Attach implements session.Driver.
func (d *driver) Attach(s *session.Session, head int64) session.Drive {
	life := lifeOf(s)
	rs := d.registry.Attach(d.logs.Log(life), d.logs.Set(s.Header()), head, d.stored(life))
	d.mu.Lock()
	d.live[life], d.ids[life.ID] = rs, rs
	d.mu.Unlock()
	dr := &drive{Session: rs, driver: d, life: life}
	if d.writer != nil {
		dr.track = d.writer.Track(life, rs)
	}
	return dr
}

// attachWait bounds the reading of rows when a session becomes live: they save folding, and nothing waits long for what saves.
const attachWait = 2 * time.Second

func (d *driver) stored(life eventlog.Life) registry.Rows {
	ctx, cancel := context.WithTimeout(context.Background(), attachWait)
	defer cancel()
	return d.rows.Rows(ctx, life)
}

// of gives the registry's side of a live session, nil when it is cold.
func (d *driver) of(life eventlog.Life) *registry.Session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live[life]
}

// byID gives the registry's side of whatever live session has the id, nil when there is none.
func (d *driver) byID(id string) *registry.Session {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ids[id]
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
	// track is nil when nothing is written.
	track *checkpoint.Track
}

// Publish implements session.Drive.
func (d *drive) Publish(ctx context.Context, events []event.Event) {
	d.Session.Publish(ctx, events)
	if d.track != nil {
		d.track.Committed(events)
	}
}

// Detach implements session.Drive. The last rows are taken while the cells are still there, and written by somebody else.
func (d *drive) Detach(deleted bool) {
	if d.track != nil {
		d.track.End(deleted)
	}
	d.driver.mu.Lock()
	if d.driver.live[d.life] == d.Session {
		delete(d.driver.live, d.life)
	}
	if d.driver.ids[d.life.ID] == d.Session {
		delete(d.driver.ids, d.life.ID)
	}
	d.driver.mu.Unlock()
	d.Session.Detach(deleted)
}

// logs is a store as the registry and the cache read it.
type logs struct {
	eventlog.Store
	// rows is nil when the store keeps none.
	rows eventlog.RowStore
	// page bounds what is read at once.
	page int
	// declared says whether there is a preset; strange hears of each session that has one that there is not.
	declared func(preset string) bool
	strange  func(preset, session string)
}

// Log implements checkpoint.Logs.
func (l logs) Log(life eventlog.Life) registry.Log {
	log := storedLog{l.Store, life, l.page}
	if l.rows == nil {
		return log
	}
	return pastLog{log, l.rows}
}

// Set implements checkpoint.Logs.
func (l logs) Set(h event.Header) string {
	set := setOf(h)
	if set != "" && !l.declared(set) {
		l.strange(set, h.ID)
	}
	return set
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

// pastLog is a log with rows of the past.
type pastLog struct {
	storedLog
	rows eventlog.RowStore
}

// Past implements registry.PastLog. A row that is damaged is passed over.
func (l pastLog) Past(ctx context.Context, key string, seq int64) (registry.Row, bool, error) {
	for seq >= -1 {
		stored, ok, err := l.rows.PastRow(ctx, l.life, key, seq)
		if err != nil || !ok {
			return registry.Row{}, false, err
		}
		if row, err := checkpoint.Decode(stored); err == nil {
			return row, true, nil
		}
		seq = min(seq, stored.Seq) - 1
	}
	return registry.Row{}, false, nil
}
