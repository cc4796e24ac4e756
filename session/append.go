package session

import (
	"context"
	"encoding/json"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// Append appends one event and returns it as it was logged. data is any Go value that JSON carries losslessly, or JSON text as json.RawMessage.
//
// Checks come in the order lossless data, shape, retired encodings, lossless intent, re-entrancy, surface, hooks; then commit, then
// publication. A refusal changes nothing. Errors: *event.Error for a broken rule, *ReentrantError, *VetoError,
// *eventlog.NotFoundError, ErrClosed, the context's while it waits, and what the store says. After any other error of the store the event may be in the log.
func (s *Session) Append(ctx context.Context, typ string, data any, in Intent) (event.Event, error) {
	var draft [1]event.Draft
	if err := write(&draft[0], typ, data, in); err != nil {
		return event.Event{}, s.refused(err)
	}
	ev, err := single(s.append(ctx, draft[:], condition{}, false))
	return ev, s.refused(err)
}

// refused counts an append that came to nothing; nil is none.
func (s *Session) refused(err error) error {
	if err != nil {
		s.set.stats.Refused.Add(1)
	}
	return err
}

// write makes a draft of what a Go caller gives, checked as far as that needs no session.
func write(d *event.Draft, typ string, data any, in Intent) error {
	raw, err := event.Encode(data)
	if err != nil {
		return err
	}
	d.Type, d.Data = typ, raw
	if err := admit(d, in); err != nil {
		return err
	}
	d.Time = unstamped
	return nil
}

// Item is one event of a batch.
type Item struct {
	Type      string
	Data      json.RawMessage
	Intent    Intent
	Time      *int64 // nil: now
	Ignorable bool
	// OpFault and SourcesFault carry what a carrier could not even express in Intent; see event.Draft.
	OpFault, SourcesFault string
}

// Batch is appended as a whole or not at all.
type Batch struct {
	Items []Item
	// ExpectedSeq makes it conditional: the seq that the first event is to get.
	ExpectedSeq *int64
	// Once makes it idempotent. A key that is known gives the first commit and its events, whatever the session looks like now.
	Once Once
	// Answer is kept with the key of Once, for Session.Answered.
	Answer string
	// Alone: no other append is in the same commit, so that guards find everything before it in the log.
	Alone bool
}

// AppendBatch appends the items and says where they went. The events are shared with those who observe: do not write to them. Errors are as for Append, with refusals of an item as *event.IndexError, and
// *eventlog.SeqConflictError when ExpectedSeq is not the next seq, *eventlog.KeyReusedError, *eventlog.InvalidError for an empty batch.
func (s *Session) AppendBatch(ctx context.Context, b Batch) (eventlog.Commit, []event.Event, error) {
	if len(b.Items) == 0 {
		return eventlog.Commit{}, nil, s.refused(&eventlog.InvalidError{Reason: "a batch needs at least one item"})
	}
	drafts := make([]event.Draft, len(b.Items))
	for i := range b.Items {
		if err := b.Items[i].draft(&drafts[i]); err != nil {
			return eventlog.Commit{}, nil, s.refused(&event.IndexError{Index: int64(i), Err: err})
		}
	}
	commit, events, err := s.append(ctx, drafts, condition{expected: b.ExpectedSeq, once: b.Once, answer: b.Answer}, b.Alone)
	return commit, events, s.refused(err)
}

// draft checks the item as far as that needs no session.
func (it *Item) draft(d *event.Draft) error {
	raw, err := event.Compact(it.Data, "$")
	if err != nil {
		return err
	}
	d.Type, d.Data, d.Ignorable = it.Type, raw, it.Ignorable
	if it.Time != nil {
		d.Time = *it.Time
	}
	if err := admit(d, it.Intent); err != nil {
		return err
	}
	if it.Time == nil {
		d.Time = unstamped
	}
	if it.OpFault != "" {
		d.Op, d.OpFault = event.Op{}, it.OpFault
	}
	if it.SourcesFault != "" {
		d.Sources, d.SourcesFault = nil, it.SourcesFault
	}
	return nil
}
