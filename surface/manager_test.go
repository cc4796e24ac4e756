package surface_test

import (
	"slices"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/surface"
)

func TestAWindowReplacesOnlyWithinItself(t *testing.T) {
	const base = 400000
	r := func(op string) string { return result("", "[]", op) }
	m, err := drive(base, log(t, base, r(appends), r(replaces(base, base, "[400000]"))))
	if err != nil || !slices.Equal(m.Nodes(), []int64{base + 1}) {
		t.Fatalf("got %v, %v", m.Nodes(), err)
	}
	_, err = drive(base, log(t, base, r(appends), r(replaces(base-1, base, "[399999,400000]"))))
	if e := refusal(t, err); e.Rule != "start-not-found" {
		t.Errorf("got %v", e)
	}
	if _, err := drive(base, log(t, 0, r(appends))); err == nil {
		t.Error("a window took an event from below it")
	}
}

func TestARefusedEventLeavesNoTrace(t *testing.T) {
	m := surface.NewManager(0, nil)
	step := func(e string) error {
		d := log(t, m.Next(), e)[0]
		p, err := m.Plan(&d)
		if err == nil {
			m.Apply(p)
		}
		return err
	}
	if err := step(user(appends)); err != nil {
		t.Fatal(err)
	}
	before := m.Nodes()
	if err := step(assistant(replaces(0, 0, ""))); err == nil {
		t.Fatal("a replacement without sources was planned")
	}
	if m.Next() != 1 || m.ReplaceGeneration() != 0 || !slices.Equal(m.Nodes(), []int64{0}) {
		t.Fatalf("next %d, generation %d, nodes %v", m.Next(), m.ReplaceGeneration(), m.Nodes())
	}
	if err := step(user(appends)); err != nil {
		t.Fatal(err)
	}
	after := m.Nodes()
	if !slices.Equal(after, []int64{0, 1}) || m.ReplaceGeneration() != 0 {
		t.Errorf("nodes %v, generation %d", after, m.ReplaceGeneration())
	}
	if &before[0] != &after[0] {
		t.Error("an append moved the list of nodes")
	}
}

func TestAPlanThatIsNotAppliedChangesNothing(t *testing.T) {
	m := surface.NewManager(0, nil)
	vetoed, taken := log(t, 0, user(appends))[0], log(t, 0, plain("turn/start"))[0]
	if _, err := m.Plan(&vetoed); err != nil {
		t.Fatal(err)
	}
	p, err := m.Plan(&taken)
	if err != nil {
		t.Fatal(err)
	}
	m.Apply(p)
	if m.Len() != 0 || m.Next() != 1 {
		t.Errorf("%d nodes, next %d", m.Len(), m.Next())
	}
}

func TestPlanningDoesNotReorderTheSourcesOfAnEvent(t *testing.T) {
	drafts := log(t, 0, user(appends), user(appends), user(from("[1,0]")))
	if _, err := drive(0, drafts); err != nil || !slices.Equal(drafts[2].Sources, []int64{1, 0}) {
		t.Errorf("got %v, %v", drafts[2].Sources, err)
	}
}

func TestApplyPanicsOnPlansThatAreNotItsOwnOrStale(t *testing.T) {
	drafts := log(t, 0, user(appends), user(appends))
	m := surface.NewManager(0, nil)
	stale, _ := m.Plan(&drafts[0])
	fresh, _ := m.Plan(&drafts[0])
	m.Apply(fresh)
	other, _ := drive(0, drafts[:1]) // it stands where m does: only whose plan it is tells them apart
	foreign, _ := other.Plan(&drafts[1])
	for name, p := range map[string]surface.Plan{"zero": {}, "foreign": foreign, "stale": stale, "applied": fresh} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
				if !slices.Equal(m.Nodes(), []int64{0}) || m.Next() != 1 {
					t.Errorf("nodes %v, next %d", m.Nodes(), m.Next())
				}
			}()
			m.Apply(p)
		})
	}
}

