package checkpoint

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
)

// Options of a cache. The zero value is usable.
type Options struct {
	Policy Policy
	// Logger gets failed writes and rows that are not used; nil is slog.Default.
	Logger *slog.Logger
	// Writers is how many sessions are written at once; 0 is 4.
	Writers int
	// WriteWait bounds one write, the asking of plugins included; 0 is 10 s. DetachWait bounds the last write of a session that goes cold, for
	// which touches of that session wait; 0 is 2 s.
	WriteWait, DetachWait time.Duration
	// PastEvery is the least distance of the rows kept for reads of the past, in events of the log; 0 is 10,000.
	PastEvery int64
	// ReadWait bounds one cold read, which its callers share; 0 is 30 s.
	ReadWait time.Duration
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Policy = o.Policy.withDefaults()
	def(&o.Writers, 4)
	def(&o.WriteWait, 10*time.Second)
	def(&o.DetachWait, 2*time.Second)
	def(&o.PastEvery, 10_000)
	def(&o.ReadWait, 30*time.Second)
	return o
}

func def[N int | int64 | time.Duration](n *N, is N) {
	if *n <= 0 {
		*n = is
	}
}

// Source is a live session as the registry knows it: a *registry.Session.
type Source interface {
	// Checkpoint gives a row per unit at one cut.
	Checkpoint(ctx context.Context) (registry.Rows, error)
	// Folded counts the events since it became live that some unit folds.
	Folded() int64
}

// Writer writes the rows of live sessions. Its workers take sessions from a queue in which each stands once at most, so what waits is bounded
// by the number of live sessions.
//
// mu guards the queue. Each Track has a mutex of its own for what is pending, and a token for writing; they are taken in the order token, mu, and neither
// Writer.mu nor Track.mu is held across a call.
type Writer struct {
	rows eventlog.RowStore
	o    Options
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu    sync.Mutex
	queue []*Track
	ring  chan struct{} // one place: there is something in the queue

	stats Stats
}

// Stats counts writes, for metrics.
type Stats struct {
	// Written counts rows, Writes the writes they were in, Failed the writes that were not.
	Written, Writes, Failed atomic.Int64
}

// NewWriter starts the workers. Close it.
func NewWriter(rows eventlog.RowStore, o Options) *Writer {
	w := &Writer{rows: rows, o: o.withDefaults(), ring: make(chan struct{}, 1)}
	w.ctx, w.stop = context.WithCancel(context.Background())
	for range w.o.Writers {
		w.wg.Go(w.work)
	}
	return w
}

// Stats are live counters.
func (w *Writer) Stats() *Stats { return &w.stats }

// Close stops the workers and waits for them. Sessions that are still tracked are not written; end them first.
func (w *Writer) Close() {
	w.stop()
	w.wg.Wait()
}

// Track is one live session that is written from time to time. Committed is called by the session's owner, one call at a time.
type Track struct {
	w    *Writer
	src  Source
	life eventlog.Life
	// turn has one place: whoever has it writes.
	turn chan struct{}

	mu      sync.Mutex
	pending Pending
	// folded is what Folded said when pending was last looked at.
	folded        int64
	queued, ended bool
	timer         *time.Timer

	// past is the cut of the last rows kept for good, once known; whoever has the turn may touch it.
	past      int64
	pastKnown bool
}

// Track begins to look after a session. End it.
func (w *Writer) Track(life eventlog.Life, src Source) *Track {
	return &Track{w: w, src: src, life: life, turn: make(chan struct{}, 1)}
}

// Committed takes note of events after they were published. It waits for nothing; with events that no unit folds it does nothing.
func (t *Track) Committed(events []event.Event) {
	folded := t.src.Folded()
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := folded - t.folded; n > 0 {
		if t.pending.Events == 0 {
			t.pending.Since = time.Now()
		}
		t.pending.Events += int(n)
		t.folded = folded
	}
	if t.pending.Events == 0 || t.ended {
		return
	}
	for i := range events {
		t.pending.TurnEnded = t.pending.TurnEnded || events[i].Type == event.TurnEnd
	}
	t.look()
}

