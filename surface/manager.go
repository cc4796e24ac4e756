package surface

import (
	"fmt"
	"slices"

	"github.com/foldhost/foldhost/event"
)

// EventReader gives a committed event by seq. Planning asks for one only to compare a rewritten tool/result with the
// event that it replaces.
type EventReader func(seq int64) (event.Event, error)

// Manager is the incremental surface: it holds the nodes and the generation and no history. It is not safe for
// concurrent use.
type Manager struct {
	read       EventReader
	next       int64
	generation int64
	nodes      nodeList
	// flat is what Nodes hands out. It grows in place with appends, which its earlier holders do not see, and is dropped
	// by a replacement. nil says that nobody has asked since: a log that is only folded pays nothing for it.
	flat []int64
}

// NewManager returns a manager of an empty surface whose next event has seq base: 0 for a log, more for a window. read may
// be nil where no tool/result is rewritten; planning such an event is then an error.
func NewManager(base int64, read EventReader) *Manager {
	return &Manager{read: read, next: base}
}

// Restore returns a manager with the state that another one had before the event next: its nodes in order and its
// replaceGeneration. It refuses what no log can lead to, so that a damaged row is folded again and never served.
func Restore(nodes []int64, generation, next int64, read EventReader) (*Manager, error) {
	sorted := slices.Sorted(slices.Values(nodes))
	for i, seq := range sorted {
		switch {
		case seq < 0 || seq >= next:
			return nil, fmt.Errorf("restoring a surface: node %d is not before seq %d", seq, next)
		case i > 0 && seq == sorted[i-1]:
			return nil, fmt.Errorf("restoring a surface: node %d stands twice", seq)
		}
	}
	// Each replacement leaves a node or is itself replaced, and each takes a seq.
	if generation < 0 || generation > next-min(next, 1) || generation > 0 && len(nodes) == 0 {
		return nil, fmt.Errorf("restoring a surface: %d replacements cannot leave %d nodes before seq %d", generation, len(nodes), next)
	}
	m := NewManager(next, read)
	m.generation = generation
	for _, seq := range nodes {
		m.nodes.append(seq)
	}
	return m, nil
}

// Apply carries out a plan made by this manager for its present state; anything else panics, as it is a fault of the caller.
func (m *Manager) Apply(p Plan) {
	switch {
	case p.manager == nil:
		panic("surface: applying a zero plan")
	case p.manager != m:
		panic("surface: applying a plan of another manager")
	case p.seq != m.next: // whatever changes the nodes takes a seq
		panic(fmt.Sprintf("surface: applying a stale plan: it is for seq %d, the surface is at seq %d", p.seq, m.next))
	}
	m.next++
	switch p.kind {
	case event.OpAppend:
		m.nodes.append(p.seq)
		if m.flat != nil {
			m.flat = append(m.flat, p.seq)
		}
	case event.OpReplace:
		m.nodes.replace(p.from, p.to, p.seq)
		m.generation++
		m.flat = nil
	}
}

// Advance says that the events up to and not including seq do not touch the surface, so that a log can be folded from its
// eligible events alone. Going back panics.
func (m *Manager) Advance(seq int64) {
	if seq < m.next {
		panic(fmt.Sprintf("surface: advancing to seq %d, behind seq %d", seq, m.next))
	}
	m.next = seq
}

// Next is the seq that the next event must have.
func (m *Manager) Next() int64 { return m.next }

// Nodes returns the surface in order, never nil. The slice never changes afterwards and must not be written to; between
// replacements repeated calls share one growing array. The first call after a replacement copies all nodes.
func (m *Manager) Nodes() []int64 {
	if m.flat == nil {
		// Room for a quarter more, so that the appends that follow do not copy again at once.
		m.flat = m.nodes.appendTo(make([]int64, 0, m.nodes.len+m.nodes.len/4+16))
	}
	return m.flat[:len(m.flat):len(m.flat)]
}

// Len is len(Nodes()) without making it.
func (m *Manager) Len() int { return m.nodes.len }

// Contains says whether seq is a current node.
func (m *Manager) Contains(seq int64) bool {
	_, ok := m.nodes.find(seq)
	return ok
}

// Range returns the nodes from start to end by position, and the error that a replacement of that range would get: an
// *event.Error with code surface-range-invalid. The slice belongs to the caller.
func (m *Manager) Range(start, end int64) ([]int64, error) {
	from, to, fault := m.locate(start, end)
	if fault != nil {
		return nil, fault
	}
	return m.nodes.appendRange(nil, from, to), nil
}

// ReplaceGeneration is how many replacements there have been.
func (m *Manager) ReplaceGeneration() int64 { return m.generation }
