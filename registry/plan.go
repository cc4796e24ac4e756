package registry

import (
	"slices"
	"strings"
)

// plan is what a set of registrants resolves to: for each key the one binding that computes it. Immutable; every change of
// registrations or members makes a new one, and sessions compare pointers to see that something changed.
type plan struct {
	gen   int64
	units []*binding // by key
	index map[string]int
	// byType gives, for an event type, the places in units of those that name it; every has those that name none. An event
	// that nobody folds costs one look into byType, however many units there are.
	byType map[string][]int
	every  []int
	// visible has the places of the units that have a view.
	visible []int
}

// resolve picks the computing binding of each key: the first of the members by plugin name, then variant. Only between
// registrations of one registrant does the order of arrival count. by must hold each key's bindings in order of arrival.
func resolve(gen int64, by map[string][]*binding, member func(Registrant) bool) *plan {
	p := &plan{gen: gen, index: map[string]int{}, byType: map[string][]int{}}
	for _, bs := range by {
		var first *binding
		for _, b := range bs {
			if member(b.by) && (first == nil || compareRegistrants(b.by, first.by) < 0) {
				first = b
			}
		}
		if first != nil {
			p.units = append(p.units, first)
		}
	}
	slices.SortFunc(p.units, func(a, b *binding) int { return strings.Compare(a.Key, b.Key) })
	for i, b := range p.units {
		p.index[b.Key] = i
		if b.Events == nil {
			p.every = append(p.every, i)
		}
		for _, typ := range b.Events {
			p.byType[typ] = append(p.byType[typ], i)
		}
		if !b.HostOnly() {
			p.visible = append(p.visible, i)
		}
	}
	return p
}

func (p *plan) binding(key string) *binding {
	if i, ok := p.index[key]; ok {
		return p.units[i]
	}
	return nil
}

func compareRegistrants(a, b Registrant) int {
	if c := strings.Compare(a.Plugin, b.Plugin); c != 0 {
		return c
	}
	return strings.Compare(a.Variant, b.Variant)
}
