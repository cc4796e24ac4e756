// Package paging holds what the stores agree on about the size of an answer: their own bounds, what a page has room for, and the refusal of
// queries and batches that no store takes.
package paging

import (
	"fmt"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// Bounds on a page when the query has none, or asks for more.
const (
	// 1,000 events: what a reader folds within a millisecond or so, and what a copy under a lock costs tens of microseconds for.
	Events = 1000
	// 4 MiB: the limit on one event, so that a page of ordinary events is never larger than the largest event.
	Bytes = 4 << 20
	// 100 logs: a screenful or two.
	Logs = 100
	// 20,000 events looked at by one Tail call that finds none of its types, after which it reports how far it came instead of looking on: some
	// hundred microseconds in memory, some milliseconds on disk.
	TailScan = 20_000
)

// How long idempotency keys are kept at least: as long as a client may reasonably repeat a request, and however long ago, those of 1,000 requests, as many as it may have open at once. A call of a tool that must not
// run twice has two.
const (
	KeyTime = 24 * time.Hour
	Keys    = 2000
)

// Bound is what a page may hold: what was asked for, and never more than the store's own limit.
func Bound(asked, own int) int {
	if asked == 0 {
		return own
	}
	return min(asked, own)
}

// Room is what is left of a page.
type Room struct {
	Events, Bytes int
	begun         bool
}

// Take makes room for an event, or says that the page is full. The first event always fits.
func (r *Room) Take(ev *event.Event) bool {
	size := Size(ev)
	if r.begun && (r.Events < 1 || r.Bytes < size) {
		return false
	}
	r.begun = true
	r.Events--
	r.Bytes -= size
	return true
}

// Size is about what an event takes as JSON: its data and type, and 64 bytes for the rest of the envelope. Exact sizes would mean
// formatting numbers for every event read.
func Size(ev *event.Event) int {
	return len(ev.Data) + len(ev.Type) + 64 + 8*len(ev.Sources)
}

// CheckBatch refuses batches that no store would take.
func CheckBatch(b *eventlog.Batch) error {
	if len(b.Events) == 0 && b.Key == "" {
		return &eventlog.InvalidError{Reason: "an append needs at least one event, or a key"}
	}
	for i := range b.Events {
		if want := b.Events[0].Seq + int64(i); b.Events[i].Seq != want {
			return OutOfRow(b.Events[i].Seq, want)
		}
	}
	return nil
}

// CheckGroup refuses groups that no store would take, whatever its log is like: batches that no store would take, of several lives, that do not follow each other, or with one key twice.
func CheckGroup(batches []eventlog.Batch) error {
	if len(batches) == 0 {
		return &eventlog.InvalidError{Reason: "a group needs at least one batch"}
	}
	keys := make(map[string]bool)
	next := int64(-1)
	for i := range batches {
		b := &batches[i]
		err := CheckBatch(b)
		switch {
		case err != nil:
		case len(b.Events) == 0:
			err = &eventlog.InvalidError{Reason: "a batch of a group needs at least one event"}
		case b.Life != batches[0].Life:
			err = &eventlog.InvalidError{Reason: "the batches of a group go to one log"}
		case i > 0 && b.Events[0].Seq != next:
			err = OutOfRow(b.Events[0].Seq, next)
		case b.Key != "" && keys[b.Key]:
			err = eventlog.ErrKeyKnown
		}
		if err != nil {
			return &eventlog.GroupError{Index: i, Err: err}
		}
		keys[b.Key] = true
		next = b.Events[0].Seq + int64(len(b.Events))
	}
	return nil
}

// OutOfRow says that a seq is not the one that follows.
func OutOfRow(have, want int64) error {
	return &eventlog.InvalidError{Reason: fmt.Sprintf("the seqs of a batch are in a row: event has %d, expected %d", have, want)}
}

// CheckQuery refuses negative numbers.
func CheckQuery(q *eventlog.Query) error {
	switch {
	case q.From < 0:
		return negative("Query.From", q.From)
	case q.Limit < 0:
		return negative("Query.Limit", int64(q.Limit))
	case q.MaxBytes < 0:
		return negative("Query.MaxBytes", int64(q.MaxBytes))
	}
	return nil
}

// CheckTail refuses negative numbers.
func CheckTail(q *eventlog.TailQuery) error {
	switch {
	case q.After < 0:
		return negative("TailQuery.After", q.After)
	case q.Limit < 0:
		return negative("TailQuery.Limit", int64(q.Limit))
	}
	return nil
}

// CheckList refuses a negative limit.
func CheckList(q *eventlog.ListQuery) error {
	if q.Limit < 0 {
		return negative("ListQuery.Limit", int64(q.Limit))
	}
	return nil
}

func negative(name string, n int64) error {
	return &eventlog.InvalidError{Reason: fmt.Sprintf("%s is %d: it must not be negative", name, n)}
}
