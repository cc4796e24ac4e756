// Package surface owns the ordered surface of a session: the list of seqs of the events that a model would see, and the
// one rule set by which an event may append to it or replace a range of it.
//
// Planning never changes anything and applying never refuses. The package does no I/O of its own and takes no locks: a
// Manager belongs to one owner, who calls it serially.
package surface

// Signatures that the other packages build against.

import (
	"iter"

	"github.com/foldhost/foldhost/event"
)

// Replacement is one replacement in the history of a surface.
type Replacement struct {
	Seq, Start, End int64
	ShadowedSeqs    []int64
}

// State is what a full fold gives, detached from everything.
type State struct {
	Nodes             []int64
	Replacements      []Replacement
	ReplaceGeneration int64
}

// EventReader gives a committed event by seq. Planning asks for one only to compare a rewritten tool/result with the
// event that it replaces.
type EventReader func(seq int64) (event.Event, error)

// Fold replays drafts from seq 0. The error is an *event.IndexError around the rule broken.
func Fold(drafts iter.Seq[event.Draft]) (State, error) { panic("not yet") }

// Manager is the incremental surface: it holds the nodes and the generation and no history.
type Manager struct{}

// NewManager returns a manager of an empty surface whose next event has seq base: 0 for a log, more for a window.
func NewManager(base int64, read EventReader) *Manager { panic("not yet") }

// Plan is a checked change to one manager at one moment; the zero Plan is none.
type Plan struct{}

// Plan checks whether d may be the next event. It changes nothing. Errors of the rules are *event.Error; what the reader
// says comes wrapped.
func (m *Manager) Plan(d *event.Draft) (Plan, error) { panic("not yet") }

// Apply carries out a plan made by this manager for its present state; anything else panics, as it is a fault of the caller.
func (m *Manager) Apply(p Plan) { panic("not yet") }

// Advance says that the events up to and not including seq do not touch the surface, so that a log can be folded from its
// eligible events alone. Going back panics.
func (m *Manager) Advance(seq int64) { panic("not yet") }

// Next is the seq that the next event must have.
func (m *Manager) Next() int64 { panic("not yet") }

// Nodes returns the surface in order. The slice never changes afterwards and must not be written to; between replacements repeated
// calls share one growing array.
func (m *Manager) Nodes() []int64 { panic("not yet") }

// Len is len(Nodes()) without making it.
func (m *Manager) Len() int { panic("not yet") }

// Contains says whether seq is a current node.
func (m *Manager) Contains(seq int64) bool { panic("not yet") }

// Range returns the nodes from start to end by position, and the error that a replacement of that range would get.
func (m *Manager) Range(start, end int64) ([]int64, error) { panic("not yet") }

// ReplaceGeneration is how many replacements there have been.
func (m *Manager) ReplaceGeneration() int64 { panic("not yet") }
