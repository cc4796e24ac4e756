package surface_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/surface"
)

// Given a surface over several blocks, when a batch is planned, then nothing has changed, whether the batch is refused, dropped or planned again; when it
// is applied, then the surface is that of the events one by one.
func TestPlanBatchIsPlanningOneByOne(t *testing.T) {
	data := log(t, 0, user(appends))[0].Data
	rapid.Check(t, func(t *rapid.T) {
		var model naive
		m := surface.NewManager(0, nil)
		for range rapid.SampledFrom([]int{0, 1, 5, 255, 256, 257, 900}).Draw(t, "nodes") {
			d := event.Draft{Event: event.Event{Type: event.UserMessage, Seq: m.Next(), Data: data, Op: event.Append()}}
			p, err := m.Plan(&d)
			if err != nil {
				t.Fatal(err)
			}
			m.Apply(p)
			model.apply(&d)
		}
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			before := slices.Clone(model.nodes)
			after := naive{slices.Clone(model.nodes), model.generation}
			var batch []event.Draft
			for range rapid.SampledFrom([]int{1, 2, 5, 300}).Draw(t, "batch") {
				d := event.Draft{Event: event.Event{Type: event.UserMessage, Seq: m.Next() + int64(len(batch)), Data: data, Op: event.Append()}}
				if n := len(after.nodes); n > 0 && rapid.IntRange(0, 3).Draw(t, "replace") == 0 {
					i := rapid.IntRange(0, n-1).Draw(t, "start")
					j := min(i+rapid.SampledFrom([]int{0, 1, 100, 600}).Draw(t, "width"), n-1)
					d.Op, d.Sources = event.Replace(after.nodes[i], after.nodes[j]), slices.Clone(after.nodes[i:j+1])
				}
				after.apply(&d)
				batch = append(batch, d)
			}
			unchanged := func() {
				t.Helper()
				// A restored manager has no list that was handed out before, so the blocks themselves are looked at.
				if !slices.Equal(nodesByRange(t, m, before), before) || m.ReplaceGeneration() != model.generation || m.Next() != batch[0].Seq {
					t.Fatalf("planning changed the surface")
				}
			}
			bad := append(slices.Clone(batch), event.Draft{Event: event.Event{Type: event.UserMessage, Seq: m.Next() + int64(len(batch)), Data: data}})
			var at *event.IndexError
			if _, err := m.PlanBatch(bad, nil); !errors.As(err, &at) || at.Index != int64(len(batch)) {
				t.Fatalf("a bad event at %d: %v", len(batch), err)
			}
			unchanged()
			plans, err := m.PlanBatch(batch, nil)
			if err != nil {
				t.Fatalf("planning: %v", err)
			}
			unchanged()
			for _, p := range plans {
				m.Apply(p)
			}
			model = after
			if !slices.Equal(nodesByRange(t, m, model.nodes), model.nodes) || m.ReplaceGeneration() != model.generation {
				t.Fatalf("after the batch: %v, want %v", m.Nodes(), model.nodes)
			}
		}
	})
}

// nodesByRange reads the nodes from the blocks, not from the list that was handed out last.
func nodesByRange(t *rapid.T, m *surface.Manager, want []int64) []int64 {
	t.Helper()
	if len(want) == 0 || m.Len() != len(want) {
		return m.Nodes()
	}
	nodes, err := m.Range(want[0], want[len(want)-1])
	if err != nil {
		t.Fatalf("the ends of the surface: %v", err)
	}
	return nodes
}

// Given a batch that rewrites a result of its own, then the reader is asked for that event.
func TestPlanBatchReadsEventsOfTheBatch(t *testing.T) {
	drafts := log(t, 0, result("", `[{"type":"text","text":"long"}]`, appends), result("", `[]`, replaces(0, 0, "[0]")))
	m := surface.NewManager(0, func(seq int64) (event.Event, error) { return drafts[seq].Event, nil })
	plans, err := m.PlanBatch(drafts, nil)
	if err != nil || len(plans) != 2 {
		t.Fatalf("%d plans, %v", len(plans), err)
	}
}

// Planning ahead gives what planning at once gives, and refuses without a trace.
func TestPlanAheadIsPlanningAtOnce(t *testing.T) {
	m := surface.NewManager(0, nil)
	draft := func(typ string, seq int64, op event.Op, sources ...int64) event.Draft {
		return event.Draft{Event: event.Event{Type: typ, Seq: seq, Op: op, Sources: sources}}
	}
	first := []event.Draft{draft(event.UserMessage, 0, event.Append()), draft("note", 1, event.Op{})}
	second := []event.Draft{draft(event.UserMessage, 2, event.Append(), 1)}
	plans, err := m.PlanAhead(0, first, nil)
	if err != nil {
		t.Fatal(err)
	}
	bad := []event.Draft{draft("note", 2, event.Op{}), draft("note", 3, event.Append())}
	var at *event.IndexError
	if _, err := m.PlanAhead(2, bad, plans); !errors.As(err, &at) || at.Index != 1 {
		t.Fatalf("%v", err)
	}
	if plans, err = m.PlanAhead(2, second, plans); err != nil {
		t.Fatal(err)
	}
	for _, p := range plans {
		m.Apply(p)
	}
	if got := m.Nodes(); !slices.Equal(got, []int64{0, 2}) || m.Next() != 3 {
		t.Errorf("nodes %v, next %d", got, m.Next())
	}
	for what, plan := range map[string]func(){
		"a replacement": func() { _, _ = m.PlanAhead(3, []event.Draft{draft(event.UserMessage, 3, event.Replace(0, 0), 0)}, nil) },
		"behind":        func() { _, _ = m.PlanAhead(2, second, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was planned", what)
				}
			}()
			plan()
		}()
	}
}
