package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
)

// Logs are what a Reader reads from: a store, and how the registry reads one life of one of its logs.
type Logs interface {
	eventlog.Store
	// Log reads a life page by page.
	Log(l eventlog.Life) registry.Log
	// Set names the registrants of a session.
	Set(h event.Header) string
}

// Reader gives the values of sessions that are not live, without making them live. Reads of one session at one head share the work, which goes on when
// one of them leaves and ends with the last. Safe for concurrent use.
type Reader struct {
	logs  Logs
	rows  eventlog.RowStore
	units *registry.Registry
	o     Options
	ctx   context.Context
	stop  context.CancelFunc
	// wg counts flights and what they write back.
	wg    sync.WaitGroup
	stats ReadStats

	mu      sync.Mutex
	closed  bool
	flights map[string]*flight
}

// ReadStats counts cold reads by the step that answered them, for metrics.
type ReadStats struct {
	// Rows alone, rows and a tail, and folds of at least one unit from init. Unwritten counts results that could not be written back.
	Rows, Tail, Full, Unwritten atomic.Int64
}

// flight is a read that several may wait for.
type flight struct {
	cancel context.CancelFunc
	// waiting is guarded by Reader.mu.
	waiting int
	// block and err are there when done is closed.
	done  chan struct{}
	block registry.Block
	err   error
}

// ErrClosed is what a Reader that was closed says.
var ErrClosed = errors.New("checkpoint: the reader is closed")

// NewReader makes a reader. rows nil keeps none: every read folds from init. Close it before the registry and the store.
func NewReader(logs Logs, rows eventlog.RowStore, units *registry.Registry, o Options) *Reader {
	r := &Reader{logs: logs, rows: rows, units: units, o: o.withDefaults(), flights: map[string]*flight{}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// Stats are live counters.
func (r *Reader) Stats() *ReadStats { return &r.stats }

// Close calls off the reads under way and waits for them.
func (r *Reader) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop()
	r.wg.Wait()
}

// Read gives the values of a session as of its last event: from its rows and the events since, or from the log where a row is of no use. The
// result is written back; nobody waits for that. keys narrows it; none is all. Errors: *eventlog.NotFoundError, ErrClosed, the store's, the
// context's.
func (r *Reader) Read(ctx context.Context, id string, keys ...string) (eventlog.Info, registry.Block, error) {
	set, err := r.load(ctx, id)
	if err != nil {
		return eventlog.Info{}, registry.Block{}, err
	}
	block, err := r.shared(ctx, set, keys)
	return set.Info, block, err
}

// At gives the values right after event seq, −1 for those of the empty log, from the best rows at or below it. Such a block is marked Historical.
// Errors: *registry.SeqRangeError, and those of Read.
func (r *Reader) At(ctx context.Context, id string, seq int64, keys ...string) (eventlog.Info, registry.Block, error) {
	set, err := r.load(ctx, id)
	if err != nil {
		return eventlog.Info{}, registry.Block{}, err
	}
	if seq < -1 || seq >= set.Info.Seq {
		return set.Info, registry.Block{}, &registry.SeqRangeError{Session: id, Seq: seq, Head: set.Info.Seq - 1}
	}
	rows := decode(set, r.o.Logger)
	for key, row := range rows.Rows {
		if row.Seq > seq {
			delete(rows.Rows, key)
		}
	}
	if err := r.addPast(ctx, set.Info, seq, &rows); err != nil {
		return set.Info, registry.Block{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.o.ReadWait)
	defer cancel()
	block, _, err := r.units.RestoreFrom(ctx, r.logs.Set(set.Info.Header), rows, r.logs.Log(lifeOf(set.Info)), seq, keys...)
	block.Historical = true
	return set.Info, block, err
}

// addPast adds the rows that were kept for good and are better than those at hand.
func (r *Reader) addPast(ctx context.Context, info eventlog.Info, seq int64, rows *registry.Rows) error {
	if r.rows == nil {
		return nil
	}
	for _, key := range r.units.Keys(r.logs.Set(info.Header)) {
		past, ok, err := r.rows.PastRow(ctx, lifeOf(info), key, seq)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if row, err := registry.DecodeRow(past.Data); err == nil && row.Seq == past.Seq {
			if have, ok := rows.Rows[key]; !ok || have.Seq < row.Seq {
				rows.Rows[key] = row
			}
		}
	}
	return nil
}

// Item is one session of a list.
type Item struct {
	Info eventlog.Info
	// Block is partial: what rows say, as of the lowest seq among them.
	Block registry.Block
}

// List gives values from rows alone: no log is read and no plugin asked. Sessions that are not there are left out; the others come in the order of
// ids.
func (r *Reader) List(ctx context.Context, ids []string, keys ...string) ([]Item, error) {
	if r.rows == nil {
		return r.bare(ctx, ids)
	}
	sets, err := r.rows.RowsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*eventlog.RowSet, len(sets))
	for i := range sets {
		byID[sets[i].Info.Header.ID] = &sets[i]
	}
	items := make([]Item, 0, len(sets))
	for _, id := range ids {
		if set := byID[id]; set != nil {
			items = append(items, Item{Info: set.Info, Block: r.units.ViewRows(r.logs.Set(set.Info.Header), decode(*set, r.o.Logger), keys...)})
		}
	}
	return items, nil
}

// bare is a list without values.
func (r *Reader) bare(ctx context.Context, ids []string) (items []Item, err error) {
	for _, id := range ids {
		info, err := r.logs.Info(ctx, id)
		var none *eventlog.NotFoundError
		switch {
		case errors.As(err, &none):
		case err != nil:
			return nil, err
		default:
			items = append(items, Item{Info: info, Block: r.units.ViewRows(r.logs.Set(info.Header), registry.Rows{})})
		}
	}
	return items, nil
}

// Rows gives what is stored for a life, empty when that cannot be had: opening a session does not fail for a shortcut.
func (r *Reader) Rows(ctx context.Context, l eventlog.Life) registry.Rows {
	none := registry.Rows{Session: l.ID, Incarnation: l.Incarnation}
	if r.rows == nil {
		return none
	}
	set, err := r.rows.Rows(ctx, l)
	if err != nil {
		r.o.Logger.Warn("the checkpoint rows of a session cannot be read; it folds from its log", "session", l.ID, "error", err)
		return none
	}
	return decode(set, r.o.Logger)
}

// load gives a session with its rows. Rows that cannot be read are none.
func (r *Reader) load(ctx context.Context, id string) (eventlog.RowSet, error) {
	if r.rows != nil {
		set, err := r.rows.Rows(ctx, eventlog.Life{ID: id})
		var none *eventlog.NotFoundError
		if err == nil || errors.As(err, &none) || ctx.Err() != nil {
			return set, err
		}
		r.o.Logger.Warn("the checkpoint rows of a session cannot be read; it folds from its log", "session", id, "error", err)
	}
	info, err := r.logs.Info(ctx, id)
	return eventlog.RowSet{Info: info}, err
}

func lifeOf(info eventlog.Info) eventlog.Life {
	return eventlog.Life{ID: info.Header.ID, Incarnation: info.Incarnation}
}

// shared does the work of a read once for all who ask for the same.
func (r *Reader) shared(ctx context.Context, set eventlog.RowSet, keys []string) (registry.Block, error) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	name := fmt.Sprintf("%s\x00%s\x00%d\x00%s", set.Info.Header.ID, set.Info.Incarnation, set.Info.Seq, strings.Join(keys, "\x00"))
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return registry.Block{}, ErrClosed
	}
	f := r.flights[name]
	if f == nil {
		f = &flight{done: make(chan struct{})}
		var work context.Context
		work, f.cancel = context.WithTimeout(r.ctx, r.o.ReadWait)
		r.flights[name] = f
		r.wg.Go(func() {
			f.block, f.err = r.restore(work, set, keys)
			r.land(name, f)
		})
	}
	f.waiting++
	r.mu.Unlock()
	defer r.leave(name, f)
	select {
	case <-f.done:
		return f.block, f.err
	case <-ctx.Done():
		return registry.Block{}, ctx.Err()
	}
}

