package memory

import (
	"sort"
	"sync"

	"github.com/foldhost/foldhost/eventlog"
)

// order gives commits their positions and knows what they order: the events of all logs, and the logs by their last commit.
// Each event has a position of its own, so that a reader can stop anywhere, inside a commit too.
type order struct {
	mu   sync.Mutex
	last int64
	// spans are what was committed, by position.
	spans chunks[span]
	// dead counts the spans of deleted logs.
	dead int64
	// recent is the log that was committed to last; place links the others behind it.
	recent *log
}

// span is a run of commits to one log: seqs first to first+n−1, the last of them at position end.
type span struct {
	log      *log
	first, n int64
	end      int64
}

// place is where a log stands in the order. order.mu guards it.
type place struct {
	seq, position, updatedAt int64
	spans                    int64
	deleted                  bool
	newer, older             *log
}

// commit gives the events [first, seq) of l their positions and returns the last of them. A commit without events takes one
// position too.
func (o *order) commit(l *log, first, seq, now int64) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := seq - first
	o.last += max(n, 1)
	if n > 0 {
		o.extend(l, first, n)
	}
	l.place.seq, l.place.position, l.place.updatedAt = seq, o.last, now
	if o.recent != l {
		o.unlink(l)
		if o.recent != nil {
			o.recent.place.newer = l
		}
		l.place.older = o.recent
		o.recent = l
	}
	return o.last
}

// extend needs o.mu; o.last is the position of the last of the events.
func (o *order) extend(l *log, first, n int64) {
	if o.spans.len() > 0 {
		if sp := o.spans.at(o.spans.len() - 1); sp.log == l && sp.end+n == o.last {
			sp.n, sp.end = sp.n+n, o.last
			return
		}
	}
	o.spans.append(&span{log: l, first: first, n: n, end: o.last})
	l.place.spans++
}

func (o *order) info(l *log) eventlog.Info {
	o.mu.Lock()
	defer o.mu.Unlock()
	return l.info()
}

// info needs order.mu.
func (l *log) info() eventlog.Info {
	return eventlog.Info{
		Header:       l.header,
		Incarnation:  l.incarnation,
		Seq:          l.place.seq,
		FirstLiveSeq: l.firstLiveSeq,
		Position:     l.place.position,
		UpdatedAt:    l.place.updatedAt,
	}
}

// remove takes a deleted log out. Its spans stay until they are half of all, so that a delete costs nothing on average.
func (o *order) remove(l *log) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unlink(l)
	l.place.deleted = true
	o.dead += l.place.spans
	if o.dead*2 <= o.spans.len() {
		return
	}
	var live chunks[span]
	for i := range o.spans.len() {
		if sp := o.spans.at(i); !sp.log.place.deleted {
			live.append(sp)
		}
	}
	o.spans, o.dead = live, 0
}

// unlink needs o.mu. A log that is not linked stays so.
func (o *order) unlink(l *log) {
	newer, older := l.place.newer, l.place.older
	if newer != nil {
		newer.place.older = older
	} else if o.recent == l {
		o.recent = older
	}
	if older != nil {
		older.place.newer = newer
	}
	l.place.newer, l.place.older = nil, nil
}

// after returns the first spans with events beyond a position, whether there are more, and the last position given out.
func (o *order) after(position int64) (spans []span, more bool, end int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := int(o.spans.len())
	first := sort.Search(n, func(i int) bool { return o.spans.at(int64(i)).end > position })
	last := min(n, first+tailSpans)
	spans = make([]span, 0, last-first)
	for i := first; i < last; i++ {
		spans = append(spans, *o.spans.at(int64(i)))
	}
	return spans, last < n, o.last
}

// list returns logs committed to before position, latest first, and whether there are more.
func (o *order) list(before int64, limit int) (logs []eventlog.Info, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for l := o.recent; l != nil; l = l.place.older {
		if l.place.position >= before {
			continue
		}
		if len(logs) == limit {
			return logs, true
		}
		logs = append(logs, l.info())
	}
	return logs, false
}

// reset lets go of everything.
func (o *order) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.spans, o.dead, o.recent = chunks[span]{}, 0, nil
}
