package checkpoint

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
)

// Source is a live session as the registry knows it: a *registry.Session.
type Source interface {
	// CheckpointWithin gives a row per unit at one cut, and waits no longer than wait for those that trail.
	CheckpointWithin(ctx context.Context, wait time.Duration) (registry.Rows, error)
	// Folded counts the folded events that the rows of the beginning do not cover.
	Folded() int64
}

// Track looks after one live session: when its rows are due. Committed and End are called by the session's owner, one call at a time.
type Track struct {
	w    *Writer
	src  Source
	life eventlog.Life

	// mu guards what follows. It is taken before Writer.mu, and not held across a call.
	mu      sync.Mutex
	pending Pending
	// dirty is when the first event came that no row covers and no writer has taken, taken the same of those that one has.
	dirty, taken time.Time
	// folded is what Folded said when pending was last looked at.
	folded int64
	// asked: the rows are due, and no writer has begun with them. writing: one has, and has not ended.
	asked, writing, ended bool
	timer                 *time.Timer
}

// Track begins to look after a session. End it.
func (w *Writer) Track(life eventlog.Life, src Source) *Track {
	t := &Track{w: w, src: src, life: life}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tracks[t] = struct{}{}
	return t
}

// Committed takes note of events after they were published. It waits for nothing. Events that no unit folds call for nothing.
func (t *Track) Committed(events []event.Event) {
	folded := t.src.Folded()
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := folded - t.folded; n > 0 {
		if t.pending.Events == 0 {
			t.pending.Since = time.Now()
			if t.dirty.IsZero() {
				t.dirty = t.pending.Since
			}
		}
		t.pending.Events += int(n)
		t.folded = folded
	}
	if t.pending.Events == 0 {
		return
	}
	for i := range events {
		t.pending.TurnEnded = t.pending.TurnEnded || events[i].Type == event.TurnEnd
	}
	t.look()
}

// look asks for a write when the rows are due, or arms the timer. mu is held.
func (t *Track) look() {
	if t.asked || t.ended {
		return
	}
	due, again := t.w.o.Policy.Due(t.pending, time.Now())
	switch {
	case due:
		t.asked = true
		t.w.ask(t)
	case again > 0 && t.timer == nil:
		// What it calls waits for nothing, so nobody has to wait for it.
		t.timer = time.AfterFunc(again, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.timer = nil
			t.look()
		})
	}
}

// take is a writer that begins: the rows as of now. nil rows without an error say that there is nothing to write any more.
func (t *Track) take(ctx context.Context) (rows *registry.Rows, err error) {
	t.mu.Lock()
	t.asked = false
	if t.ended || t.pending.Events == 0 {
		t.mu.Unlock()
		return nil, nil
	}
	// What comes from now on may or may not be in the rows: it is pending again.
	t.pending, t.writing = Pending{}, true
	t.taken, t.dirty = t.dirty, time.Time{}
	t.mu.Unlock()
	got, err := t.src.CheckpointWithin(ctx, t.w.o.TakeWait)
	if errors.Is(err, registry.ErrDetached) {
		return nil, nil // End has taken them
	}
	return &got, err
}

// wrote is a writer that ends. After an error the rows are due with the next trigger and not at once: a store that is out of room would be asked in a
// circle.
func (t *Track) wrote(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writing = false
	if err != nil {
		t.dirty = earlier(t.dirty, t.taken)
	}
	t.taken = time.Time{}
	if err == nil || t.ended {
		return
	}
	if t.pending.Events == 0 {
		t.pending.Since = time.Now()
	}
	t.pending.Events++
	t.look()
}

// End ends the tracking. The last rows are taken, unless the session was deleted or has nothing new, and handed to the writers: nobody waits until they are
// written. The source must still serve.
func (t *Track) End(deleted bool) {
	folded := t.src.Folded()
	t.mu.Lock()
	t.ended = true
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	// A write under way may have its rows still to take, when the source is gone.
	news := t.pending.Events > 0 || t.writing || folded > t.folded
	since := earlier(t.dirty, t.taken)
	t.mu.Unlock()
	defer t.leave() // only when somebody else has its rows
	if deleted {
		t.w.forget(t.life)
	} else if news {
		t.last(since)
	}
}

// leave takes it away from what has still to be written.
func (t *Track) leave() {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	delete(t.w.tracks, t)
}

func (t *Track) last(since time.Time) {
	ctx, cancel := context.WithTimeout(t.w.ctx, t.w.o.DetachWait)
	defer cancel()
	rows, err := t.src.CheckpointWithin(ctx, t.w.o.TakeWait)
	switch {
	case err == nil:
		if len(rows.Rows) > 0 {
			t.w.put(t.life, encode(rows.Rows, rows.Cut), nil, since)
		}
	case !errors.Is(err, registry.ErrDetached):
		t.w.failed(t.life, err)
	}
}
