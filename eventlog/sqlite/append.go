package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/internal/paging"
	"github.com/foldhost/foldhost/internal/crashpoint"
)

// eventMax is what this store can hold in one event: 256 MiB, far above what a session takes and far below what the engine breaks at.
const eventMax = 256 << 20

var _ eventlog.Grouper = (*Store)(nil)

// Append implements eventlog.Store.
func (s *Store) Append(ctx context.Context, b eventlog.Batch) (commit eventlog.Commit, err error) {
	if err := s.enter(ctx); err != nil {
		return eventlog.Commit{}, err
	}
	defer s.leave()
	if err := paging.CheckBatch(&b); err != nil {
		return eventlog.Commit{}, err
	}
	size := 0
	for i := range b.Events {
		if err := checkSize(&b.Events[i]); err != nil {
			return eventlog.Commit{}, err
		}
		size += paging.Size(&b.Events[i])
	}
	size += len(b.Answer)
	err = s.change(ctx, size, func(w *writer) (err error) {
		commit, err = w.append(&b)
		return err
	})
	if err != nil {
		return eventlog.Commit{}, err
	}
	return commit, nil
}

// AppendGroup implements eventlog.Grouper.
func (s *Store) AppendGroup(ctx context.Context, batches []eventlog.Batch) (commits []eventlog.Commit, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	if err := paging.CheckGroup(batches); err != nil {
		return nil, err
	}
	size := 0
	for i := range batches {
		size += len(batches[i].Answer)
		for k := range batches[i].Events {
			if err := checkSize(&batches[i].Events[k]); err != nil {
				return nil, &eventlog.GroupError{Index: i, Err: err}
			}
			size += paging.Size(&batches[i].Events[k])
		}
	}
	err = s.change(ctx, size, func(w *writer) (err error) {
		commits, err = w.appendGroup(batches)
		return err
	})
	if err != nil {
		return nil, err
	}
	return commits, nil
}

// appendGroup asks for every batch whether it would be refused before it writes the first.
func (w *writer) appendGroup(batches []eventlog.Batch) ([]eventlog.Commit, error) {
	first := &batches[0]
	l, err := w.head(first.Life.ID)
	if err == nil {
		err = l.is(first.Life)
	}
	if err == nil && first.Events[0].Seq != l.seq {
		err = &eventlog.SeqConflictError{ID: first.Life.ID, Seq: l.seq, Expected: first.Events[0].Seq}
	}
	if isDB(err) {
		return nil, err
	}
	if err != nil {
		return nil, &eventlog.GroupError{Err: err}
	}
	for i := range batches {
		b := &batches[i]
		if b.Key == "" {
			continue
		}
		k, known, err := findKey(w.st.key, l.n, b.Key)
		if err != nil {
			return nil, err
		}
		if known && k.Digest != b.Digest {
			return nil, &eventlog.GroupError{Index: i, Err: &eventlog.KeyReusedError{ID: b.Life.ID, Key: b.Key}}
		}
		if known {
			return nil, &eventlog.GroupError{Index: i, Err: eventlog.ErrKeyKnown}
		}
	}
	commits := make([]eventlog.Commit, len(batches))
	for i := range batches {
		if commits[i], err = w.append(&batches[i]); err != nil {
			return nil, err
		}
	}
	return commits, nil
}

func checkSize(ev *event.Event) error {
	if size := paging.Size(ev); size > eventMax {
		return &eventlog.InvalidError{Reason: fmt.Sprintf("event %d takes %d bytes and this store holds events of up to %d", ev.Seq, size, eventMax)}
	}
	return nil
}

func (w *writer) append(b *eventlog.Batch) (eventlog.Commit, error) {
	l, err := w.head(b.Life.ID)
	if err != nil {
		return eventlog.Commit{}, err
	}
	if err := l.is(b.Life); err != nil {
		return eventlog.Commit{}, err
	}
	if b.Key != "" {
		k, known, err := findKey(w.st.key, l.n, b.Key)
		if err != nil {
			return eventlog.Commit{}, err
		}
		if known {
			if k.Digest != b.Digest {
				return eventlog.Commit{}, &eventlog.KeyReusedError{ID: b.Life.ID, Key: b.Key}
			}
			k.Commit.Repeated = true
			return k.Commit, nil
		}
	}
	if len(b.Events) == 0 {
		c := eventlog.Commit{First: l.seq, Seq: l.seq, Position: l.position, Time: w.now}
		return c, w.keep(l.n, b.Key, b.Digest, b.Answer, c)
	}
	if b.Events[0].Seq != l.seq {
		return eventlog.Commit{}, &eventlog.SeqConflictError{ID: b.Life.ID, Seq: l.seq, Expected: b.Events[0].Seq}
	}
	for i := range b.Events {
		if err := w.add(l.n, &b.Events[i]); err != nil {
			return eventlog.Commit{}, err
		}
		crashpoint.Reach("append/event")
	}
	c := eventlog.Commit{First: l.seq, Seq: l.seq + int64(len(b.Events)), Position: w.position, Time: w.now}
	if err := w.keep(l.n, b.Key, b.Digest, b.Answer, c); err != nil {
		return eventlog.Commit{}, err
	}
	return c, w.advance(l, c.Seq)
}

// keep keeps a commit under its key, where it has one.
func (w *writer) keep(log int64, key, digest, answer string, c eventlog.Commit) error {
	if key == "" {
		return nil
	}
	var kept []byte // nil is NULL
	if answer != "" {
		kept = blob(answer)
	}
	if err := run(w.st.addKey, log, blob(key), blob(digest), c.First, c.Seq, c.Position, c.Time, kept); err != nil {
		return err
	}
	if rand.IntN(forgetEvery) > len(answer)/forgetFor {
		return nil
	}
	return w.forget(log)
}

// forgetEvery is after how many keys of a log some are forgotten, on the average: a count of its own for each log would have to be kept somewhere. So many more than there
// need be are a log's for a while. Where they have answers it is sooner: each time that some 4 MiB have come, as forgetFor says.
const (
	forgetEvery = 256
	forgetFor   = 4 << 20 / forgetEvery
)

// forget takes keys of a log that are old enough away, the oldest first and more than come meanwhile, but not so many that anybody waits for it.
func (w *writer) forget(log int64) error {
	before, kept := w.now-paging.KeyTime.Milliseconds(), int64(paging.Keys-1)
	most, err := within(w.st.oldSizes, 2*forgetEvery, 2*forgetEvery*forgetFor, log, before, kept)
	if err != nil {
		return err
	}
	return run(w.st.oldKeys, log, before, kept, most)
}
