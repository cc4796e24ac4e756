package unit

import (
	"context"
	"encoding/json"
	"fmt"
)

// Tool is one tool as its plugin offers it: what a model may call, on behalf of one session.
type Tool struct {
	// Name is 1 to 64 characters out of [A-Za-z0-9_-].
	Name string
	// Description is for the model that calls it.
	Description string
	// ArgumentSchema is the JSON Schema (2020-12) of the arguments, an object. Required.
	ArgumentSchema json.RawMessage
	// ResultSchema is that of the structured value; nil makes a tool that returns none.
	ResultSchema json.RawMessage
	// Reads are keys of the plugin's own units whose values the tool wants to see.
	Reads []string
	Retry Retry
	// Call runs it. It may be called concurrently. An error is what the model is told: nothing is appended then. *GoneError and
	// *DeadlineError say that the tool did not answer; a panic is the callee's to contain.
	Call func(ctx context.Context, call ToolCall) (ToolResult, error)
}

// Retry says what happens when the log grew, between the cut that a tool saw and the append of its events, by an event that a
// unit of its plugin folds.
type Retry uint8

const (
	// RetryAuto calls the tool again with newer values, a bounded number of times.
	RetryAuto Retry = iota
	// RetryNever gives an error result. A request with a key also calls the tool once at most, whatever became of that.
	RetryNever
)

// ToolCall is one call: the arguments, and the cut of the session that the tool sees.
type ToolCall struct {
	Session string
	// Arguments are JSON.
	Arguments json.RawMessage
	// Seq is the head of the log at the cut; −1 on an empty log.
	Seq int64
	// Values are those of Reads at Seq, by key. A unit without a value there is left out.
	Values map[string]json.RawMessage
}

// ToolResult is what a tool gives back.
type ToolResult struct {
	// Text is what to show.
	Text string
	// Value is JSON, true to ResultSchema; nil where the tool has none.
	Value json.RawMessage
	// Events are appended together or not at all, in this order. Only of types that the plugin owns.
	Events []ToolEvent
}

// ToolEvent is an event that a tool wants appended.
type ToolEvent struct {
	Type      string
	Data      json.RawMessage
	Ignorable bool
}

const (
	// MaxToolName is the longest name of a tool: what model providers accept.
	MaxToolName = 64
	// MaxToolText is the most bytes of a tool's text, 1 MiB: it goes to a model, and more is a mistake.
	MaxToolText = 1 << 20
	// MaxToolEvents is the most events of one call. All of them stand in one batch and are held by everybody on the way. A tool changes a list or
	// a plan, which takes a few; without a bound one message carries half a million.
	MaxToolEvents = 1000
)

// CheckTool says what is wrong with a tool; the error is a *ToolError. Its schemas are compiled once to see that they can be, and
// thrown away.
func CheckTool(t *Tool) error {
	refuse := func(rule, format string, args ...any) error {
		return &ToolError{Name: t.Name, Rule: rule, Reason: fmt.Sprintf(format, args...)}
	}
	if len(t.Name) == 0 || len(t.Name) > MaxToolName {
		return refuse("name", "the name has %d bytes; it must be 1 to %d characters out of [A-Za-z0-9_-]", len(t.Name), MaxToolName)
	}
	for i, r := range t.Name {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
		default:
			return refuse("name", "the name has %q at byte %d; only [A-Za-z0-9_-] are allowed", r, i)
		}
	}
	if t.ArgumentSchema == nil {
		return refuse("argument-schema", "there is none; arguments must be checked before the tool sees them")
	}
	if _, err := compileSchema(t.ArgumentSchema); err != nil {
		return refuse("argument-schema", "%v", err)
	}
	if t.ResultSchema != nil {
		if _, err := compileSchema(t.ResultSchema); err != nil {
			return refuse("result-schema", "%v", err)
		}
	}
	for i, key := range t.Reads {
		if reason := wrongKey(key); reason != "" {
			return refuse("reads", "reads[%d]: %s", i, reason)
		}
	}
	if t.Retry > RetryNever {
		return refuse("retry", "%d is no way to retry", t.Retry)
	}
	return nil
}

// ToolError is one reason why a tool is refused.
type ToolError struct {
	Name string
	// Rule names the reason: "name", "argument-schema", "result-schema", "reads", "retry", "call".
	Rule   string
	Reason string
}

func (e *ToolError) Error() string {
	return fmt.Sprintf("tool %q refused (%s): %s", e.Name, e.Rule, e.Reason)
}