// look queues the session when its rows are due, or arms the timer. mu is held.
func (t *Track) look() {
	if t.queued || t.ended {
		return
	}
	due, again := t.w.o.Policy.Due(t.pending, time.Now())
	switch {
	case due:
		t.queued = true
		t.w.enqueue(t)
	case again > 0 && t.timer == nil:
		// The callback only queues, so nobody has to wait for it.
		t.timer = time.AfterFunc(again, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.timer = nil
			t.look()
		})
	}
}

func (w *Writer) enqueue(t *Track) {
	w.mu.Lock()
	w.queue = append(w.queue, t)
	w.mu.Unlock()
	select {
	case w.ring <- struct{}{}:
	default:
	}
}

func (w *Writer) work() {
	for {
		w.mu.Lock()
		var t *Track
		if len(w.queue) > 0 {
			t, w.queue = w.queue[0], w.queue[1:]
		}
		more := len(w.queue) > 0
		w.mu.Unlock()
		if more {
			select {
			case w.ring <- struct{}{}: // another worker may help
			default:
			}
		}
		if t == nil {
			select {
			case <-w.ring:
				continue
			case <-w.ctx.Done():
				return
			}
		}
		if w.ctx.Err() != nil {
			return
		}
		t.write(w.ctx, w.o.WriteWait, false)
	}
}

// End writes what is pending, unless the session was deleted, and ends the tracking. It waits for a write that runs, DetachWait at most for all. The
// source must still serve.
func (t *Track) End(deleted bool) {
	t.mu.Lock()
	t.ended = true
	if t.timer != nil {
		t.timer.Stop()
	}
	pending := t.pending.Events > 0
	t.mu.Unlock()
	if pending && !deleted {
		t.write(context.Background(), t.w.o.DetachWait, true)
	}
}

// write takes rows and stores them. One at a time; what came meanwhile is pending again.
func (t *Track) write(ctx context.Context, wait time.Duration, last bool) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return
	}
	t.mu.Lock()
	if t.ended && !last || t.pending.Events == 0 {
		t.queued = false
		t.mu.Unlock()
		return
	}
	t.pending, t.queued = Pending{}, false
	t.mu.Unlock()

	n, err := t.store(ctx)
	if err == nil {
		t.w.stats.Writes.Add(1)
		t.w.stats.Written.Add(int64(n))
		return
	}
	if gone(err) {
		return // the session went cold or away meanwhile: there is nothing to write any more
	}
	t.w.stats.Failed.Add(1)
	t.w.o.Logger.Warn("the checkpoint rows of a session were not written; its events are safe, and the next write covers them", "session", t.life.ID, "error", err)
	// With the next trigger, not at once: a store that is out of room would be asked in a circle.
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending.Events == 0 {
		t.pending.Since = time.Now()
	}
	t.pending.Events++
	t.look()
}

// gone says that an error is nobody's fault: the session is no more what it was.
func gone(err error) bool {
	var none *eventlog.NotFoundError
	var other *eventlog.IncarnationError
	return errors.Is(err, registry.ErrDetached) || errors.As(err, &none) || errors.As(err, &other)
}

func (t *Track) store(ctx context.Context) (n int, err error) {
	rows, err := t.src.Checkpoint(ctx)
	if err != nil || len(rows.Rows) == 0 {
		return 0, err
	}
	stored := encode(rows)
	if err := t.w.rows.SaveRows(ctx, t.life, stored); err != nil {
		return 0, err
	}
	return len(stored), t.keep(ctx, stored)
}

// keep puts rows aside for reads of the past when the last that were are far enough behind.
func (t *Track) keep(ctx context.Context, stored []eventlog.Row) error {
	cut := stored[0].Cut
	if !t.pastKnown {
		for _, r := range stored {
			last, ok, err := t.w.rows.PastRow(ctx, t.life, r.Key, cut)
			if err != nil {
				return err
			}
			if ok {
				t.past = max(t.past, last.Cut)
			}
		}
		t.pastKnown = true
	}
	if cut-t.past < t.w.o.PastEvery {
		return nil
	}
	if err := t.w.rows.SavePast(ctx, t.life, stored); err != nil {
		return err
	}
	t.past = cut
	return nil
}
