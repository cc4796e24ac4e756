package event

import "bytes"

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
		name := PathKey(string(appendDecoded(nil, key)))
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
