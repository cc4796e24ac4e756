package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
)

// Logs are what a Reader reads from: a store, and how the registry reads one life of one of its logs.
type Logs interface {
	eventlog.Store
	// Log reads a life page by page. Where it is a registry.PastLog, reads of the past begin with what that has.
	Log(l eventlog.Life) registry.Log
	// Set names the registrants of a session.
	Set(h event.Header) string
}

// Reader gives the values of sessions that are not live, without making them live. Reads of one session at one head share the work, which is called off
// when the last of them leaves. One that has waited long enough does not leave: it gets what there is, and the work goes on. Safe for
// concurrent use.
type Reader struct {
	logs  Logs
	units *registry.Registry
	// w is nil when no rows are kept.
	w     *Writer
	o     Options
	ctx   context.Context
	stop  context.CancelFunc
	wg    sync.WaitGroup // flights
	stats ReadStats

	mu      sync.Mutex
	closed  bool
	flights map[string]*flight
	// building counts the flights that go on although nobody waits.
	building int
}

// ReadStats counts cold reads by the step that answered them, for metrics.
type ReadStats struct {
	// Rows alone, rows and a tail, and folds of at least one unit from init. Late counts reads that got less than everything, because that would have
	// taken longer than they wait.
	Rows, Tail, Full, Late atomic.Int64
}

// ErrClosed is what a Reader that was closed says.
var ErrClosed = errors.New("checkpoint: the reader is closed")

// NewReader makes a reader. w writes what it found, to the store that it has its rows from; nil keeps no rows, and every read folds from init. Close it
// before the writer, the registry and the store.
func NewReader(logs Logs, units *registry.Registry, w *Writer, o Options) *Reader {
	r := &Reader{logs: logs, units: units, w: w, o: o.withDefaults(), flights: map[string]*flight{}}
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

// Read gives the values of a session as of its last event: from its rows and the events since, or from the log where a row is of no use. A key that
// is not there after ReadWait is named under Unavailable with how far it has come; the next read finds it further along. The result is written back, and
// nobody waits for that. keys narrows it; none is all. Errors: *eventlog.NotFoundError, ErrClosed, the store's, the context's.
func (r *Reader) Read(ctx context.Context, id string, keys ...string) (eventlog.Info, registry.Block, error) {
	return again(func() (eventlog.Info, registry.Block, error) {
		mark := r.units.Mark(id)
		set, err := r.load(ctx, id)
		if err != nil {
			return eventlog.Info{}, registry.Block{}, err
		}
		block, err := r.shared(ctx, set, keys)
		mark.Stamp(&block)
		return set.Info, block, err
	})
}

// At gives the values right after event seq, −1 for those of the empty log, from the best rows at or below it. Such a block is marked Historical. Only so
// many look into the past at once, and no longer than the registry allows; what did not get there by then is named under Unavailable.
// Errors: *registry.SeqRangeError, *registry.BusyError, and those of Read.
func (r *Reader) At(ctx context.Context, id string, seq int64, keys ...string) (eventlog.Info, registry.Block, error) {
	return again(func() (eventlog.Info, registry.Block, error) {
		set, err := r.load(ctx, id)
		if err != nil {
			return eventlog.Info{}, registry.Block{}, err
		}
		if seq < -1 || seq >= set.Info.Seq {
			return set.Info, registry.Block{}, &registry.SeqRangeError{Session: id, Seq: seq, Head: set.Info.Seq - 1}
		}
		block, err := r.units.SnapshotAt(ctx, r.logs.Set(set.Info.Header), decode(set, r.o.Logger), r.logs.Log(lifeOf(set.Info)), seq, keys...)
		return set.Info, block, err
	})
}

// again reads once more when the session was deleted and made anew during the read.
func again(read func() (eventlog.Info, registry.Block, error)) (eventlog.Info, registry.Block, error) {
	info, block, err := read()
	var other *eventlog.IncarnationError
	for tries := 1; errors.As(err, &other) && tries < 3; tries++ {
		info, block, err = read()
	}
	return info, block, err
}

// Rows gives what is stored for a life, empty when that cannot be had: opening a session does not fail for a shortcut.
func (r *Reader) Rows(ctx context.Context, l eventlog.Life) registry.Rows {
	none := registry.Rows{Session: l.ID, Incarnation: l.Incarnation}
	if r.w == nil {
		return none
	}
	set, err := r.w.rows.Rows(ctx, l)
	if err != nil {
		r.unread(l.ID, err)
		return none
	}
	return decode(set, r.o.Logger)
}

// load gives a session with its rows. Rows that cannot be read are none.
func (r *Reader) load(ctx context.Context, id string) (eventlog.RowSet, error) {
	if r.w != nil {
		set, err := r.w.rows.Rows(ctx, eventlog.Life{ID: id})
		var none *eventlog.NotFoundError
		if err == nil || errors.As(err, &none) || ctx.Err() != nil {
			return set, err
		}
		r.unread(id, err)
	}
	info, err := r.logs.Info(ctx, id)
	if err != nil {
		return eventlog.RowSet{}, fmt.Errorf("read session %q: %w", id, err)
	}
	return eventlog.RowSet{Info: info}, nil
}

func (r *Reader) unread(id string, err error) {
	r.o.Logger.Warn("the checkpoint rows of a session cannot be read: it folds from its log", "session", id, "error", err)
}

func lifeOf(info eventlog.Info) eventlog.Life {
	return eventlog.Life{ID: info.Header.ID, Incarnation: info.Incarnation}
}
