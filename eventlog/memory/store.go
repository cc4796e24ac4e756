// Package memory is the store that keeps logs in memory: for tests, for programs that want sessions and no disk, and as the
// plainest reading of what eventlog.Store promises.
//
// It never copies or looks into an event's data: what it is given it keeps and hands out again, so neither side may write
// to it. What it returns stays valid whatever happens to the log later.
//
// Three locks guard it, always taken in this order and never across I/O or a caller's code:
//
//   - Store.mu guards the set of logs and whether the store is closed. Every call holds it shared for its whole length, so a
//     create, delete or close, which hold it alone, meet no call half done.
//   - log.mu guards the events of one log, its index and its idempotency keys.
//   - order.mu guards commit positions and what they order. It is held for a few stores per commit.
package memory

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/internal/paging"
)

// 1,000 spans: each has an event, so an unfiltered page of a tail needs no more. They are copied under the order's lock, 40 KiB.
const tailSpans = paging.Events

// Store implements eventlog.Store. The zero Store is not ready; use New.
type Store struct {
	identity eventlog.Identity

	mu     sync.RWMutex
	closed bool
	logs   map[string]*log

	order order
}

var (
	_ eventlog.Store   = (*Store)(nil)
	_ eventlog.Grouper = (*Store)(nil)
)

// New returns an empty store with an identity of its own.
func New() *Store {
	return &Store{
		identity: eventlog.Identity{StoreID: rand.Text(), Boot: 1},
		logs:     make(map[string]*log),
	}
}

// Identity implements eventlog.Store. Nothing in memory outlives its process, so Boot is always 1.
func (s *Store) Identity() eventlog.Identity { return s.identity }

// Create implements eventlog.Store. Events are pulled with no lock held.
func (s *Store) Create(ctx context.Context, c eventlog.Creation) (eventlog.Info, error) {
	if c.Header.ID == "" {
		return eventlog.Info{}, &eventlog.InvalidError{Reason: "a log needs an id: set Creation.Header.ID"}
	}
	if err := s.free(ctx, c.Header.ID); err != nil {
		return eventlog.Info{}, err
	}
	l := &log{header: c.Header, incarnation: paging.Incarnation(), firstLiveSeq: c.FirstLiveSeq}
	if c.Events != nil {
		for ev, err := range c.Events {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil && ev.Seq != l.events.len() {
				err = paging.OutOfRow(ev.Seq, l.events.len())
			}
			if err != nil {
				return eventlog.Info{}, err
			}
			l.add(ev)
		}
	}
	digest := ""
	if c.Key != "" {
		digest = c.Digest()
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return eventlog.Info{}, err
	}
	if s.logs[c.Header.ID] != nil {
		return eventlog.Info{}, &eventlog.ExistsError{ID: c.Header.ID}
	}
	s.logs[c.Header.ID] = l
	commit := eventlog.Commit{Seq: l.events.len(), Time: time.Now().UnixMilli()}
	commit.Position = s.order.commit(l, 0, commit.Seq, commit.Time)
	if commit.Seq > 0 {
		l.placed(0, commit.Position-commit.Seq+1)
	}
	l.keep(c.Key, digest, "", commit)
	return s.order.info(l), nil
}

