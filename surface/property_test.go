package surface_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/surface"
)

// naive is the surface as the specification tells it, over a plain slice.
type naive struct {
	nodes      []int64
	generation int64
}

func (n *naive) apply(d *event.Draft) {
	switch d.Op.Kind {
	case event.OpAppend:
		n.nodes = append(n.nodes, d.Seq)
	case event.OpReplace:
		i, j := slices.Index(n.nodes, d.Op.Start), slices.Index(n.nodes, d.Op.End)
		n.nodes = slices.Replace(slices.Clone(n.nodes), i, j+1, d.Seq)
		n.generation++
	}
}

func TestManagerFoldAndNaiveModelAgreeOnEveryPrefix(t *testing.T) {
	data := log(t, 0, user(appends))[0].Data
	rapid.Check(t, func(t *rapid.T) {
		// Bursts of appends, so that surfaces span several blocks.
		var (
			model   naive
			drafts  []event.Draft
			handed  [][]int64 // lists given out, and what they held then
			copies  [][]int64
			m       = surface.NewManager(0, nil)
			checked = func() {
				if !slices.Equal(m.Nodes(), model.nodes) || m.ReplaceGeneration() != model.generation || m.Len() != len(model.nodes) {
					t.Fatalf("after %d events: manager %v at %d, model %v at %d", len(drafts), m.Nodes(), m.ReplaceGeneration(), model.nodes, model.generation)
				}
			}
		)
		step := func(op event.Op, typ string, sources []int64) {
			d := event.Draft{Event: event.Event{Type: typ, Seq: m.Next(), Data: data, Op: op, Sources: sources}}
			p, err := m.Plan(&d)
			if err != nil {
				t.Fatalf("event %d: %v", d.Seq, err)
			}
			m.Apply(p)
			model.apply(&d)
			drafts = append(drafts, d)
		}
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			for range rapid.SampledFrom([]int{0, 1, 3, 300, 700}).Draw(t, "appends") {
				step(event.Append(), event.UserMessage, nil)
			}
			if rapid.Bool().Draw(t, "other") {
				step(event.Op{}, event.TurnStart, nil)
			}
			for range rapid.IntRange(0, 6).Draw(t, "replacements") {
				if len(model.nodes) == 0 {
					break
				}
				i := rapid.IntRange(0, len(model.nodes)-1).Draw(t, "start")
				j := min(i+rapid.SampledFrom([]int{0, 1, 7, 200, 600}).Draw(t, "width"), len(model.nodes)-1)
				sources := slices.Clone(model.nodes[i : j+1])
				if rapid.Bool().Draw(t, "sorted") {
					slices.Sort(sources)
				}
				start, end := model.nodes[i], model.nodes[j]
				if got, err := m.Range(start, end); err != nil || !slices.Equal(got, model.nodes[i:j+1]) {
					t.Fatalf("range %d..%d: %v, %v", start, end, got, err)
				}
				if i < j {
					bad := event.Draft{Event: event.Event{Type: event.UserMessage, Seq: m.Next(), Data: data, Op: event.Replace(end, start), Sources: sources}}
					if _, err := m.Plan(&bad); err == nil {
						t.Fatalf("a reversed range was planned")
					}
				}
				step(event.Replace(start, end), event.UserMessage, sources)
				if m.Contains(start) || m.Contains(end) || !m.Contains(m.Next()-1) {
					t.Fatalf("nodes after a replacement: %v", m.Nodes())
				}
				checked()
			}
			checked()
			handed, copies = append(handed, m.Nodes()), append(copies, slices.Clone(m.Nodes()))
		}
		for i := range handed {
			if !slices.Equal(handed[i], copies[i]) {
				t.Fatalf("a list of nodes that was handed out has changed")
			}
		}
		// Every node can be found, and a fold of a prefix is the model of that prefix.
		for _, seq := range model.nodes {
			if !m.Contains(seq) {
				t.Fatalf("node %d is not found", seq)
			}
		}
		cut := rapid.IntRange(0, len(drafts)).Draw(t, "prefix")
		var prefix naive
		for i := range drafts[:cut] {
			prefix.apply(&drafts[i])
		}
		state, err := surface.Fold(slices.Values(drafts[:cut]))
		if err != nil || !slices.Equal(state.Nodes, prefix.nodes) || state.ReplaceGeneration != prefix.generation {
			t.Fatalf("fold of %d events: %v, want %v (%v)", cut, state.Nodes, prefix.nodes, err)
		}
		restored, err := surface.Restore(m.Nodes(), m.ReplaceGeneration(), m.Next(), nil)
		if err != nil || fmt.Sprint(restored.Nodes()) != fmt.Sprint(m.Nodes()) {
			t.Fatalf("restoring: %v", err)
		}
	})
}
