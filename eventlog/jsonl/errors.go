package jsonl

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/foldhost/foldhost/event"
)

// ErrRead is given by a second pass over one Reader: what it read is gone.
var ErrRead = errors.New("jsonl: the log was read already; open it again")

// LineError says at which line of which file something was refused. It stands inside the *event.IndexError that names the event.
type LineError struct {
	// Path is empty for a stream.
	Path string
	// Line counts from 1, the header.
	Line int64
	Err  error
}

func (e *LineError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("line %d: %v", e.Line, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err)
}

func (e *LineError) Unwrap() error { return e.Err }

// LineTooLongError: a line that is not read, because no event and no sound row is that large. It unwraps to an *event.Error with code
// too-large.
type LineTooLongError struct {
	// Size and Limit are in bytes, without the newline.
	Size, Limit int64
}

func (e *LineTooLongError) Error() string {
	return fmt.Sprintf("the line has %d bytes and the limit is %d; store what is large elsewhere and refer to it", e.Size, e.Limit)
}

// Unwrap gives the code.
func (e *LineTooLongError) Unwrap() error {
	return &event.Error{Code: event.TooLarge, Rule: "line-size", Reason: e.Error(), Size: int(e.Size), Limit: int(e.Limit)}
}

// GrowthError: a log that comes to far more than its file has bytes, as none does that was recorded. What follows is not read. It unwraps to an *event.Error with code too-large.
type GrowthError struct {
	// Size is what the file had come to, in bytes, when that was more than the Limit for as much of it as was Read.
	Size, Limit, Read int64
}

func (e *GrowthError) Error() string {
	return fmt.Sprintf("%d bytes of the file come to %d bytes of log, and the limit for them is %d: unpack it first, since a log that is not compressed has no such limit", e.Read, e.Size, e.Limit)
}

// Unwrap gives the code.
func (e *GrowthError) Unwrap() error {
	return &event.Error{Code: event.TooLarge, Rule: "growth", Reason: e.Error(), Size: int(e.Size), Limit: int(e.Limit)}
}

// ReadError: the bytes could not be got, from the disk or out of zstd. What the log holds is not known.
type ReadError struct {
	Path string
	Err  error
}

func (e *ReadError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("reading the log: %v", e.Err)
	}
	cause := e.Err
	if at, ok := cause.(*fs.PathError); ok && at.Path == e.Path {
		cause = at.Err // Without the path once more.
	}
	return fmt.Sprintf("reading %s: %v", e.Path, cause)
}

func (e *ReadError) Unwrap() error { return e.Err }

// GapError: an event does not continue the log. It refuses the file when a turn ends later, as the damage is in the middle then. It unwraps to an *event.Error with code seq-not-contiguous.
type GapError struct{ Seq, Expected int64 }

func (e *GapError) Error() string {
	return fmt.Sprintf("seq is %d where %d is expected", e.Seq, e.Expected)
}

// Unwrap gives the code.
func (e *GapError) Unwrap() error {
	return &event.Error{Code: event.SeqNotContiguous, Rule: "seq-not-contiguous", Path: "$.seq", Reason: e.Error()}
}
