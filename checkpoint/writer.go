package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/internal/crashpoint"
	"github.com/foldhost/foldhost/registry"
)

// Writer writes rows: those of live sessions when they are due, which it takes from their Tracks, and those that it is handed, of sessions that go
// cold and of cold reads. What it is asked for stands in a queue by life of a log, each once, so the writes of one life come one at a time and in
// order; several workers take different lives. What waits is bounded: a life that is due is only its name, and of what is handed over
// maxBacklog bytes are kept at most.
//
// mu guards the queue and the lines. It is not held across a call.
type Writer struct {
	rows eventlog.RowStore
	o    Options
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu sync.Mutex
	// wake says that the queue grew or that the writer closes.
	wake    *sync.Cond
	lines   map[eventlog.Life]*line
	tracks  map[*Track]struct{}
	queue   []*line
	backlog int
	// dropping says that it was logged that the backlog is full.
	dropping bool
	closing  bool

	stats WriteStats
}

// WriteStats counts writes, for metrics.
type WriteStats struct {
	// Written counts rows, Past those that were kept for reads of the past beside them, Writes the writes they were in. Failed counts writes that
	// failed, and rows that could not be taken; Dropped what was handed over when too much was waiting.
	Written, Past, Writes, Failed, Dropped atomic.Int64
}

// maxBacklog is what may wait to be written: the rows of some ten thousand sessions that go cold at once. A store that hangs must not grow the host.
const maxBacklog = 64 << 20

// line is what is to be written of one life of a log. It is in Writer.lines while there is something, or while it is written.
type line struct {
	life eventlog.Life
	// due is the live session whose rows are to be taken; rows were handed over, the newest of each key, and past for good.
	due  *Track
	rows map[string]eventlog.Row
	past []eventlog.Row
	size int
	// since is when the oldest of what is in rows and past happened, writing the same of what is being written; zero for none.
	since, writing time.Time

	queued bool
	busy   bool
}

// NewWriter starts the workers. Close it.
func NewWriter(rows eventlog.RowStore, o Options) *Writer {
	w := &Writer{rows: rows, o: o.withDefaults(), lines: map[eventlog.Life]*line{}, tracks: map[*Track]struct{}{}}
	w.wake = sync.NewCond(&w.mu)
	w.ctx, w.stop = context.WithCancel(context.Background())
	for range w.o.Writers {
		w.wg.Go(w.work)
	}
	return w
}

// Stats are live counters.
func (w *Writer) Stats() *WriteStats { return &w.stats }

// Close writes what is waiting, for WriteWait at most, and stops the workers. End the tracks first, and hand nothing over any more.
func (w *Writer) Close() {
	w.mu.Lock()
	w.closing = true
	w.wake.Broadcast()
	w.mu.Unlock()
	patience := time.AfterFunc(w.o.WriteWait, w.stop)
	w.wg.Wait()
	patience.Stop()
	w.stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.queue); n > 0 {
		w.stats.Failed.Add(int64(n))
		w.o.Logger.Warn("checkpoint rows were not written, there was no time left: the next reads fold more", "sessions", n)
	}
}

// Put hands rows over: they are written soon, and nobody waits. Rows of a key that wait already are replaced by those of a newer cut. Rows with nothing
// in them are none.
func (w *Writer) Put(life eventlog.Life, rows registry.Rows) {
	if len(rows.Rows) > 0 {
		w.put(life, encode(rows.Rows, rows.Cut), nil, time.Time{})
	}
}

// put is Put for encoded rows, with rows that are to be kept for good. since is when the first event came that they cover and no row before them does; zero is now.
func (w *Writer) put(life eventlog.Life, rows, past []eventlog.Row, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if full := w.backlog+bytesOf(rows)+bytesOf(past) > maxBacklog; w.closing || full {
		w.stats.Dropped.Add(1)
		if full && !w.dropping {
			w.o.Logger.Warn("checkpoint rows are dropped, the store does not take them fast enough: the next reads fold more", "waiting", len(w.queue))
		}
		w.dropping = full
		return
	}
	w.dropping = false
	l := w.line(life)
	if l.rows == nil {
		l.rows = make(map[string]eventlog.Row, len(rows))
	}
	grown := newest(l.rows, rows) + bytesOf(past)
	l.past = append(l.past, past...)
	if since.IsZero() {
		since = time.Now()
	}
	l.since = earlier(l.since, since)
	l.size += grown
	w.backlog += grown
	w.enqueue(l)
}

// newest adds rows to others, of each key that of the newer cut, and gives by how many bytes they grew.
func newest(rows map[string]eventlog.Row, more []eventlog.Row) (grown int) {
	for _, r := range more {
		if have, ok := rows[r.Key]; !ok || have.Cut <= r.Cut {
			grown += len(r.Data) - len(have.Data)
			rows[r.Key] = r
		}
	}
	return grown
}

func bytesOf(rows []eventlog.Row) (n int) {
	for i := range rows {
		n += len(rows[i].Data)
	}
	return n
}

// ask is a track whose rows are due.
func (w *Writer) ask(t *Track) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.line(t.life)
	l.due = t
	w.enqueue(l)
}

// forget drops what waits for a life that was deleted. A write under way finds out by itself.
func (w *Writer) forget(life eventlog.Life) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.lines[life]; l != nil {
		w.empty(l)
	}
}

