package eventlog

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by every call on a closed store.
var ErrClosed = errors.New("eventlog: the store is closed")

// NotFoundError: no log has this id.
type NotFoundError struct{ ID string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("session %q not found", e.ID) }

// ExistsError: a log with this id is there already.
type ExistsError struct{ ID string }

func (e *ExistsError) Error() string { return fmt.Sprintf("session %q already exists", e.ID) }

// IncarnationError: the id exists and is another life than the one meant; positions and rows of the old one mean nothing.
type IncarnationError struct{ ID, Have, Want string }

func (e *IncarnationError) Error() string {
	return fmt.Sprintf("session %q is incarnation %s now, not %s: it was deleted and made again, start over", e.ID, e.Have, e.Want)
}

// SeqConflictError: the log's length is not what the append expected.
type SeqConflictError struct {
	ID string
	// Seq is the length of the log, Expected what the caller thought.
	Seq, Expected int64
}

func (e *SeqConflictError) Error() string {
	return fmt.Sprintf("session %q is at seq %d, the append expects %d: read what is new and decide again", e.ID, e.Seq, e.Expected)
}

// KeyReusedError: the idempotency key belongs to another request.
type KeyReusedError struct{ ID, Key string }

func (e *KeyReusedError) Error() string {
	return fmt.Sprintf("session %q: idempotency key %q was used for another request: use a new key", e.ID, e.Key)
}

// ErrKeyKnown is in a *GroupError: Append would answer with the commit that the key was used for.
var ErrKeyKnown = errors.New("the idempotency key is known")

// GroupError: one of the batches kept all of them from being committed.
type GroupError struct {
	// Index is that of the batch.
	Index int
	// Err is what Append would say to it, or ErrKeyKnown.
	Err error
}

func (e *GroupError) Error() string { return fmt.Sprintf("batch %d of the group: %v", e.Index, e.Err) }

func (e *GroupError) Unwrap() error { return e.Err }

// ReadOnlyError: the store takes no appends any more, because a sync failed or a write came out short. Reads go on.
type ReadOnlyError struct{ Cause error }

func (e *ReadOnlyError) Error() string {
	return fmt.Sprintf("the store refuses appends since a write failed (reads go on; restart once the disk is sound): %v", e.Cause)
}

func (e *ReadOnlyError) Unwrap() error { return e.Cause }

// DiskFullError: there was no room. It passes by itself when there is.
type DiskFullError struct{ Cause error }

func (e *DiskFullError) Error() string {
	return fmt.Sprintf("no room on the disk, make some and try again: %v", e.Cause)
}

func (e *DiskFullError) Unwrap() error { return e.Cause }

// CorruptError: what is stored is damaged at a place in the middle. It is reported and never guessed away.
type CorruptError struct {
	ID     string
	Seq    int64
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("session %q is damaged at seq %d: %s: check the store, then restore a backup or salvage what is whole", e.ID, e.Seq, e.Reason)
}

// InvalidError: a query or batch that no store would take, a fault of the caller.
type InvalidError struct{ Reason string }

func (e *InvalidError) Error() string { return "eventlog: " + e.Reason }
