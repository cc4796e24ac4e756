package host

import (
	"errors"
	"io/fs"
	"strconv"

	"github.com/foldhost/foldhost/event"
)

// Codes of refusals that are not about the rules of a log.
const (
	// CodeFileUnreadable: the log could not be read at all: missing, a directory, no permission, damaged compression.
	CodeFileUnreadable = "file-unreadable"
	// CodeNotReached: the log ends before the seq asked for.
	CodeNotReached = "not-reached"
	// CodeOutputExists and CodeOutputUnwritable: a conversion did not get its output.
	CodeOutputExists     = "output-exists"
	CodeOutputUnwritable = "output-unwritable"
)

// Refusal is what programs hear of a log that was not accepted.
type Refusal struct {
	// Index counts events from 0, after packed rows are expanded; nil is the header or the file as a whole.
	Index *int64
	// Code is an event.Code or one of the codes of this package.
	Code    string
	Message string
}

// RefusalOf makes a refusal of an error that Replay, Convert or OpenLog returned.
func RefusalOf(err error) Refusal {
	r := Refusal{Code: CodeFileUnreadable, Message: err.Error()}
	var at *event.IndexError
	if errors.As(err, &at) {
		if at.Index != event.HeaderIndex {
			r.Index = &at.Index
		}
	}
	var rule *event.Error
	var short *NotReachedError
	var output *OutputError
	switch {
	case errors.As(err, &output):
		r.Code = CodeOutputUnwritable
		if errors.Is(output.Err, fs.ErrExist) {
			r.Code = CodeOutputExists
		}
	case errors.As(err, &rule):
		r.Code = string(rule.Code)
	case errors.As(err, &short):
		r.Code = CodeNotReached
	}
	return r
}

// AppendJSON appends the refusal as `foldhost replay --json` prints it; file is left out when empty.
func (r Refusal) AppendJSON(dst []byte, file string) []byte {
	dst = appendFile(append(dst, '{'), file)
	dst = append(dst, `"accepted":false,"error":`...)
	return append(r.AppendError(dst), '}')
}

// AppendError appends {"index","code","message"}.
func (r Refusal) AppendError(dst []byte) []byte {
	dst = append(dst, `{"index":`...)
	if r.Index != nil {
		dst = strconv.AppendInt(dst, *r.Index, 10)
	} else {
		dst = append(dst, "null"...)
	}
	dst = event.AppendString(append(dst, `,"code":`...), r.Code)
	dst = event.AppendString(append(dst, `,"message":`...), r.Message)
	return append(dst, '}')
}
