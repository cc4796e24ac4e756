package unit

// Signatures that the other packages build against.

import (
	"context"
	"encoding/json"
)

// DefaultMaxBytes is the default limit on one state or view: 1 MiB.
const DefaultMaxBytes = 1 << 20

// Compiled is a valid definition with its schemas compiled: what a registry works with. Immutable, safe for concurrent use.
type Compiled struct {
	Definition
	// Digest covers the schemas, the event types and, where config-bound, the config's digest: the def of a row.
	Digest string
}

// Compile checks a definition and compiles its schemas once. The error is a *DefinitionError. Schemas may refer to nothing outside themselves.
func Compile(d Definition) (*Compiled, error) { panic("not yet") }

// Folds says whether the unit folds events of the type.
func (c *Compiled) Folds(typ string) bool { panic("not yet") }

// CheckView says whether a view is lossless JSON, within limit bytes and true to its schema; the error is a *ValueError.
func (c *Compiled) CheckView(view json.RawMessage, limit int) error { panic("not yet") }

// CheckState is CheckView for an encoded state.
func (c *Compiled) CheckState(state json.RawMessage, limit int) error { panic("not yet") }

// DefinitionError is one reason why a definition is refused.
type DefinitionError struct {
	Key string
	// Rule names the reason: "key", "state-version", "state-schema", "view-schema", "events", "fold", "config".
	Rule   string
	Reason string
}

func (e *DefinitionError) Error() string { panic("not yet") }

// ValueError is a state or view that is not what it must be.
type ValueError struct {
	// What is "state" or "view".
	What string
	// Path is the place in the value, Reason what is wrong there.
	Path, Reason string
	// Size and Limit are set when the value is too large.
	Size, Limit int
}

func (e *ValueError) Error() string { panic("not yet") }

// Local serves Inline folds behind the Instance contract: cells by opaque id, batches in order, on a goroutine of its own. It is
// how a plugin process keeps its cells, and how tests get an instance without a process.
type Local struct{}

// NewLocal returns an instance of these definitions, all of which must have an Inline.
func NewLocal(defs ...Definition) (*Local, error) { panic("not yet") }

// Submit implements Instance.
func (l *Local) Submit(ctx context.Context, b Batch, done func(Reply)) { panic("not yet") }

// Close stops the goroutine and answers what is queued with *GoneError.
func (l *Local) Close() { panic("not yet") }
