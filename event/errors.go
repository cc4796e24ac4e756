package event

import (
	"fmt"
	"strings"
)

// Code is the stable name of a rule that was broken, as programs see it.
type Code string

// The codes of refused headers and events.
const (
	HeaderInvalid        Code = "header-invalid"
	EnvelopeInvalid      Code = "envelope-invalid"
	SeqNotContiguous     Code = "seq-not-contiguous"
	DataNotLossless      Code = "data-not-lossless"
	EncodingRetired      Code = "encoding-retired"
	RequestHeaderInvalid Code = "request-header-invalid"
	MessageInvalid       Code = "message-invalid"
	SurfaceIneligible    Code = "surface-ineligible"
	SurfaceOpMissing     Code = "surface-op-missing"
	SurfaceOpInvalid     Code = "surface-op-invalid"
	SurfaceRangeInvalid  Code = "surface-range-invalid"
	SourcesInvalid       Code = "sources-invalid"
	SourcesIncomplete    Code = "sources-incomplete"
	ToolResultRewrite    Code = "tool-result-rewrite"
	TooLarge             Code = "too-large"
)

// Error is one broken rule.
type Error struct {
	Code Code
	// Rule names the rule more finely than Code, such as "duplicate-key" or "cwd-not-absolute". Stable.
	Rule string
	// Path is the place in the value, such as "$.data.todos[2]"; empty where there is none.
	Path string
	// Reason says in one sentence what is wrong, and what to do where that is not the same thing.
	Reason string
	// Size and Limit are in bytes, for too-large alone.
	Size, Limit int
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Code))
	if e.Path != "" {
		b.WriteString(" at ")
		b.WriteString(e.Path)
	}
	b.WriteString(": ")
	b.WriteString(e.Reason)
	return b.String()
}

// HeaderIndex is the index that an IndexError gives to the header.
const HeaderIndex = -1

// IndexError says at which event of a sequence (a seed, an import, a batch, a log) something was refused.
type IndexError struct {
	// Index counts events from 0, after packed rows are expanded; HeaderIndex is the header.
	Index int64
	Err   error
}

func (e *IndexError) Error() string {
	if e.Index == HeaderIndex {
		return fmt.Sprintf("header: %v", e.Err)
	}
	return fmt.Sprintf("event %d: %v", e.Index, e.Err)
}

func (e *IndexError) Unwrap() error { return e.Err }
