package event

import "encoding/json"

// Header is what is fixed about a session when it is made: line 1 of a log.
type Header struct {
	// Version is 0, the only format there is.
	Version int64
	// ID is 1 to 128 characters out of [A-Za-z0-9._-], not only dots.
	ID string
	// CreatedAt is in milliseconds since the epoch.
	CreatedAt int64
	// CWD is an absolute path, POSIX or Windows; empty is absent.
	CWD string
	// ParentSession is the id of the session that this one was forked from; empty is absent.
	ParentSession string
	// SeedLength is how many events came from the parent; nil is absent.
	SeedLength *int64
	// Origin is "subagent" or absent.
	Origin string
	// DelegationDepth is how many sessions deep the delegation is; nil is absent.
	DelegationDepth *int64
	// AgentPreset names the set of plugins; nil is absent.
	AgentPreset *string

	// raw is the object as it was read, known and unknown fields in their order, so that a log written elsewhere goes
	// out as it came in; nil for a header that was made here.
	raw json.RawMessage
}
