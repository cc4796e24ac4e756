package event

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// rawFactor is how much larger than the limit on the encoded event a line may be and still be read: white space and long
// spellings of the envelope do not count towards the limit, but reading them must be bounded too.
const rawFactor = 4

// DecodeDraft reads one event: the lossless-JSON rule for the whole line, then the envelope. It does not check shapes or
// the surface. limit bounds the encoded size of the event in bytes, and four times it that of the line; 0 is
// DefaultMaxBytes. The draft shares nothing with line. The error is an *Error with code too-large, data-not-lossless or
// envelope-invalid.
func DecodeDraft(line []byte, limit int) (Draft, error) {
	if limit <= 0 {
		limit = DefaultMaxBytes
	}
	if len(line)/rawFactor > limit {
		return Draft{}, tooLarge(len(line), limit)
	}
	// The data may nest MaxDepth deep, and the envelope stands around it.
	space, fault := scan(line, MaxDepth+1, "$")
	if fault != nil {
		return Draft{}, fault
	}
	var r envelopeReader
	if !eachMember(line, r.member) {
		return Draft{}, envelopeFault("not-an-object", "$", "an event is an object with type, seq, time and data")
	}
	if fault := r.finish(); fault != nil {
		return Draft{}, fault
	}
	d := r.draft
	if space == 0 {
		d.Data = bytes.Clone(r.data)
	} else {
		// Cloned again, so that the data of a pretty-printed event does not hold on to the room of its white space.
		d.Data = bytes.Clone(appendStripped(make([]byte, 0, len(r.data)), r.data))
	}
	if len(line) > limit {
		if size := d.EncodedSize(); size > limit {
			return Draft{}, tooLarge(size, limit)
		}
	}
	return d, nil
}

// CheckSize refuses an event whose encoded size is above limit bytes, with code too-large; a limit of 0 is DefaultMaxBytes.
func CheckSize(e *Event, limit int) error {
	if limit <= 0 {
		limit = DefaultMaxBytes
	}
	if size := e.EncodedSize(); size > limit {
		return tooLarge(size, limit)
	}
	return nil
}

// CheckType refuses a type that JSON cannot carry unchanged, with code envelope-invalid. It is for types that come from Go.
func CheckType(typ string) error {
	if !carries(typ) {
		return envelopeFault("type-invalid", "$.type", "type holds bytes that are not UTF-8")
	}
	return nil
}

func tooLarge(size, limit int) *Error {
	return &Error{Code: TooLarge, Rule: "event-size",
		Reason: fmt.Sprintf("the event has %d bytes and the limit is %d; store what is large elsewhere and refer to it", size, limit)}
}

func envelopeFault(rule, path, reason string) *Error {
	return &Error{Code: EnvelopeInvalid, Rule: rule, Path: path, Reason: reason}
}

// envelopeReader collects the members of one event. Scanning has made sure that no key comes twice.
type envelopeReader struct {
	draft          Draft
	data           []byte
	typ, seq, time bool
	fault          *Error
}

func (r *envelopeReader) fail(rule, path, reason string) bool {
	r.fault = envelopeFault(rule, path, reason)
	return false
}

func (r *envelopeReader) member(key, value []byte) bool {
	d := &r.draft
	switch {
	case keyIs(key, "type"):
		if d.Type, r.typ = typeName(value); !r.typ {
			return r.fail("type-invalid", "$.type", "type must be a string")
		}
	case keyIs(key, "seq"):
		if d.Seq, r.seq = Integer(value); !r.seq || d.Seq < 0 {
			return r.fail("seq-invalid", "$.seq", "seq must be an integer from 0 to 2^53-1")
		}
	case keyIs(key, "time"):
		if d.Time, r.time = Integer(value); !r.time {
			return r.fail("time-invalid", "$.time", "time must be an integer of at most 2^53-1 in size, milliseconds since the epoch")
		}
	case keyIs(key, "data"):
		r.data = value
	case keyIs(key, "surfaceOp"):
		d.Op, d.OpFault = decodeOp(value)
	case keyIs(key, "sourceEventSeqs"):
		d.Sources, d.SourcesFault = decodeSources(value)
	case keyIs(key, "ignorable"):
		if string(value) != "true" {
			return r.fail("ignorable-invalid", "$.ignorable", "ignorable can only be true; leave it out otherwise")
		}
		d.Ignorable = true
	default:
		name := pathKey(string(appendDecoded(nil, key)))
		return r.fail("unknown-key", "$"+name, "an event has no such key; keys are type, seq, time, data, surfaceOp, sourceEventSeqs and ignorable, in this spelling")
	}
	return true
}

