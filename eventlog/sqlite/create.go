package sqlite

import (
	"context"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/internal/paging"
	"github.com/foldhost/foldhost/internal/crashpoint"
)

// stagePage is how many events a staged creation commits at once: each commit is a sync, and 2,000 events keep the writer for some tens of milliseconds.
const stagePage = 2000

// Create implements eventlog.Store. Events are pulled with nothing held, so that they may be read from this store.
func (s *Store) Create(ctx context.Context, c eventlog.Creation) (info eventlog.Info, err error) {
	if err := s.enter(ctx); err != nil {
		return eventlog.Info{}, err
	}
	defer s.leave()
	if c.Header.ID == "" {
		return eventlog.Info{}, &eventlog.InvalidError{Reason: "a log needs an id: set Creation.Header.ID"}
	}
	m := making{s: s, ctx: ctx, log: log{
		id: c.Header.ID, incarnation: paging.Incarnation(), header: c.Header.AppendJSON(nil), firstLive: c.FirstLiveSeq,
	}, key: c.Key}
	if _, err := event.DecodeHeader(m.log.header); err != nil {
		return eventlog.Info{}, &eventlog.InvalidError{Reason: "the header could not be read again: " + err.Error()}
	}
	if err := m.free(); err != nil {
		return eventlog.Info{}, err
	}
	defer m.abandon()
	if c.Events != nil {
		for ev, err := range c.Events {
			if err == nil {
				err = m.add(ev)
			}
			if err != nil {
				return eventlog.Info{}, err
			}
		}
	}
	if c.Key != "" {
		m.digest = c.Digest()
	}
	if err := m.finish(); err != nil {
		return eventlog.Info{}, err
	}
	info, err = m.log.info()
	info.Header = c.Header
	return info, err
}

// making is a creation under way.
type making struct {
	s   *Store
	ctx context.Context
	// log has its number, and n is that of its events that are stored, once it is staged.
	log    log
	staged bool
	stored int64
	// page holds events that are not stored yet.
	page []event.Event
	size int
	// key is empty for none.
	key, digest string
}

// free says whether the id could be taken now.
func (m *making) free() error {
	if err := m.s.Failed(); err != nil {
		return err
	}
	return m.s.readers.read(m.ctx, func(r *reader) error {
		_, err := r.find(eventlog.Life{ID: m.log.id})
		switch err.(type) {
		case *eventlog.NotFoundError:
			return nil
		case nil, *eventlog.CorruptError:
			return &eventlog.ExistsError{ID: m.log.id}
		}
		return err
	})
}

// add takes the next event. A page that is full is stored, where nobody sees it.
func (m *making) add(ev event.Event) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	if want := m.stored + int64(len(m.page)); ev.Seq != want {
		return paging.OutOfRow(ev.Seq, want)
	}
	if err := checkSize(&ev); err != nil {
		return err
	}
	if len(m.page) == stagePage || m.size+paging.Size(&ev) > paging.Bytes {
		if err := m.stage(); err != nil {
			return err
		}
	}
	m.page = append(m.page, ev)
	m.size += paging.Size(&ev)
	return nil
}

// stage stores the page. Until the creation is finished the log stands in the trash, so that nothing is left of it when it never is.
func (m *making) stage() error {
	if len(m.page) == 0 {
		return nil
	}
	n := m.log.n
	err := m.s.change(m.ctx, m.size, func(w *writer) (err error) {
		if n = m.log.n; n == 0 {
			if n, err = w.newLog(); err != nil {
				return err
			}
			if err := run(w.st.addTrash, n); err != nil {
				return err
			}
		}
		crashpoint.Reach("create/stage")
		return w.addAll(n, m.page)
	})
	if err != nil {
		return err
	}
	m.log.n, m.staged = n, true
	m.stored += int64(len(m.page))
	m.page, m.size = m.page[:0], 0
	return nil
}

// finish makes the log with the events that are not stored yet.
func (m *making) finish() error {
	made := m.log
	err := m.s.change(m.ctx, m.size, func(w *writer) (err error) {
		made, err = w.create(m)
		return err
	})
	if err == nil {
		m.log, m.staged = made, false
	}
	return err
}

// abandon gives what was stored to the sweep, unless it has become a log.
func (m *making) abandon() {
	if m.staged {
		w := m.s.writer
		w.mu.Lock()
		defer w.mu.Unlock()
		w.abandoned = append(w.abandoned, m.log.n)
		w.ring()
	}
}

func (w *writer) create(m *making) (log, error) {
	l := m.log
	switch _, err := w.head(l.id); err.(type) {
	case *eventlog.NotFoundError:
	case nil, *eventlog.CorruptError:
		return log{}, &eventlog.ExistsError{ID: l.id}
	default:
		return log{}, err
	}
	var err error
	if !m.staged {
		if l.n, err = w.newLog(); err != nil {
			return log{}, err
		}
	}
	if err := w.addAll(l.n, m.page); err != nil {
		return log{}, err
	}
	l.seq = m.stored + int64(len(m.page))
	if m.staged {
		// All its events get positions now, in a row, however long ago they were stored.
		w.position += l.seq
		if err := run(w.st.addBulk, w.position, l.n, l.seq); err != nil {
			return log{}, err
		}
		if err := run(w.st.dropTrash, l.n); err != nil {
			return log{}, err
		}
	} else if l.seq == 0 {
		w.position++
	}
	crashpoint.Reach("create/log")
	l.position, l.updated = w.position, w.now
	if err := run(w.st.addLog, l.n, l.id, l.incarnation, l.header, l.firstLive, logSum(l.n, l.id, l.incarnation, l.header, l.firstLive)); err != nil {
		return log{}, err
	}
	if err := run(w.st.addHead, l.n, l.seq, l.position, l.updated, headSum(l.n, l.seq, l.position, l.updated)); err != nil {
		return log{}, err
	}
	if err := w.keep(l.n, m.key, m.digest, "", eventlog.Commit{Seq: l.seq, Position: l.position, Time: l.updated}); err != nil {
		return log{}, err
	}
	w.grown.logs++
	w.grown.events += l.seq
	small := l
	small.header = nil
	w.remember(&small)
	return l, nil
}

// newLog gives the number of a log, which no other log will ever have.
func (w *writer) newLog() (int64, error) {
	w.lastLog++
	return w.lastLog, run(w.st.meta, metaLog, w.lastLog)
}

func (w *writer) addAll(log int64, events []event.Event) error {
	for i := range events {
		if err := w.add(log, &events[i]); err != nil {
			return err
		}
	}
	return nil
}
