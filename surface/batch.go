package surface

import (
	"slices"

	"github.com/foldhost/foldhost/event"
)

// PlanBatch plans drafts that are to be committed together, each on top of those before it, and appends the plans to plans.
// It changes nothing that can be seen; apply the plans in order. The error is an *event.IndexError around what Plan says. The
// reader is asked for events of the batch too, where one rewrites another.
//
// A batch of appends costs what its plans cost. With a replacement in it, the bounds of the blocks are copied (one in 256
// nodes) and the blocks in reach of the replacement.
func (m *Manager) PlanBatch(drafts []event.Draft, plans []Plan) ([]Plan, error) {
	// What is planned and not yet committed lives in a manager of its own.
	scratch := &Manager{read: m.read, next: m.next, generation: m.generation}
	if slices.ContainsFunc(drafts, func(d event.Draft) bool { return d.Op.Kind == event.OpReplace }) {
		scratch.nodes = m.nodes.overlay()
	} // else nothing looks at the nodes
	return scratch.planFor(m, drafts, plans)
}

// PlanAhead plans drafts that are to be committed after others which are planned and not applied yet: the first of them is to get the seq next. Otherwise it is PlanBatch.
// None of them may replace anything, because what it names may not be there yet; that would be a fault of the caller, and panics.
func (m *Manager) PlanAhead(next int64, drafts []event.Draft, plans []Plan) ([]Plan, error) {
	if next < m.next || slices.ContainsFunc(drafts, func(d event.Draft) bool { return d.Op.Kind == event.OpReplace }) {
		panic("surface: planning ahead what depends on the nodes, or behind")
	}
	return (&Manager{read: m.read, next: next, generation: m.generation}).planFor(m, drafts, plans)
}

// planFor plans and applies drafts on a manager of its own, for another one to apply.
func (m *Manager) planFor(other *Manager, drafts []event.Draft, plans []Plan) ([]Plan, error) {
	for i := range drafts {
		p, err := m.Plan(&drafts[i])
		if err != nil {
			return plans, &event.IndexError{Index: int64(i), Err: err}
		}
		if p.kind == event.OpReplace {
			m.nodes.own(p.from, p.to)
		}
		m.Apply(p)
		p.manager = other
		plans = append(plans, p)
	}
	return plans, nil
}

// overlay is a list that starts as l and whose changes l does not see, as long as own comes before each replacement. Appends,
// and joins of blocks that are not its own, write only behind the end of a block of l, where l does not look before it has
// written itself.
func (l *nodeList) overlay() nodeList { return nodeList{blocks: slices.Clone(l.blocks), len: l.len} }

// own gives arrays of their own to the blocks that a replacement of the range changes, and to the one before, into which they
// may be joined.
func (l *nodeList) own(from, to place) {
	for i := max(from.block-1, 0); i <= to.block; i++ {
		l.blocks[i].seqs = slices.Clone(l.blocks[i].seqs)
	}
}