func (r *envelopeReader) finish() *Error {
	switch {
	case r.fault != nil:
		return r.fault
	case !r.typ:
		return envelopeFault("type-missing", "$.type", "type is missing; it must be a string")
	case !r.seq:
		return envelopeFault("seq-missing", "$.seq", "seq is missing; it must be an integer from 0 to 2^53-1")
	case !r.time:
		return envelopeFault("time-missing", "$.time", "time is missing; it must be an integer, milliseconds since the epoch")
	case r.data == nil:
		return envelopeFault("data-missing", "$.data", "data is missing; an event without content carries null")
	}
	return nil
}

// typeName decodes a type. The core types, which are most of every log, come out without an allocation.
func typeName(raw []byte) (string, bool) {
	text, ok := inner(raw)
	if !ok {
		return "", false
	}
	switch string(text) {
	case AssistantChunk:
		return AssistantChunk, true
	case AssistantMessage:
		return AssistantMessage, true
	case UserMessage:
		return UserMessage, true
	case ToolCall:
		return ToolCall, true
	case ToolResult:
		return ToolResult, true
	case StepStart:
		return StepStart, true
	case StepEnd:
		return StepEnd, true
	case TurnStart:
		return TurnStart, true
	case TurnEnd:
		return TurnEnd, true
	}
	return String(raw)
}

// DecodeSurfaceOp reads a surfaceOp. fault says why it is neither "append" nor a well-formed replacement.
func DecodeSurfaceOp(raw []byte) (op Op, fault string) { return decodeOp(trim(raw)) }

// DecodeSources reads sourceEventSeqs. fault says why they are not an array of integers ≥ 0. An empty array is not nil.
func DecodeSources(raw []byte) (sources []int64, fault string) { return decodeSources(trim(raw)) }

func decodeOp(raw []byte) (op Op, fault string) {
	if len(raw) > 0 && raw[0] == '"' {
		if textIs(raw, "append") {
			return Append(), ""
		}
		return Op{}, `surfaceOp is a string other than "append"`
	}
	var replaces, start, end bool
	if !eachMember(raw, func(key, value []byte) bool {
		switch {
		case keyIs(key, "op"):
			if replaces = textIs(value, "replace"); !replaces {
				fault = `surfaceOp.op must be "replace"`
			}
		case keyIs(key, "start"):
			if op.Start, start = Integer(value); !start || op.Start < 0 {
				fault = "surfaceOp.start must be an integer from 0"
			}
		case keyIs(key, "end"):
			if op.End, end = Integer(value); !end || op.End < 0 {
				fault = "surfaceOp.end must be an integer from 0"
			}
		default:
			fault = "surfaceOp has a key other than op, start and end"
		}
		return fault == ""
	}) {
		return Op{}, `surfaceOp must be "append" or {"op":"replace","start":…,"end":…}`
	}
	if fault == "" && !(replaces && start && end) {
		fault = "a surfaceOp that is an object must have op, start and end"
	}
	if fault != "" {
		return Op{}, fault
	}
	op.Kind = OpReplace
	return op, ""
}

func decodeSources(raw []byte) (sources []int64, fault string) {
	// Sized by the commas, so that the 128,000 sources of a long message cost one allocation.
	if len(raw) > 0 && raw[0] == '[' {
		sources = make([]int64, 0, bytes.Count(raw, []byte{','})+1)
	}
	if !Elements(raw, func(elem json.RawMessage) bool {
		seq, ok := Integer(elem)
		if !ok || seq < 0 {
			fault = fmt.Sprintf("sourceEventSeqs[%d] is not an integer from 0 to 2^53-1", len(sources))
			return false
		}
		sources = append(sources, seq)
		return true
	}) {
		return nil, "sourceEventSeqs must be an array of seqs"
	}
	if fault != "" {
		return nil, fault
	}
	return sources, ""
}
