package event

import (
	"encoding/json"
	"strings"
)

// DecodeHeader reads the header of a log: line 1, an object whose "type" is "session". Unknown fields are kept. The
// error is an *Error with code header-invalid; its Rule and Path name the field.
func DecodeHeader(line []byte) (Header, error) {
	space, fault := scan(line, MaxDepth, "$")
	if fault != nil {
		fault.Code = HeaderInvalid
		if fault.Rule == ruleSyntax {
			fault.Reason += `; the first line of a log is its header, an object with "type":"session"`
		}
		return Header{}, fault
	}
	h, fault := parseHeader(strip(line, space))
	if fault == nil {
		fault = h.check()
	}
	if fault != nil {
		return Header{}, fault
	}
	return h, nil
}

// parseHeader reads the fields of a compacted header and checks what a Header cannot hold: their JSON types, and fields
// that have to be there.
func parseHeader(raw json.RawMessage) (Header, *Error) {
	if len(raw) == 0 || raw[0] != '{' {
		return Header{}, headerFault("not-an-object", "$", "a header is an object")
	}
	if !textIs(Lookup(raw, "type"), "session") {
		return Header{}, headerFault("type-invalid", "$.type", `the first line of a log is its header, whose type is "session"`)
	}
	h := Header{raw: raw}
	var fault *Error
	fail := func(field, reason string) {
		if fault == nil {
			fault = headerFault(rulePrefix(field)+"-invalid", "$."+field, reason)
		}
	}
	text := func(field string) (string, bool) {
		value := Lookup(raw, field)
		if value == nil {
			return "", false
		}
		s, ok := String(value)
		if !ok {
			fail(field, field+" must be a string")
		}
		return s, ok
	}
	integer := func(field string) *int64 {
		value := Lookup(raw, field)
		if value == nil {
			return nil
		}
		n, ok := Integer(value)
		if !ok {
			fail(field, field+" must be an integer of at most 2^53-1")
			return nil
		}
		return &n
	}
	required := func(field string, n *int64) int64 {
		if n == nil {
			fail(field, field+" is missing; it must be an integer")
			return 0
		}
		return *n
	}
	h.Version = required("version", integer("version"))
	if id, ok := text("id"); ok {
		h.ID = id
	} else {
		fail("id", "id is missing; it must be a string")
	}
	h.CreatedAt = required("createdAt", integer("createdAt"))
	var present bool
	if h.CWD, present = text("cwd"); present && h.CWD == "" {
		return Header{}, headerFault("cwd-not-absolute", "$.cwd", "cwd is empty; leave it out or give an absolute path")
	}
	h.ParentSession, _ = text("parentSession")
	h.SeedLength = integer("seedLength")
	if h.Origin, present = text("origin"); present && h.Origin == "" {
		fail("origin", originReason)
	}
	h.DelegationDepth = integer("delegationDepth")
	if preset, ok := text("agentPreset"); ok {
		h.AgentPreset = &preset
	}
	if fault != nil {
		return Header{}, fault
	}
	return h, nil
}

// rulePrefix turns a field's name into the form of rules: createdAt, created-at.
func rulePrefix(field string) string {
	var b strings.Builder
	for _, c := range field {
		if 'A' <= c && c <= 'Z' {
			b.WriteByte('-')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}
