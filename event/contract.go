package event

// Signatures that the other packages build against; bodies are being written in their own files.

import "encoding/json"

// Compact checks raw against the lossless-JSON rule and returns it without white space outside strings. The result
// shares nothing with raw. The error is an *Error with code data-not-lossless and the path of the place, prefix first.
func Compact(raw []byte, prefix string) (json.RawMessage, error) { panic("not yet") }

// Encode makes lossless JSON of a Go value: json.RawMessage and []byte are taken as JSON text and compacted, everything else is
// marshalled without rewriting <, > and &. Values that JSON cannot carry are refused with code data-not-lossless.
func Encode(v any) (json.RawMessage, error) { panic("not yet") }

// DecodeDraft reads one event: the lossless-JSON rule for the whole line, then the envelope. limit bounds len(line); 0 is
// DefaultMaxBytes.
func DecodeDraft(line []byte, limit int) (Draft, error) { panic("not yet") }

// CheckShape checks what data must look like: messages and request headers, then the retired encodings. Other types pass.
func CheckShape(e *Event) error { panic("not yet") }

// AppendJSON appends the event as one JSON object in the fixed key order type, seq, time, data, surfaceOp,
// sourceEventSeqs, ignorable. Data is copied byte for byte.
func (e *Event) AppendJSON(dst []byte) []byte { panic("not yet") }

// EncodedSize is len(AppendJSON(nil)) without making it.
func (e *Event) EncodedSize() int { panic("not yet") }

// DecodeHeader reads the header of a log: line 1, an object whose "type" is "session". Unknown fields are kept.
func DecodeHeader(line []byte) (Header, error) { panic("not yet") }

// Check applies the header's rules, each bad field with an error of its own.
func (h *Header) Check() error { panic("not yet") }

// AppendJSON appends the header as line 1 of a log, "type":"session" first when it was made here, as it was read when it
// was read. No newline.
func (h *Header) AppendJSON(dst []byte) []byte { panic("not yet") }

// Lookup returns the member of a JSON object by path of keys, as it stands, or nil when it is not there or a value on the
// way is not an object. raw must be valid JSON. It allocates nothing when keys hold no escapes.
func Lookup(raw json.RawMessage, path ...string) json.RawMessage { panic("not yet") }

// Elements calls yield for each element of a JSON array in order, until yield says false; it reports whether raw is an array.
func Elements(raw json.RawMessage, yield func(elem json.RawMessage) bool) bool { panic("not yet") }

// Members calls yield for each member of a JSON object in order, key decoded; it reports whether raw is an object.
func Members(raw json.RawMessage, yield func(key string, value json.RawMessage) bool) bool {
	panic("not yet")
}

// String decodes a JSON string; ok is false when raw is not one. Lone surrogates come out in WTF-8.
func String(raw json.RawMessage) (s string, ok bool) { panic("not yet") }

// Integer reads a JSON number that is an integer of at most MaxInteger in size, in any spelling (1, 1.0, 1e0).
func Integer(raw json.RawMessage) (n int64, ok bool) { panic("not yet") }

// AppendString appends s as a JSON string, escaping only what JSON asks for; WTF-8 surrogates go out as escapes.
func AppendString(dst []byte, s string) []byte { panic("not yet") }

// Equal says whether two values are equal as JSON: key order does not matter, array order does, numbers by value (1 = 1.0),
// strings by what they decode to.
func Equal(a, b json.RawMessage) bool { panic("not yet") }

// MessageOf returns the message that a surface event shows to a model: the data of user/message, the message of
// assistant/message (nil when its content is empty) and of tool/result; nil for any other type.
func MessageOf(e *Event) json.RawMessage { panic("not yet") }

// Fingerprint identifies an event by its content; rows use it to prove that the log still holds the event they stand on.
func Fingerprint(e *Event) string { panic("not yet") }