func TestAdvancePassesOverEventsThatAreNotOnTheSurface(t *testing.T) {
	m := surface.NewManager(0, nil)
	m.Advance(5)
	m.Advance(5) // nowhere
	d := log(t, 5, user(appends))[0]
	p, err := m.Plan(&d)
	if err != nil {
		t.Fatal(err)
	}
	m.Advance(6)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a plan outlived an advance")
			}
		}()
		m.Apply(p)
	}()
	defer func() {
		if recover() == nil {
			t.Error("advanced backwards")
		}
	}()
	m.Advance(5)
}

func TestAFoldIsDetached(t *testing.T) {
	drafts := log(t, 0, user(appends), user(appends), user(replaces(0, 1, "[0,1]")))
	first, err := surface.Fold(slices.Values(drafts))
	if err != nil {
		t.Fatal(err)
	}
	first.Nodes[0] = 99
	first.Replacements[0].ShadowedSeqs[0] = 99
	second, _ := surface.Fold(slices.Values(drafts))
	if second.Nodes[0] != 2 || second.Replacements[0].ShadowedSeqs[0] != 0 {
		t.Errorf("got %v", second)
	}
	m, _ := drive(0, drafts)
	shadow, _ := m.Range(2, 2)
	shadow[0] = 99
	if m.Nodes()[0] != 2 {
		t.Error("a range is not the caller's own")
	}
}

func TestARangeIsRefusedAsAReplacementOfItWouldBe(t *testing.T) {
	m, _ := drive(0, log(t, 0, user(appends), user(appends), user(appends)))
	if nodes, err := m.Range(1, 2); err != nil || !slices.Equal(nodes, []int64{1, 2}) {
		t.Errorf("got %v, %v", nodes, err)
	}
	for rule, r := range map[string][2]int64{"start-not-found": {7, 1}, "end-not-found": {1, 7}, "start-after-end": {2, 1}} {
		nodes, err := m.Range(r[0], r[1])
		if e := refusal(t, err); e.Code != event.SurfaceRangeInvalid || e.Rule != rule || nodes != nil {
			t.Errorf("%v: got %v, %v, want %s", r, nodes, e, rule)
		}
	}
}

func TestAppendingToNodesDoesNotReachTheManager(t *testing.T) {
	m, _ := drive(0, log(t, 0, user(appends)))
	first := m.Nodes()
	d := log(t, 1, user(appends))[0]
	p, _ := m.Plan(&d)
	m.Apply(p)
	second := m.Nodes()
	_ = append(first, 99)
	if !slices.Equal(second, []int64{0, 1}) || !slices.Equal(m.Nodes(), []int64{0, 1}) {
		t.Errorf("got %v, %v", second, m.Nodes())
	}
}

func TestRestoreRefusesWhatNoLogLeadsTo(t *testing.T) {
	for _, c := range []struct {
		name             string
		nodes            []int64
		generation, next int64
		ok               bool
	}{
		{"nothing yet", nil, 0, 0, true},
		{"a surface in any order", []int64{4, 1, 3}, 1, 7, true},
		{"a negative node", []int64{-1}, 0, 7, false},
		{"a node at the next seq", []int64{7}, 0, 7, false},
		{"a node twice", []int64{1, 2, 1}, 0, 7, false},
		{"a negative generation", []int64{1}, -1, 7, false},
		{"more replacements than events", []int64{1}, 7, 7, false},
		{"replacements that left nothing", nil, 1, 7, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := surface.Restore(c.nodes, c.generation, c.next, nil)
			if (err == nil) != c.ok {
				t.Fatalf("got %v", err)
			}
			if c.ok && (!slices.Equal(m.Nodes(), c.nodes) || m.ReplaceGeneration() != c.generation || m.Next() != c.next) {
				t.Errorf("got %v, %d, %d", m.Nodes(), m.ReplaceGeneration(), m.Next())
			}
		})
	}
}

func TestPlanningAllocatesNothing(t *testing.T) {
	m, _ := drive(0, log(t, 0, user(appends), user(appends)))
	for _, e := range []string{user(from("[0,1]")), assistant(from("[1,0]")), plain("turn/start"), user(replaces(0, 1, "[1,0]"))} {
		d := log(t, 2, e)[0]
		if n := testing.AllocsPerRun(100, func() {
			if _, err := m.Plan(&d); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", e, n)
		}
	}
}
