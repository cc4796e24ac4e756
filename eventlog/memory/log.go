package memory

import (
	"sort"
	"sync"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/internal/paging"
)

// log is one life of one session's log.
type log struct {
	header       event.Header
	incarnation  string
	firstLiveSeq int64

	mu     sync.RWMutex
	events chunks[event.Event]
	// runs say which positions the events have.
	runs []run
	// byType finds the events of a type without looking at the others.
	byType map[string]*typeIndex
	keys   map[string]eventlog.KeyRecord
	// keyOrder are the keys as they came, so that old ones can be forgotten.
	keyOrder []string
	rows     rows

	// place is guarded by order.mu.
	place place
}

// run is where positions begin to count on with the seqs, up to the next run.
type run struct{ seq, position int64 }

// placed notes that the events from seq on have positions from position on. It needs l.mu, or a log that nobody else has seen.
func (l *log) placed(seq, position int64) {
	if n := len(l.runs); n == 0 || l.runs[n-1].position+seq-l.runs[n-1].seq != position {
		l.runs = append(l.runs, run{seq, position})
	}
}

// position is that of an event. It needs l.mu.
func (l *log) position(seq int64) int64 {
	i := sort.Search(len(l.runs), func(i int) bool { return l.runs[i].seq > seq })
	r := l.runs[i-1]
	return r.position + seq - r.seq
}

// typeIndex lists the seqs of the events of one type, ascending.
type typeIndex struct {
	// name is shared by all events of the type, so that they do not keep alive the lines they were read from.
	name string
	seqs []int64
}

// add needs l.mu, or a log that nobody else has seen.
func (l *log) add(ev event.Event) {
	idx := l.byType[ev.Type]
	if idx == nil {
		if l.byType == nil {
			l.byType = make(map[string]*typeIndex)
		}
		idx = &typeIndex{name: ev.Type}
		l.byType[ev.Type] = idx
	}
	ev.Type = idx.name
	idx.seqs = append(idx.seqs, ev.Seq)
	l.events.append(&ev)
}

// keep keeps a commit under its key, where it has one. log.mu is held, or nobody has the log yet.
func (l *log) keep(key, digest, answer string, c eventlog.Commit) {
	if key == "" {
		return
	}
	if l.keys == nil {
		l.keys = make(map[string]eventlog.KeyRecord)
	}
	l.keys[key] = eventlog.KeyRecord{Digest: digest, Answer: answer, Commit: c}
	l.keyOrder = append(l.keyOrder, key)
	for len(l.keyOrder) > paging.Keys && l.keys[l.keyOrder[0]].Commit.Time < c.Time-paging.KeyTime.Milliseconds() {
		delete(l.keys, l.keyOrder[0])
		l.keyOrder = l.keyOrder[1:]
	}
}
