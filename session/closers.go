package session

import (
	"encoding/json"
	"iter"
	"slices"
	"strconv"

	"github.com/foldhost/foldhost/event"
)

// The error codes of the tool results that close an interrupted turn.
const (
	// CodeToolNotStarted: the call was asked for and never begun, so it can be made again.
	CodeToolNotStarted = "TOOL_NOT_STARTED"
	// CodeToolOutcomeUnknown: the call was begun, and nobody knows how far it got.
	CodeToolOutcomeUnknown = "TOOL_OUTCOME_UNKNOWN"
)

const (
	textNotStarted = "The turn was interrupted before this tool call was started, so it had no effect. " +
		"It is safe to make the call again."
	textOutcomeUnknown = "The turn was interrupted after this tool call was started, and its outcome was not recorded. " +
		"Make the call again only if it is read-only or idempotent; otherwise verify first what it did, or ask the user."
)

// CloserTypes are the types that Closers looks at.
func CloserTypes() []string {
	return []string{event.TurnStart, event.TurnEnd, event.StepStart, event.StepEnd, event.AssistantMessage, event.ToolCall, event.ToolResult}
}

// Closers gives the events that close the turn in which a log ends: a pure function, none when the log does not end inside a turn. events are, in log
// order, those of CloserTypes at least, from the last turn/start at the latest; last is the log's last event (nil: empty log). The only errors are those
// that events yields.
//
// For each tool call without a result, in order, it is an error tool/result; then step/end if a step is open; then turn/end
// with the reason interrupted. Seqs go on from last, times are its time. A log to which the closers were appended has none.
func Closers(events iter.Seq2[event.Event, error], last *event.Event) ([]event.Event, error) {
	var t openTurn
	for ev, err := range events {
		if err != nil {
			return nil, err
		}
		t.follow(&ev)
	}
	if !t.open || last == nil {
		return nil, nil
	}
	return t.close(last), nil
}

// openTurn is what is open at a place in a log.
type openTurn struct {
	open bool
	// turn is the data of the turn/start, step that of the step/start; nil when no step is open.
	turn, step json.RawMessage
	// calls are the calls made, in order, and waiting the index of each that has no result.
	calls   []pendingCall
	waiting map[string]int
	// started are the seqs of the logged tool/calls by call id.
	started map[string]int64
}

// pendingCall is a call that waits for a result, or has waited.
type pendingCall struct {
	id string
	// place is the beginning of its result's data: {"turn":…,"step":… as the message that made the call has them. The message itself may be large, and a
	// turn may hold very many.
	place []byte
}

func (t *openTurn) follow(e *event.Event) {
	switch e.Type {
	case event.TurnStart:
		*t = openTurn{open: true, turn: e.Data}
	case event.TurnEnd:
		*t = openTurn{}
	case event.StepStart:
		t.step = e.Data
	case event.StepEnd:
		t.step, t.calls, t.waiting, t.started = nil, nil, nil, nil
	case event.AssistantMessage:
		var place []byte
		for id := range toolCalls(event.MessageOf(e)) {
			if place == nil {
				place = appendNumbers([]byte{'{'}, e.Data, "turn", "step")
			}
			t.ask(id, place)
		}
	case event.ToolCall:
		if id, ok := event.String(event.Lookup(e.Data, "callId")); ok {
			if t.started == nil {
				t.started = make(map[string]int64)
			}
			t.started[id] = e.Seq
		}
	case event.ToolResult:
		if id, ok := toolResultCall(e); ok {
			delete(t.waiting, id)
			delete(t.started, id)
		}
	}
}

// ask notes a call; one that waits already is the same call.
func (t *openTurn) ask(id string, place []byte) {
	if _, waits := t.waiting[id]; waits {
		return
	}
	if t.waiting == nil {
		t.waiting = make(map[string]int)
	}
	t.waiting[id] = len(t.calls)
	t.calls = append(t.calls, pendingCall{id, place})
}

// toolCalls gives the ids of the tool-call blocks of an assistant's message, in order.
func toolCalls(message json.RawMessage) iter.Seq[string] {
	return func(yield func(string) bool) {
		event.Elements(event.Lookup(message, "content"), func(block json.RawMessage) bool {
			if kind, _ := event.String(event.Lookup(block, "type")); kind != "tool-call" {
				return true
			}
			id, ok := event.String(event.Lookup(block, "id"))
			return !ok || yield(id)
		})
	}
}

// toolResultCall is the id of the call that a tool/result answers.
func toolResultCall(e *event.Event) (id string, ok bool) {
	return event.String(event.Lookup(event.MessageOf(e), "source", "callId"))
}

func (t *openTurn) close(last *event.Event) []event.Event {
	var closers []event.Event
	add := func(typ string, data []byte) *event.Event {
		closers = append(closers, event.Event{Type: typ, Seq: last.Seq + 1 + int64(len(closers)), Time: last.Time, Data: data})
		return &closers[len(closers)-1]
	}
	for i, call := range t.calls {
		if at, waits := t.waiting[call.id]; !waits || at != i {
			continue // answered, or made again later
		}
		startSeq, started := t.started[call.id]
		e := add(event.ToolResult, nil)
		e.Op = event.Append()
		if started {
			e.Sources = []int64{startSeq}
		}
		e.Data = interruptedResult(call, e.Seq, started)
	}
	if t.step != nil {
		data := appendNumbers([]byte{'{'}, t.step, "turn", "step")
		add(event.StepEnd, append(data, '}'))
	}
	data := appendNumbers([]byte{'{'}, t.turn, "turn")
	if len(data) > 1 {
		data = append(data, ',')
	}
	add(event.TurnEnd, append(data, `"reason":{"kind":"interrupted"}}`...))
	return closers
}

// interruptedResult is the data of the tool/result for a call that got none.
func interruptedResult(call pendingCall, seq int64, started bool) []byte {
	name, code, text := "ToolNotStartedError", CodeToolNotStarted, textNotStarted
	if started {
		name, code, text = "ToolOutcomeUnknownError", CodeToolOutcomeUnknown, textOutcomeUnknown
	}
	data := slices.Clone(call.place)
	if len(data) > 1 {
		data = append(data, ',')
	}
	data = append(data, `"message":{"id":`...)
	data = event.AppendString(data, "interrupted-tool-result-"+call.id+"-"+strconv.FormatInt(seq, 10))
	data = append(data, `,"role":"user","content":[{"type":"tool-result","toolCallId":`...)
	data = event.AppendString(data, call.id)
	data = append(data, `,"content":[{"type":"text","text":`...)
	data = event.AppendString(data, text)
	data = append(data, `}],"isError":true}],"source":{"kind":"tool","callId":`...)
	data = event.AppendString(data, call.id)
	data = append(data, `}},"error":{"name":`...)
	data = event.AppendString(data, name)
	data = append(data, `,"code":`...)
	data = event.AppendString(data, code)
	return append(data, `}}`...)
}

// appendNumbers appends those members of an object that are there, as they stand: the host does not judge how a turn is numbered.
func appendNumbers(dst []byte, object json.RawMessage, names ...string) []byte {
	for _, name := range names {
		value := event.Lookup(object, name)
		if value == nil {
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = event.AppendString(dst, name)
		dst = append(dst, ':')
		dst = append(dst, value...)
	}
	return dst
}