// land gives the result to those who wait. Who comes later reads anew.
func (r *Reader) land(name string, f *flight) {
	f.cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flights[name] == f {
		delete(r.flights, name)
	}
	close(f.done)
}

// leave is a caller that has its answer, or goes without. The last one calls off the work, and a later caller begins anew.
func (r *Reader) leave(name string, f *flight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.waiting--; f.waiting == 0 {
		f.cancel()
		if r.flights[name] == f {
			delete(r.flights, name)
		}
	}
}

// restore is the ladder from the rows down. What it found is written back on a goroutine of its own.
func (r *Reader) restore(ctx context.Context, set eventlog.RowSet, keys []string) (registry.Block, error) {
	rows := decode(set, r.o.Logger)
	head := set.Info.Seq - 1
	name := r.logs.Set(set.Info.Header)
	block, fresh, err := r.units.RestoreFrom(ctx, name, rows, r.logs.Log(lifeOf(set.Info)), head, keys...)
	if err != nil {
		return registry.Block{}, fmt.Errorf("read the values of session %q: %w", set.Info.Header.ID, err)
	}
	changed := registry.Rows{Session: fresh.Session, Incarnation: fresh.Incarnation, Rows: map[string]registry.Row{}}
	full := false
	for key, row := range fresh.Rows {
		had, ok := rows.Rows[key]
		full = full || !ok
		if !ok || had.Seq != row.Seq || had.Ver != row.Ver || had.Def != row.Def {
			changed.Rows[key] = row
		}
	}
	switch {
	case full:
		r.stats.Full.Add(1)
	case len(changed.Rows) > 0:
		r.stats.Tail.Add(1)
	default:
		r.stats.Rows.Add(1)
	}
	if len(changed.Rows) > 0 && r.rows != nil {
		r.wg.Go(func() { r.writeBack(lifeOf(set.Info), changed) }) // restore itself runs under wg
	}
	return block, nil
}

func (r *Reader) writeBack(l eventlog.Life, rows registry.Rows) {
	ctx, cancel := context.WithTimeout(r.ctx, r.o.WriteWait)
	defer cancel()
	if err := r.rows.SaveRows(ctx, l, encode(rows)); err != nil && !gone(err) && r.ctx.Err() == nil {
		r.stats.Unwritten.Add(1)
		r.o.Logger.Warn("the result of a cold read was not written back", "session", l.ID, "error", err)
	}
}
