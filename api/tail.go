package api

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/eventlog"
)

// tailMost is how many commit positions are read at most to bring what streams of many sessions have up to the end of the store: more than are committed between two looks, but for an
// import. Beyond it the streams read the logs of their own sessions, and so beyond tailPages, which are some 32 MiB: events may be few and large, and most are of sessions that nobody follows.
const (
	tailMost  = 4096
	tailPages = 8
)

// tail is how far the events of the store were given, with their commit positions, to the topics of those who want them, once for all. What was published has no commit position, and does not say
// what else was committed before it.
//
// Who reads is alone with that, and the others wait for it. end belongs to hub.mu; mu guards the rest.
type tail struct {
	// heard counts what was published of such topics, and who wants more than that.
	heard atomic.Int64
	// end is the position up to which events were given, -1 for none.
	end int64

	mu sync.Mutex
	// seen is what had been heard when the last reading began.
	seen int64
	// reading is closed when the one under way has ended.
	reading chan struct{}
}

// placed are the last events of a session by their commit positions: all those behind from, up to the end of the tail. They may be of several lives.
type placed struct {
	from int64
	held
}

// after gives the events behind a position up to another, if all of them are held.
func (p *placed) after(position, end int64) (events []*sharedEvent, ok bool) {
	if position < p.from {
		return nil, false
	}
	at := func(position int64) int {
		n, _ := slices.BinarySearchFunc(p.events, position, func(e *sharedEvent, position int64) int { return cmp.Compare(e.mark.at, position+1) })
		return n
	}
	from, to := at(position), at(end)
	return p.events[from:max(from, to):max(from, to)], true
}

// advance has the topics given what was committed, and gives the position up to which they have it all: everything that was published before, or, if it is to be fresh, committed before.
func (h *hub) advance(ctx context.Context, fresh bool) (end int64, err error) {
	want := h.tail.heard.Load()
	if fresh {
		want = h.tail.heard.Add(1)
	}
	for {
		h.tail.mu.Lock()
		if h.tail.seen >= want {
			h.tail.mu.Unlock()
			h.mu.RLock()
			defer h.mu.RUnlock()
			return h.tail.end, nil
		}
		other := h.tail.reading
		if other == nil {
			h.tail.reading = make(chan struct{})
		}
		h.tail.mu.Unlock()
		if other == nil {
			if err := h.readTail(ctx); err != nil {
				return 0, err
			}
			continue
		}
		select {
		case <-other:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// readTail reads to the end of the store, for whoever waits until it has.
func (h *hub) readTail(ctx context.Context) (err error) {
	heard := h.tail.heard.Load()
	read := false
	defer func() {
		h.tail.mu.Lock()
		defer h.tail.mu.Unlock()
		if read {
			h.tail.seen = heard
		}
		close(h.tail.reading)
		h.tail.reading = nil
	}()
	h.mu.RLock()
	at := h.tail.end
	h.mu.RUnlock()
	id, end, err := h.sessions.End(ctx)
	for pages := 0; err == nil && at >= 0 && end-at <= tailMost && pages < tailPages; pages++ {
		var page eventlog.TailPage
		if page, err = h.sessions.Tail(ctx, eventlog.TailQuery{After: at}); err != nil {
			break
		}
		h.place(id, page.Events, page.Position)
		if at = page.Position; at >= page.End {
			read = true
			return nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// Anew, since what was read may be beyond it. Of a damaged log those hear who follow it.
	if _, end, err = h.sessions.End(ctx); err != nil {
		return err
	}
	h.skip(end)
	read = true
	return nil
}

// skip leaves out what is before a position.
func (h *hub) skip(end int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tail.end = end
	for _, t := range h.topics {
		t.mu.Lock()
		t.placed = placed{from: end}
		t.mu.Unlock()
	}
}

// place gives all events up to a position to their topics.
func (h *hub) place(storeID string, events []eventlog.TailEvent, end int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tail.end = end
	now := time.Now()
	for i := range events {
		e := &events[i]
		t := h.topics[e.Life.ID]
		if t == nil {
			continue
		}
		t.mu.Lock()
		if t.rows > 0 {
			s := share(&e.Event, mark{storeID, e.Position})
			s.life = e.Life.Incarnation
			t.placed.add(s)
			t.placed.added = now
			if last := t.placed.trim(); last != nil {
				t.placed.from = last.mark.at
			}
		}
		t.mu.Unlock()
	}
}

// placed gives the events of the session behind a position up to another, if all of them are held; else the log has to be read. Those of other lives are among them.
func (f *follower) placed(position, end int64) (events []*sharedEvent, ok bool) {
	t := f.topic
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.placed.after(position, end)
}

// pullPlaced is pull on a stream of many sessions where the events are at hand, which other streams send too.
func (st *stream) pullPlaced(ctx context.Context) (done bool, err error) {
	if st.many.at < st.many.whole {
		return false, nil
	}
	for _, p := range st.parts {
		if p.gone || !p.based || p.look {
			return false, nil
		}
	}
	if st.silent() {
		return true, nil
	}
	for _, fresh := range []bool{false, true} {
		end, err := st.api.hub.advance(ctx, fresh)
		if err != nil {
			return false, err
		}
		found, all := st.placed(end)
		if !found {
			return false, nil
		}
		if all {
			return true, st.sendPlaced(end)
		}
		// A value is of an event that is about to be published.
	}
	return false, nil
}

// placed finds what the sessions have up to a position; all says that the events of the values that were taken are among it.
func (st *stream) placed(end int64) (found, all bool) {
	all = true
	for _, p := range st.parts {
		if p.shared, found = p.follower.placed(st.many.at, end); !found {
			return false, false
		}
		p.shared = slices.DeleteFunc(slices.Clone(p.shared), func(e *sharedEvent) bool { return e.life != p.frames.incarnation })
		last := p.pos
		if n := len(p.shared); n > 0 {
			last = p.shared[n-1].seq
		}
		for _, c := range p.changes {
			all = all && c.Seq <= last
		}
	}
	return true, all
}

// sendPlaced sends what placed has found, by position.
func (st *stream) sendPlaced(end int64) error {
	for {
		var first *part
		for _, p := range st.parts {
			if len(p.shared) > 0 && (first == nil || p.shared[0].mark.at < first.shared[0].mark.at) {
				first = p
			}
		}
		if first == nil {
			st.many.at = max(st.many.at, end) // Logs that were read may have been further.
			return nil
		}
		e := first.shared[0]
		first.pos, first.shared = e.seq, first.shared[1:]
		if st.types != nil && !slices.Contains(st.types, e.kind) {
			continue
		}
		if err := st.put(e.frame(first.frames)); err != nil {
			return err
		}
	}
}
