package api

import (
	"strconv"
	"strings"

	"github.com/foldhost/foldhost/event"
)

// position is where a reader of a stream says that it stands: the seq of the last event that it has, −1 for none.
type position struct {
	given bool
	seq   int64
	// incarnation is the life that the seq belongs to; empty means whichever there is.
	incarnation string
	// strange says that it is no position of a stream of one session at all.
	strange bool
}

// position reads where a stream is to go on. Last-Event-ID is what a browser sends by itself when it connects again, and so is newer than what stands in the address.
func (c *call) position(q *query) position {
	if p := c.sentPosition(); p.given {
		return p
	}
	if !q.has("after") {
		return position{}
	}
	p, ok := parsePosition(q.text("after"))
	if !ok {
		q.fail("after is %q: it must be the id of a frame, or the seq of the last event that is known, -1 for none", q.text("after"))
	}
	return p
}

// sentPosition reads what came as Last-Event-ID.
func (c *call) sentPosition() (p position) {
	if id := c.r.Header.Get("Last-Event-ID"); id != "" {
		var ok bool
		p, ok = parsePosition(id)
		p.strange = !ok || p.incarnation == ""
	}
	return p
}

// parsePosition reads "<incarnation>:<seq>" or a bare seq.
func parsePosition(text string) (p position, ok bool) {
	p.given = true
	number := text
	if life, seq, both := strings.Cut(text, ":"); both {
		if life == "" {
			return p, false
		}
		p.incarnation, number = life, seq
	}
	seq, err := strconv.ParseInt(number, 10, 64)
	p.seq = seq
	return p, err == nil && seq >= -1 && seq <= event.MaxInteger
}

// Reasons of a session/reset.
const (
	// resetIncarnation: the position belongs to another life of the session.
	resetIncarnation = "incarnation"
	// resetStore: the position belongs to another store.
	resetStore = "store"
	// resetBeyondEnd: the log, or the store, does not reach so far.
	resetBeyondEnd = "beyond-end"
	// resetDamaged: the log cannot be read, and the stream, which has others, goes on without it.
	resetDamaged = "damaged"
	// resetUnknown: it is no position of this stream.
	resetUnknown = "unknown"
)

// lost says why the log does not have the position; end is the seq of the last event.
func (p *position) lost(incarnation string, end int64) (reason string) {
	switch {
	case !p.given:
		return ""
	case p.strange:
		return resetUnknown
	case p.incarnation != "" && p.incarnation != incarnation:
		return resetIncarnation
	case p.seq > end:
		return resetBeyondEnd
	}
	return ""
}
