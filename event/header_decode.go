package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// MaxIDLength is how many characters the id of a session may have: with a suffix it still fits into a file name.
const MaxIDLength = 128

// DecodeHeader reads the header of a log: line 1, an object whose "type" is "session". Unknown fields are kept. The
// error is an *Error with code header-invalid; its Rule and Path name the field.
func DecodeHeader(line []byte) (Header, error) {
	space, fault := scan(line, MaxDepth, "$")
	if fault != nil {
		fault.Code = HeaderInvalid
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

// Check applies the header's rules, each bad field with an error of its own: an *Error with code header-invalid.
func (h *Header) Check() error {
	if fault := h.check(); fault != nil {
		return fault
	}
	return nil
}

// CheckID applies the rule for ids of sessions: 1 to 128 characters out of [A-Za-z0-9._-], not only dots. The error is an
// *Error with code header-invalid.
func CheckID(id string) error {
	if fault := checkID(id); fault != nil {
		return fault
	}
	return nil
}

// AppendJSON appends the header as line 1 of a log: as it was read when it was read and not changed since, otherwise with
// "type":"session" first, then the fixed fields, then unknown ones that were read. No newline.
func (h *Header) AppendJSON(dst []byte) []byte {
	if h.raw == nil {
		dst = append(dst, `{"type":"session",`...)
		return append(h.appendFields(dst), '}')
	}
	if read, fault := parseHeader(h.raw); fault == nil && read.same(h) {
		return append(dst, h.raw...)
	}
	dst = append(dst, `{"type":"session",`...)
	dst = h.appendFields(dst)
	eachMember(h.raw, func(key, value []byte) bool {
		if !isHeaderField(key) {
			dst = append(dst, ',', '"')
			dst = append(dst, key...)
			dst = append(dst, '"', ':')
			dst = append(dst, value...)
		}
		return true
	})
	return append(dst, '}')
}

// AppendFields appends the fixed fields as a JSON object without "type" and without unknown fields, as the API shows them.
func (h *Header) AppendFields(dst []byte) []byte {
	return append(h.appendFields(append(dst, '{')), '}')
}

var errMarshalHeader = errors.New("encoding/json would lose what the header was read with; use AppendJSON, AppendFields and DecodeHeader")

// MarshalJSON always fails; use AppendJSON or AppendFields.
func (Header) MarshalJSON() ([]byte, error) { return nil, errMarshalHeader }

// UnmarshalJSON always fails; use DecodeHeader.
func (*Header) UnmarshalJSON([]byte) error { return errMarshalHeader }

func (h *Header) appendFields(dst []byte) []byte {
	text := func(name, value string) {
		dst = append(append(append(dst, ',', '"'), name...), '"', ':')
		dst = AppendString(dst, value)
	}
	number := func(name string, value int64) {
		dst = append(append(append(dst, ',', '"'), name...), '"', ':')
		dst = strconv.AppendInt(dst, value, 10)
	}
	dst = append(dst, `"version":`...)
	dst = strconv.AppendInt(dst, h.Version, 10)
	text("id", h.ID)
	number("createdAt", h.CreatedAt)
	if h.CWD != "" {
		text("cwd", h.CWD)
	}
	if h.ParentSession != "" {
		text("parentSession", h.ParentSession)
	}
	if h.SeedLength != nil {
		number("seedLength", *h.SeedLength)
	}
	if h.Origin != "" {
		text("origin", h.Origin)
	}
	if h.DelegationDepth != nil {
		number("delegationDepth", *h.DelegationDepth)
	}
	if h.AgentPreset != nil {
		text("agentPreset", *h.AgentPreset)
	}
	return dst
}

func isHeaderField(key []byte) bool {
	for _, name := range [...]string{"type", "version", "id", "createdAt", "cwd", "parentSession", "seedLength", "origin", "delegationDepth", "agentPreset"} {
		if keyIs(key, name) {
			return true
		}
	}
	return false
}

// same compares the fixed fields.
func (h *Header) same(o *Header) bool {
	return h.Version == o.Version && h.ID == o.ID && h.CreatedAt == o.CreatedAt && h.CWD == o.CWD &&
		h.ParentSession == o.ParentSession && h.Origin == o.Origin && samePtr(h.SeedLength, o.SeedLength) &&
		samePtr(h.DelegationDepth, o.DelegationDepth) && samePtr(h.AgentPreset, o.AgentPreset)
}

func samePtr[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func headerFault(rule, path, reason string) *Error {
	return &Error{Code: HeaderInvalid, Rule: rule, Path: path, Reason: reason}
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

const originReason = `origin can only be "subagent"; leave it out otherwise`

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

func (h *Header) check() *Error {
	switch {
	case h.Version > 0:
		return headerFault("version-unsupported", "$.version", fmt.Sprintf("version %d was written by a newer program; this one reads version 0, so upgrade it", h.Version))
	case h.Version < 0:
		return headerFault("version-unsupported", "$.version", fmt.Sprintf("version %d does not exist; this program reads version 0", h.Version))
	}
	if fault := checkID(h.ID); fault != nil {
		return fault
	}
	small := func(n *int64) bool { return n == nil || *n >= 0 && *n <= MaxInteger }
	switch {
	case !small(&h.CreatedAt):
		return headerFault("created-at-invalid", "$.createdAt", "createdAt must be an integer from 0 to 2^53-1, milliseconds since the epoch")
	case !carries(h.CWD):
		return headerFault("cwd-invalid", "$.cwd", "cwd holds bytes that are not UTF-8")
	case h.CWD != "" && !absolute(h.CWD):
		return headerFault("cwd-not-absolute", "$.cwd", `cwd must be an absolute path, such as /work, C:\work or \\server\share`)
	case !carries(h.ParentSession):
		return headerFault("parent-session-invalid", "$.parentSession", "parentSession holds bytes that are not UTF-8")
	case !small(h.SeedLength):
		return headerFault("seed-length-invalid", "$.seedLength", "seedLength must be an integer from 0 to 2^53-1")
	case h.Origin != "" && h.Origin != "subagent":
		return headerFault("origin-invalid", "$.origin", originReason)
	case !small(h.DelegationDepth):
		return headerFault("delegation-depth-invalid", "$.delegationDepth", "delegationDepth must be an integer from 0 to 2^53-1")
	case h.AgentPreset != nil && !carries(*h.AgentPreset):
		return headerFault("agent-preset-invalid", "$.agentPreset", "agentPreset holds bytes that are not UTF-8")
	}
	return nil
}

func checkID(id string) *Error {
	if id == "" || len(id) > MaxIDLength {
		return headerFault("id-invalid", "$.id", fmt.Sprintf("id has %d characters; it must have 1 to %d", len(id), MaxIDLength))
	}
	dots := 0
	for i := 0; i < len(id); i++ {
		switch c := id[i]; {
		case c == '.':
			dots++
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', isDigit(c), c == '_', c == '-':
		default:
			return headerFault("id-invalid", "$.id", "id may hold only letters A to Z and a to z, digits, dot, underscore and hyphen")
		}
	}
	if dots == len(id) {
		return headerFault("id-invalid", "$.id", "id holds only dots, which file systems read as directories")
	}
	return nil
}

// absolute says whether a path is absolute on POSIX or on Windows, whatever this host is: logs travel.
func absolute(path string) bool {
	if path[0] == '/' {
		return true
	}
	isSlash := func(c byte) bool { return c == '/' || c == '\\' }
	if len(path) >= 3 && path[1] == ':' && isSlash(path[2]) {
		c := path[0] | 0x20
		return 'a' <= c && c <= 'z'
	}
	// \\server\share: both parts have to be there.
	rest, ok := strings.CutPrefix(path, `\\`)
	server := strings.IndexFunc(rest, func(r rune) bool { return r == '\\' || r == '/' })
	return ok && server > 0 && len(rest) > server+1 && !isSlash(rest[server+1])
}
