package jsonl

import (
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/foldhost/foldhost/event"
)

// What is forgiven, and what is not:
//
//	line                                      import                               strict
//	the last one, without newline             dropped                              dropped
//	no event, no row                          dropped with the rest, unless a      refused
//	                                          turn/end can be read later
//	an event or row out of seq                the same                             given; the taker refuses it
//	JSON that breaks the lossless-JSON rule   refused: it was written like that    refused
//	larger than the limit                     refused: it may be an event          refused
//	so much that the file is a bomb           refused, and not read further        refused
//	cut off zstd frame                        as a last line without newline       refused

// refuse decides on a line that cannot follow what was read: it is an error, or it and the rest are dropped.
func (r *Reader) refuse(l line, cause error) error {
	at, index := r.lines, r.index
	if r.options.Strict || !damaged(cause, l.text) {
		return r.at(at, index, cause)
	}
	dropped := l.bytes()
	for {
		later, err := r.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		dropped += later.bytes()
		if later.whole && r.endsTurn(later) {
			return r.at(at, index, cause)
		}
	}
	r.warnings = append(r.warnings, Warning{Kind: TornTail, Line: at, Index: index, Bytes: dropped, Cause: cause})
	return nil
}

// damaged says whether a line looks like the work of a crash: no JSON, no event, or an event out of its place.
func damaged(cause error, text []byte) bool {
	var gap *GapError
	if errors.As(cause, &gap) {
		return true
	}
	var fault *event.Error
	if !errors.As(cause, &fault) {
		return false
	}
	switch fault.Code {
	case event.EnvelopeInvalid:
		return true
	case event.DataNotLossless:
		// A duplicate key or -0 in JSON that is whole: somebody wrote that. So did whoever nested a thousand deep, and json.Valid
		// would not look to the end of it.
		return fault.Rule != "depth" && (!json.Valid(text) || !utf8.Valid(text))
	default:
		return false
	}
}

// endsTurn says whether the line is a turn/end: then what stands before it had been committed.
func (r *Reader) endsTurn(l line) bool {
	if len(l.text) < len(`{"type":"turn/end","seq":0,"time":0,"data":0}`) {
		return false // there may be millions of these
	}
	draft, err := event.DecodeDraft(l.text, r.options.MaxEventBytes)
	return err == nil && draft.Type == event.TurnEnd
}

// endOfText takes the last line, which has no newline, or none.
func (r *Reader) endOfText(l line) error {
	index := r.index
	if !r.source.torn {
		if l.size > 0 {
			r.warnings = append(r.warnings, Warning{Kind: TornLine, Line: r.lines, Index: index, Bytes: l.size})
		}
		return nil
	}
	at := r.lines
	if l.size == 0 {
		at++ // the line that would have come
	}
	if r.options.Strict {
		return r.at(at, index, &ReadError{Path: r.path, Err: errTornFrame})
	}
	r.warnings = append(r.warnings, Warning{Kind: TornFrame, Line: at, Index: index, Bytes: l.size, Cause: errTornFrame})
	return nil
}

var errTornFrame = errors.New("the last zstd frame is incomplete: import without strict keeps the lines before")
