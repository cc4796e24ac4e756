package registry

import (
	"bytes"
	"encoding/json"
	"math"
	"sync"
	"time"

	"github.com/foldhost/foldhost/unit"
)

// rowEvery is after how many folded events a process is asked for a cell's state: what a crash costs to replay.
const rowEvery = 1000

// cell is one unit's state for one session. Session.mu guards it; while the builder folds a page for it, the builder alone
// looks at the state, and live is false.
//
// Positions are seqs. due is the last published event that may be one of its types, pos how far it has come. A cell with
// due ≤ pos stands at the head wherever that is: an event that it does not fold moves it without touching it.
type cell struct {
	b   *binding
	rev int64
	// gone: released, superseded or detached; whoever still works for it stops.
	gone bool
	// fault is why it folds no more.
	fault *Unavailable
	// poison says that the fault was the end of a process: it is approached with care when it is tried again.
	poison bool
	// announce: its absence was told, so its value goes out under a new revision when it has come to owed, the head of that time.
	announce bool
	owed     int64
	// frozen: its successor is about to take over; it keeps its value and folds no more.
	frozen bool

	due, pos int64
	// behind is since when it has something to fold, while it has.
	behind time.Duration
	// emitFrom is the first event whose changes are told; what is before it folds silently.
	emitFrom int64
	// val is the last value computed; nil before the first, and always for a host-only unit.
	val *value

	// base is where to start: nil is init, which holds up to the event start at least. seeded says that it was looked for.
	base   *Row
	start  int64
	seeded bool

	history history

	// In-process cells.

	// live: it stands at the head and folds in Publish.
	live  bool
	state unit.State
	// dirty: the state changed at the event changed, and val is not its view yet.
	dirty   bool
	changed int64

	// Cells in instances.

	// id is its name at the process at, where it was opened; 0 and nil when it is to be opened.
	id unit.CellID
	at *process
	// lastID is the name before it was to be opened again.
	lastID unit.CellID
	// epoch rises when it is to be opened again: what was planned before is void.
	epoch int
	// sent is how far batches were submitted, pos how far they were answered, pub how far its value is known. After a crash
	// sent and pos go back to base, and pub stays: up to there it folds again silently, rebuilt being the latest value of that.
	sent, pub int64
	known     bool
	replaying bool
	rebuilt   *value
	sinceRow  int
	lost      int
	// suspicion says how it is to be tried, suspectIn in which process it waits for that or is tried at present.
	suspicion *suspicion
	suspectIn *process
}

// value is a view that was computed. It is checked at most once, when it leaves.
type value struct {
	b    *binding
	view json.RawMessage
	seq  int64

	once sync.Once
	out  json.RawMessage
	err  error
}

// leave gives the view as it may go out: checked, and without the white space that a plugin in another language may write, since frames are
// lines.
func (v *value) leave(limit int) (json.RawMessage, error) {
	v.once.Do(func() { v.out, v.err = v.b.AcceptView(v.view, limit) })
	return v.out, v.err
}

// makeCell makes a cell for a place. emitFrom is the first event whose changes are to be told.
func (s *Session) makeCell(k int, emitFrom int64) *cell {
	if s.slots[k].fresh {
		return s.freshCell(s.plan.units[k], emitFrom)
	}
	return s.newCell(s.plan.units[k], emitFrom)
}

// newCell makes a cell that has come nowhere yet.
func (s *Session) newCell(b *binding, emitFrom int64) *cell {
	return &cell{b: b, rev: max(b.revision(), s.r.ends.of(s.id).Load()), due: s.head, pos: -1, behind: s.r.sinceStart(), changed: -1, emitFrom: emitFrom, start: -1, sent: -1, pub: -1}
}

// freshCell makes a cell of a session in which no event of its types has happened before emitFrom: nothing is to be read for it.
func (s *Session) freshCell(b *binding, emitFrom int64) *cell {
	c := s.newCell(b, emitFrom)
	c.due, c.seeded = -1, true
	c.start, c.pos, c.sent = emitFrom-1, emitFrom-1, emitFrom-1
	if b.inline() {
		if st, err := b.Inline.Init(); err != nil {
			c.fault = faulted(-1, err.Error())
			b.counts.faults.Add(1)
			s.tellFault(c, -1, err.Error())
		} else {
			c.state, c.dirty, c.live = st, true, true
		}
	}
	return c
}

// reached is how far the cell's value goes, the head being where it is.
func (c *cell) reached(head int64) int64 {
	n := c.asOf()
	if !c.frozen && c.due <= n && c.ready() {
		return head
	}
	return n
}

// asOf is the last position at which the value is known.
func (c *cell) asOf() int64 {
	if c.b.inline() {
		return c.pos
	}
	return c.pub
}

// ready says that there is a value or, for a host-only unit, a state.
func (c *cell) ready() bool {
	if c.b.inline() {
		return c.seeded
	}
	return c.known
}

// refresh makes val the view of the state, and says whether it differs from the one before. Session.mu is held, or the
// builder has the cell.
func (c *cell) refresh() (differs bool, err error) {
	if !c.dirty || c.b.HostOnly() {
		return false, nil
	}
	v, differs, err := view(c.b, c.state, c.changed, c.val)
	if err != nil {
		return false, err
	}
	c.val, c.dirty = v, false
	return differs, nil
}

// view computes a value; the one before is kept where the bytes are equal.
func view(b *binding, st unit.State, seq int64, before *value) (v *value, differs bool, err error) {
	raw, err := b.Inline.View(st)
	if err != nil {
		return nil, false, err
	}
	if before != nil && bytes.Equal(raw, before.view) {
		return before, false, nil
	}
	return &value{b: b, view: raw, seq: seq}, true, nil
}

// history are states of one cell along the way, for reads of the past. Those of an in-process cell are kept as they are and
// encoded when somebody asks.
type history struct {
	folded int
	every  int
	rows   []past
}

type past struct {
	seq   int64
	state unit.State
	raw   json.RawMessage
}

const (
	// historyEvery is the distance between two states, in folded events, until there are historyMax of them; then every other
	// one goes and the distance doubles, so that a log of any length costs the same memory.
	historyEvery = 10_000
	historyMax   = 16
)

// fold counts n folded events and says whether a state is due.
func (h *history) fold(n int) bool {
	if h.every == 0 {
		h.every = historyEvery
	}
	h.folded += n
	return h.folded >= h.every
}

func (h *history) keep(p past) {
	h.folded = 0
	h.rows = append(h.rows, p)
	if len(h.rows) < historyMax {
		return
	}
	kept := h.rows[:0]
	for i, r := range h.rows {
		if i%2 == 1 {
			kept = append(kept, r)
		}
	}
	clear(h.rows[len(kept):])
	h.rows, h.every = kept, min(h.every*2, math.MaxInt/4)
}

func (h *history) best(seq int64) (past, bool) {
	for i := len(h.rows) - 1; i >= 0; i-- {
		if h.rows[i].seq <= seq {
			return h.rows[i], true
		}
	}
	return past{}, false
}
