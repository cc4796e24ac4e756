package event

import (
	"fmt"
	"strings"
)

// MaxIDLength is how many characters the id of a session may have: with a suffix it still fits into a file name.
const MaxIDLength = 128

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

func headerFault(rule, path, reason string) *Error {
	return &Error{Code: HeaderInvalid, Rule: rule, Path: path, Reason: reason}
}

const originReason = `origin can only be "subagent"; leave it out otherwise`

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
