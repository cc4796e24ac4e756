package spool

import (
	"context"
	"sync"

	"github.com/foldhost/foldhost/eventlog"
)

// Many is an eventlog.Store of several logs, each in a Store of its own until it is deleted: replays that share the plugin processes of one host.
// mu guards the map and is held across no call.
type Many struct {
	dir string

	mu     sync.Mutex
	logs   map[string]*Store
	closed bool
}

// NewMany makes an empty store; dir is that of New.
func NewMany(dir string) *Many { return &Many{dir: dir, logs: map[string]*Store{}} }

// Identity implements eventlog.Store.
func (m *Many) Identity() eventlog.Identity { return eventlog.Identity{StoreID: "replay", Boot: 1} }

// Create implements eventlog.Store: once for each id.
func (m *Many) Create(ctx context.Context, c eventlog.Creation) (eventlog.Info, error) {
	id := c.Header.ID
	s := New(m.dir)
	m.mu.Lock()
	switch {
	case m.closed:
		m.mu.Unlock()
		return eventlog.Info{}, eventlog.ErrClosed
	case m.logs[id] != nil:
		m.mu.Unlock()
		return eventlog.Info{}, &eventlog.ExistsError{ID: id}
	}
	m.logs[id] = s
	m.mu.Unlock()
	info, err := s.Create(ctx, c)
	if err != nil {
		m.remove(id)
		s.Close()
	}
	return info, err
}

// Info implements eventlog.Store.
func (m *Many) Info(ctx context.Context, id string) (eventlog.Info, error) {
	s, err := m.log(id)
	if err != nil {
		return eventlog.Info{}, err
	}
	return s.Info(ctx, id)
}

// Read implements eventlog.Store.
func (m *Many) Read(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
	s, err := m.log(q.Life.ID)
	if err != nil {
		return eventlog.Page{}, err
	}
	return s.Read(ctx, q)
}

// Delete implements eventlog.Store.
func (m *Many) Delete(_ context.Context, l eventlog.Life) error {
	s := m.remove(l.ID)
	if s == nil {
		return &eventlog.NotFoundError{ID: l.ID}
	}
	return s.Close()
}

// Close implements eventlog.Store.
func (m *Many) Close() error {
	m.mu.Lock()
	logs := m.logs
	m.logs, m.closed = map[string]*Store{}, true
	m.mu.Unlock()
	for _, s := range logs {
		s.Close()
	}
	return nil
}

func (m *Many) log(id string) (*Store, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch s := m.logs[id]; {
	case m.closed:
		return nil, eventlog.ErrClosed
	case s == nil:
		return nil, &eventlog.NotFoundError{ID: id}
	default:
		return s, nil
	}
}

func (m *Many) remove(id string) *Store {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.logs[id]
	delete(m.logs, id)
	return s
}

// Append, List and Tail implement eventlog.Store by refusing; Lookup knows no key.

func (m *Many) Append(context.Context, eventlog.Batch) (eventlog.Commit, error) {
	return eventlog.Commit{}, errReplay
}

func (m *Many) List(context.Context, eventlog.ListQuery) (eventlog.ListPage, error) {
	return eventlog.ListPage{}, errReplay
}

func (m *Many) Tail(context.Context, eventlog.TailQuery) (eventlog.TailPage, error) {
	return eventlog.TailPage{}, errReplay
}

func (m *Many) Lookup(context.Context, eventlog.Life, string) (eventlog.KeyRecord, bool, error) {
	return eventlog.KeyRecord{}, false, nil
}
