package surface

import (
	"iter"

	"github.com/foldhost/foldhost/event"
)

// Replacement is one replacement in the history of a surface.
type Replacement struct {
	// Seq is the event that replaced, Start and End are what it named.
	Seq, Start, End int64
	// ShadowedSeqs are the nodes that went, in surface order.
	ShadowedSeqs []int64
}

// State is what a full fold gives, detached from everything.
type State struct {
	Nodes             []int64
	Replacements      []Replacement
	ReplaceGeneration int64
}

// Fold replays drafts from seq 0. It is a Manager that keeps a history, and so has the same rules. The error is an
// *event.IndexError around the rule broken; its index counts drafts from 0.
func Fold(drafts iter.Seq[event.Draft]) (State, error) {
	// The tool results on the surface, without their content, are all that a later event can be compared with.
	results := make(map[int64]event.Event)
	m := NewManager(0, func(seq int64) (event.Event, error) { return results[seq], nil }) // a node of another type is the zero event
	replacements := []Replacement{}
	index := int64(0)
	for d := range drafts {
		p, err := m.Plan(&d)
		if err != nil {
			return State{}, &event.IndexError{Index: index, Err: err}
		}
		if p.kind == event.OpReplace {
			shadowed := m.nodes.appendRange(nil, p.from, p.to)
			for _, seq := range shadowed {
				delete(results, seq)
			}
			replacements = append(replacements, Replacement{Seq: d.Seq, Start: d.Op.Start, End: d.Op.End, ShadowedSeqs: shadowed})
		}
		m.Apply(p)
		if d.Type == event.ToolResult {
			d.Data = Frame(d.Data)
			results[d.Seq] = d.Event
		}
		index++
	}
	return State{Nodes: m.nodes.appendTo([]int64{}), Replacements: replacements, ReplaceGeneration: m.generation}, nil
}
