package api

import (
	"slices"
	"sync"
	"time"

	"github.com/foldhost/foldhost/event"
)

// recentBytes is about how much of the end of a followed log is held, for all its streams together: 256 KiB are some hundreds of events, which is more than streams that read as fast as
// a session is written are apart. The last event is held whatever its size.
const recentBytes = 256 << 10

// sharedEvent is an event that many streams of its session send.
type sharedEvent struct {
	seq  int64
	kind string
	// mark is the id of its frame. life is set where that does not say it.
	mark mark
	life string
	// size is about what it takes, encoded or not.
	size int

	once  sync.Once
	event event.Event
	bytes []byte
}

func share(ev *event.Event, m mark) *sharedEvent {
	return &sharedEvent{seq: ev.Seq, kind: ev.Type, mark: m, size: len(ev.Data) + 256, event: *ev}
}

// frame gives the event as a frame, which nobody changes. It is made by the first who asks.
func (e *sharedEvent) frame(f frames) []byte {
	e.once.Do(func() {
		e.bytes = f.event(nil, &e.event, e.mark)
		e.event = event.Event{} // It is in the frame.
	})
	return e.bytes
}

// held are events in a row, the last ones. What was handed out of the slice is not changed any more.
type held struct {
	events []*sharedEvent
	bytes  int
	// added is when the last one came.
	added time.Time
}

func (h *held) add(e *sharedEvent) { h.events, h.bytes = append(h.events, e), h.bytes+e.size }

// trim drops what is more than is held, and gives the last that was dropped. It is half of it, so that this is rare.
func (h *held) trim() (last *sharedEvent) {
	if h.bytes <= recentBytes || len(h.events) == 1 {
		return nil
	}
	keep := len(h.events) - 1
	for h.bytes = h.events[keep].size; keep > 0 && h.bytes+h.events[keep-1].size <= recentBytes/2; keep-- {
		h.bytes += h.events[keep-1].size
	}
	last = h.events[keep-1]
	h.events = slices.Clone(h.events[keep:])
	return last
}

// recent is the end of a log as it was published, each event encoded once for all who send it. It is a copy and no queue: it drops what is old, and who stands further back reads the log. It is
// guarded by the topic that it is of.
type recent struct {
	incarnation string
	held
}

// add takes events that follow those that are held, or else take their place.
func (r *recent) add(incarnation string, events []event.Event) {
	if len(events) == 0 {
		return
	}
	if n := len(r.events); n > 0 && (r.incarnation != incarnation || r.events[n-1].seq+1 != events[0].Seq) {
		*r = recent{}
	}
	r.incarnation, r.added = incarnation, time.Now()
	for i := range events {
		r.held.add(share(&events[i], mark{incarnation, events[i].Seq}))
	}
	r.trim()
}

// after gives the events behind a seq, if all of them are held and they reach least at least; else the log has to be read.
func (r *recent) after(incarnation string, seq, least int64) (events []*sharedEvent, ok bool) {
	n := int64(len(r.events))
	if n == 0 || r.incarnation != incarnation {
		return nil, false
	}
	first := r.events[0].seq
	if end := first + n; seq+1 < first || max(seq+1, end) <= least {
		return nil, false
	}
	from := min(seq+1-first, n)
	return r.events[from:n:n], true
}
