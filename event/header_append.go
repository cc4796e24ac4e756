package event

import (
	"errors"
	"strconv"
)

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
