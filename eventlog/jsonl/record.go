package jsonl

import (
	"errors"
	"iter"

	"github.com/foldhost/foldhost/event"
)

// record is what one line holds: an event, or a row of them.
type record struct {
	draft event.Draft
	row   *row
}

// decode reads a whole line.
func (r *Reader) decode(l line) (record, error) {
	if l.text == nil {
		return record{}, &LineTooLongError{Size: l.size, Limit: int64(r.limit)}
	}
	draft, err := event.DecodeDraft(l.text, r.options.MaxEventBytes)
	if err == nil {
		return record{draft: draft}, nil
	}
	// A row is no envelope, and an envelope is no row, so an event may have a type that is the tag of a row.
	var fault *event.Error
	if errors.As(err, &fault) && fault.Code == event.EnvelopeInvalid {
		row, isRow, err := decodeRow(l.text)
		if isRow {
			return record{row: row}, err
		}
	}
	return record{}, err
}

// seq is that of the first event.
func (r record) seq() int64 {
	if r.row != nil {
		return r.row.seq0
	}
	return r.draft.Seq
}

// drafts gives the events. An event of a row can be too large by itself.
func (r record) drafts(limit int) iter.Seq2[event.Draft, error] {
	return func(yield func(event.Draft, error) bool) {
		if r.row == nil {
			yield(r.draft, nil)
			return
		}
		r.row.expand(func(e event.Event) bool {
			if err := event.CheckSize(&e, limit); err != nil {
				yield(event.Draft{}, err)
				return false
			}
			return yield(event.Draft{Event: e}, nil)
		})
	}
}
