package jsonl

import "fmt"

// WarningKind is why a tail was dropped.
type WarningKind string

const (
	// TornLine: the last line has no newline, as its writer died. It is dropped even when it could be read: nobody
	// acknowledged it.
	TornLine WarningKind = "torn-line"
	// TornTail: a line is no event, or its seq does not continue the log, and no turn ends after it. It is dropped with all that
	// comes after it.
	TornTail WarningKind = "torn-tail"
	// TornFrame: the last zstd frame is incomplete. Its complete lines are read.
	TornFrame WarningKind = "torn-frame"
)

// Warning says what was dropped.
type Warning struct {
	Kind WarningKind
	// Line is the first line dropped, from 1, the header; Index is the event that would have stood there.
	Line, Index int64
	// Bytes is how much text was dropped, newlines included.
	Bytes int64
	// Cause is what was wrong with the first line dropped; nil for a TornLine.
	Cause error
}

func (w Warning) String() string {
	s := fmt.Sprintf("%d bytes from line %d on (event %d) were dropped", w.Bytes, w.Line, w.Index)
	switch w.Kind {
	case TornLine:
		return s + ": the last line has no newline"
	case TornFrame:
		return s + ": the last zstd frame is incomplete"
	default:
		return fmt.Sprintf("%s: %v", s, w.Cause)
	}
}