// Append implements eventlog.Store.
func (s *Store) Append(ctx context.Context, b eventlog.Batch) (eventlog.Commit, error) {
	if err := paging.CheckBatch(&b); err != nil {
		return eventlog.Commit{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	l, err := s.find(ctx, b.Life)
	if err != nil {
		return eventlog.Commit{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b.Key != "" {
		if k, ok := l.keys[b.Key]; ok {
			if k.Digest != b.Digest {
				return eventlog.Commit{}, &eventlog.KeyReusedError{ID: b.Life.ID, Key: b.Key}
			}
			k.Commit.Repeated = true
			return k.Commit, nil
		}
	}
	first := l.events.len()
	if len(b.Events) == 0 {
		commit := eventlog.Commit{First: first, Seq: first, Position: s.order.info(l).Position, Time: time.Now().UnixMilli()}
		l.keep(b.Key, b.Digest, b.Answer, commit)
		return commit, nil
	}
	if b.Events[0].Seq != first {
		return eventlog.Commit{}, &eventlog.SeqConflictError{ID: b.Life.ID, Seq: first, Expected: b.Events[0].Seq}
	}
	// Again, because the wait for the log may have been long. From here on nothing fails.
	if err := ctx.Err(); err != nil {
		return eventlog.Commit{}, err
	}
	return s.commit(l, &b), nil
}

// AppendGroup implements eventlog.Grouper.
func (s *Store) AppendGroup(ctx context.Context, batches []eventlog.Batch) ([]eventlog.Commit, error) {
	if err := paging.CheckGroup(batches); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	first := &batches[0]
	l, err := s.find(ctx, first.Life)
	if err != nil {
		return nil, &eventlog.GroupError{Err: err}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq := l.events.len(); first.Events[0].Seq != seq {
		return nil, &eventlog.GroupError{Err: &eventlog.SeqConflictError{ID: first.Life.ID, Seq: seq, Expected: first.Events[0].Seq}}
	}
	for i := range batches {
		b := &batches[i]
		if k, known := l.keys[b.Key]; known && k.Digest != b.Digest {
			return nil, &eventlog.GroupError{Index: i, Err: &eventlog.KeyReusedError{ID: b.Life.ID, Key: b.Key}}
		} else if known {
			return nil, &eventlog.GroupError{Index: i, Err: eventlog.ErrKeyKnown}
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	commits := make([]eventlog.Commit, len(batches))
	for i := range batches {
		commits[i] = s.commit(l, &batches[i])
	}
	return commits, nil
}

// commit adds a batch that fits. l.mu is held.
func (s *Store) commit(l *log, b *eventlog.Batch) eventlog.Commit {
	commit := eventlog.Commit{First: l.events.len(), Time: time.Now().UnixMilli()}
	for i := range b.Events {
		l.add(b.Events[i])
	}
	commit.Seq = l.events.len()
	commit.Position = s.order.commit(l, commit.First, commit.Seq, commit.Time)
	l.placed(commit.First, commit.Position-(commit.Seq-commit.First)+1)
	l.keep(b.Key, b.Digest, b.Answer, commit)
	return commit
}

// Info implements eventlog.Store.
func (s *Store) Info(ctx context.Context, id string) (eventlog.Info, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	l, err := s.find(ctx, eventlog.Life{ID: id})
	if err != nil {
		return eventlog.Info{}, err
	}
	return s.order.info(l), nil
}

// Lookup implements eventlog.Store.
func (s *Store) Lookup(ctx context.Context, life eventlog.Life, key string) (eventlog.KeyRecord, bool, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	l, err := s.find(ctx, life)
	if err != nil {
		return eventlog.KeyRecord{}, false, err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	k, ok := l.keys[key]
	return k, ok, nil
}

// Delete implements eventlog.Store.
func (s *Store) Delete(ctx context.Context, life eventlog.Life) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.find(ctx, life)
	if err != nil {
		return err
	}
	delete(s.logs, life.ID)
	s.order.remove(l)
	// The commit order may still point at the log for a while; its events go now.
	l.events, l.runs, l.byType, l.keys, l.keyOrder, l.rows = chunks[event.Event]{}, nil, nil, nil, nil, rows{}
	return nil
}

// Close implements eventlog.Store. It waits for the calls under way, and a second one gives ErrClosed.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return eventlog.ErrClosed
	}
	s.closed, s.logs = true, nil
	s.order.reset()
	return nil
}

// free says whether a log with this id could be created now.
func (s *Store) free(ctx context.Context, id string) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	if s.logs[id] != nil {
		return &eventlog.ExistsError{ID: id}
	}
	return nil
}

// usable needs s.mu.
func (s *Store) usable(ctx context.Context) error {
	if s.closed {
		return eventlog.ErrClosed
	}
	return ctx.Err()
}

// find needs s.mu.
func (s *Store) find(ctx context.Context, life eventlog.Life) (*log, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	l := s.logs[life.ID]
	if l == nil {
		return nil, &eventlog.NotFoundError{ID: life.ID}
	}
	if life.Incarnation != "" && life.Incarnation != l.incarnation {
		return nil, &eventlog.IncarnationError{ID: life.ID, Have: l.incarnation, Want: life.Incarnation}
	}
	return l, nil
}