// line gives that of a life, a new one if need be. mu is held.
func (w *Writer) line(life eventlog.Life) *line {
	l := w.lines[life]
	if l == nil {
		l = &line{life: life}
		w.lines[life] = l
	}
	return l
}

// enqueue puts a line at the end unless it stands there, or is being written: then it comes when that has ended. mu is held.
func (w *Writer) enqueue(l *line) {
	if l.queued || l.busy {
		return
	}
	l.queued = true
	w.queue = append(w.queue, l)
	w.wake.Signal()
}

// empty takes what a line has to write. mu is held.
func (w *Writer) empty(l *line) (due *Track, rows map[string]eventlog.Row, past []eventlog.Row) {
	due, rows, past = l.due, l.rows, l.past
	w.backlog -= l.size
	l.due, l.rows, l.past, l.size, l.since = nil, nil, nil, 0, time.Time{}
	return due, rows, past
}

func (w *Writer) work() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.queue) == 0 && !w.closing {
			w.wake.Wait()
		}
		if len(w.queue) == 0 || w.ctx.Err() != nil {
			return
		}
		l := w.queue[0]
		w.queue = w.queue[1:]
		l.queued, l.busy = false, true
		l.writing = l.since
		due, rows, past := w.empty(l)
		w.mu.Unlock()
		w.write(l.life, due, rows, past)
		w.mu.Lock()
		l.busy = false
		l.writing = time.Time{}
		if l.due != nil || len(l.rows) > 0 || len(l.past) > 0 {
			w.enqueue(l)
		} else {
			delete(w.lines, l.life)
		}
	}
}

// write writes rows that were handed over together with those that are due.
func (w *Writer) write(life eventlog.Life, due *Track, rows map[string]eventlog.Row, past []eventlog.Row) {
	ctx, cancel := context.WithTimeout(w.ctx, w.o.WriteWait)
	defer cancel()
	if due == nil {
		w.failed(life, w.store(ctx, life, rows, past))
		return
	}
	taken, err := due.take(ctx)
	if taken != nil && err == nil {
		if rows == nil {
			rows = make(map[string]eventlog.Row, len(taken.Rows))
		}
		newest(rows, encode(taken.Rows, taken.Cut))
	}
	err = errors.Join(err, w.store(ctx, life, rows, past))
	w.failed(life, err)
	due.wrote(err)
}

// store writes rows and keeps those that are due for reads of the past.
func (w *Writer) store(ctx context.Context, life eventlog.Life, rows map[string]eventlog.Row, past []eventlog.Row) error {
	if len(rows) == 0 && len(past) == 0 {
		return nil
	}
	all := slices.Collect(maps.Values(rows))
	crashpoint.Reach("checkpoint/rows")
	if err := w.rows.SaveRows(ctx, life, all); err != nil {
		return gone(err)
	}
	w.stats.Writes.Add(1)
	w.stats.Written.Add(int64(len(all)))
	for i := range all {
		keep, err := w.worthKeeping(ctx, life, &all[i])
		if err != nil {
			return gone(err)
		}
		if keep && !slices.ContainsFunc(past, func(r eventlog.Row) bool { return r.Key == all[i].Key && r.Seq == all[i].Seq }) {
			past = append(past, all[i])
		}
	}
	if len(past) == 0 {
		return nil
	}
	crashpoint.Reach("checkpoint/past")
	err := w.rows.SavePast(ctx, life, past)
	if err == nil {
		w.stats.Past.Add(int64(len(past)))
	}
	return gone(err)
}

// worthKeeping says whether a row is so far from the one kept before it that reads of the past would miss it.
func (w *Writer) worthKeeping(ctx context.Context, life eventlog.Life, r *eventlog.Row) (bool, error) {
	if r.Seq+1 < w.o.PastEvery {
		return false, nil // init is as near
	}
	last, ok, err := w.rows.PastRow(ctx, life, r.Key, r.Seq)
	if err != nil || !ok || r.Seq-last.Seq >= w.o.PastEvery {
		return err == nil, err
	}
	return !alike(r, &last), nil
}

// alike says whether two rows of a key were made by the same definition: one that was not is of no use beside the other. Version and digest come first in
// a row, so the states are not read for this.
func alike(a, b *eventlog.Row) bool {
	x, _, _ := bytes.Cut(a.Data[min(sumDigits, len(a.Data)):], []byte(`,"seq":`))
	y, _, _ := bytes.Cut(b.Data[min(sumDigits, len(b.Data)):], []byte(`,"seq":`))
	return bytes.Equal(x, y)
}

// gone makes no error of one that is nobody's fault: the session is no more what it was.
func gone(err error) error {
	var none *eventlog.NotFoundError
	var other *eventlog.IncarnationError
	if errors.As(err, &none) || errors.As(err, &other) {
		return nil
	}
	return err
}

// failed counts and logs what could not be written; nil is nothing.
func (w *Writer) failed(life eventlog.Life, err error) {
	if err == nil {
		return
	}
	w.stats.Failed.Add(1)
	w.o.Logger.Warn("checkpoint rows were not written: the events are safe, and the next write covers them", "session", life.ID, "error", err)
}
