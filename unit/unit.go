// Package unit says what a projection unit is, over JSON bytes: the one contract that an in-process Go value, a plugin
// process and the test harness all meet.
//
// A unit is a pure fold over one session's log: a key, schemas, a state version, and init, apply and view. Where the fold
// runs is one of two things. An Inline is called by the host in its own process. An Instance stands for a process (or
// anything as slow and as mortal as one): it is sent batches and answers later, or never.
//
// The package owns the rules for definitions and for the values that folds give, and the containment of folds. It must never run a
// schema that could reach outside itself or take longer than its value is worth, and never let a panic of a fold through.
// Definitions and what Compile makes of them are immutable; Local says what guards its cells.
package unit

import (
	"context"
	"encoding/json"

	"github.com/foldhost/foldhost/event"
)

// Definition is one unit as its registrant offers it. Exactly one of Inline and Instance is set.
type Definition struct {
	// Key names the unit: 1 to 64 characters out of [A-Za-z0-9._/-].
	Key string
	// StateVersion is ≥ 0 and is raised when the state's shape or the fold's meaning changes.
	StateVersion int64
	// StateSchema is the JSON Schema (2020-12) of the persisted state. Required.
	StateSchema json.RawMessage
	// ViewSchema is the JSON Schema of the client value; nil makes a host-only unit: checkpointed and never served.
	ViewSchema json.RawMessage
	// Events are the types that the unit folds: nil is every type, empty and not nil is none, ever.
	Events []string
	// ConfigBound says that the fold, and not only the view, depends on the plugin's config; ConfigDigest is then part of
	// what a row must match. Of any other unit it says which config a view was made with; empty is none.
	ConfigBound  bool
	ConfigDigest string

	Inline   Inline
	Instance Instance
}

// State is a unit's decoded state as only its own Inline understands it. It is not changed once returned.
type State any

// Inline is a fold in this process. Apply is called serially for one cell; View and Encode of a state may run while Apply makes the next one of
// it, which is why Apply must not change it. Calls for different cells may be concurrent. A panic is contained by the caller (see Guard) and
// counts as an error.
type Inline interface {
	// Init is the state of the empty log.
	Init() (State, error)
	// Apply gives the next state, or changed = false: nothing downstream happens then. It must not change the old state.
	Apply(s State, ev *event.Event) (next State, changed bool, err error)
	// View is the client value as JSON; not called for a host-only unit.
	View(s State) (json.RawMessage, error)
	// Encode gives the state as JSON, and Decode takes it back.
	Encode(s State) (json.RawMessage, error)
	Decode(raw json.RawMessage) (State, error)
}

// CellID names one cell on the wire: opaque, never used again in the life of a host.
type CellID uint64

// Mode is what a drive asks for.
type Mode uint8

const (
	// EveryChange asks for a value for every event that changes the view: live feeds and replays.
	EveryChange Mode = iota
	// LastOnly asks for one value, after the last event of the batch: building a cell.
	LastOnly
)

// Batch is one message down to an instance. Its parts are carried out in the order of the fields.
type Batch struct {
	// Drop are cells that are needed no longer. Unknown ones are no error.
	Drop []CellID
	// Open are cells to make. A cell that is there already is made anew.
	Open []Open
	// Cells are driven over Events; each folds the types that its unit names and skips the rest. Afterwards each stands at
	// Through, whether or not an event was its own. An event at or below where a cell stands already is skipped for it.
	Cells []CellID
	// Events are in seq order, of one session, each once whatever the number of cells.
	Events []event.Event
	// Through is the seq that the cells have reached after the batch: at or above the last event's.
	Through int64
	Mode    Mode
	// States asks for the encoded states of these cells after the events.
	States []CellID
}

// Open makes a cell: of Key, from a state at a seq, or from init when State is nil (Seq is then −1).
type Open struct {
	Cell  CellID
	Key   string
	State json.RawMessage
	Seq   int64
}

// Reply is the answer to one batch.
type Reply struct {
	// Values are in seq order per cell. A cell that was opened in this batch has a value in it also when no event changed
	// anything: its view as of where it was opened, first in EveryChange mode, superseded by later ones in LastOnly mode.
	Values []Value
	States []StateAt
	// Faults are cells that failed at an event; they stand before it, are driven no further until opened again, and give neither
	// values nor states until then.
	Faults []Fault
	// Unknown are cells that the instance does not know: they must be opened again.
	Unknown []CellID
	// Err says that the batch was not carried out and the instance may be gone: *GoneError or *DeadlineError, or a protocol
	// error. Nothing else in the reply counts then.
	Err error
}

// Value is a view right after the event at Seq (−1: the empty log).
type Value struct {
	Cell CellID
	Seq  int64
	View json.RawMessage
}

// StateAt is an encoded state as of Seq.
type StateAt struct {
	Cell  CellID
	Seq   int64
	State json.RawMessage
}

// Fault is a failure of one cell at the event Seq (or at opening it, then Seq is where it was to stand).
type Fault struct {
	Cell    CellID
	Seq     int64
	Message string
}

// OwnedEvent is an event type that belongs to a plugin. Schema is the JSON Schema of its data; nil where any data will do.
type OwnedEvent struct {
	Type   string
	Schema json.RawMessage
}

// Instance is a fold somewhere else. Batches that are submitted one after the other are carried out in that order; several may be
// in flight. One instance serves the units of one registrant.
type Instance interface {
	// Submit hands over a batch and returns without waiting for it to be carried out. done is called exactly once, from
	// any goroutine and never from within Submit, at the latest soon after ctx ends.
	Submit(ctx context.Context, b Batch, done func(Reply))
}

// GoneError: the process is gone, and took the batches in flight with it.
type GoneError struct{ Reason string }

func (e *GoneError) Error() string { return "the plugin process is gone: " + e.Reason }

// DeadlineError: the batch was not answered in time.
type DeadlineError struct{ Reason string }

func (e *DeadlineError) Error() string { return "the plugin did not answer in time: " + e.Reason }
