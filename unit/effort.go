package unit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/foldhost/foldhost/event"
)

// The validator has no limit of its own, and thirty lines of nested allOf keep it busy for an hour: each place of a value is looked
// at once for every way in which the schema leads there. So the ways are counted when the schema is compiled, by depth, and a
// value that could take too many steps is refused before the validator sees it. What one look costs is in effort_cost.go.
const (
	// A value may take stepsPerByte steps for each of its bytes, and stepsFree in any case. A step is about 1 µs, so the worst value
	// of 1 MiB takes seconds; a plain list of numbers, two bytes each, may still be tried against eight alternatives. The free
	// ones, a tenth of a second, are for small values of recursive unions: a tree of five kinds of node, four of them with
	// children, may be seven nodes deep. The validator looks into every alternative, so that is what it really costs.
	stepsPerByte = 4
	stepsFree    = 100_000
	// maxEffortWork bounds the counting itself, in additions. Schemas that people write take a few thousand.
	maxEffortWork = 2_000_000
	// manyWays stands for every larger number.
	manyWays = 1 << 40
)

// effort is what a value costs, by the depth of its places.
type effort struct {
	// looks is what one place costs at most for itself, in steps; text is what each byte of a string there costs, in textUnits; below is
	// what each place under it costs, in steps, where elements are compared with each other; and members is what each place right
	// under it costs, in parts of memberShare, because each look goes over them.
	looks, text, below, members byDepth
}

// byDepth is a number for each depth; the last one holds for all below.
type byDepth []uint64

func (b byDepth) at(depth int) uint64 { return b[min(depth, len(b)-1)] }

// steps bounds the steps that a value takes.
func (e effort) steps(m measure) uint64 {
	var sum uint64
	under := 0 // places below the present depth
	for depth := len(m.places) - 1; depth >= 0; depth-- {
		sum = plus(sum, times(uint64(m.places[depth]), e.looks.at(depth)))
		sum = plus(sum, times(uint64(m.text[depth]), e.text.at(depth))/textUnits)
		sum = plus(sum, times(uint64(under), e.below.at(depth)))
		if depth > 0 {
			sum = plus(sum, times(uint64(m.places[depth]), e.members.at(depth-1))/memberShare)
		}
		under += m.places[depth]
	}
	return sum
}

// allowed is how many steps a value of size bytes may take.
func allowed(size int) uint64 { return stepsFree + stepsPerByte*uint64(size) }

func plus(a, b uint64) uint64 { return min(a+b, manyWays) }

func times(a, b uint64) uint64 {
	if a != 0 && b > manyWays/a {
		return manyWays
	}
	return a * b
}

// effortOf counts the ways through a compiled schema. It refuses one that comes back to itself at the same place of the value.
func effortOf(root *jsonschema.Schema) (effort, error) {
	none := effort{}
	c := counter{closures: map[*jsonschema.Schema]closure{}, index: map[*jsonschema.Schema]int{}, costs: map[*jsonschema.Schema]cost{}}
	if _, err := c.place(root); err != nil {
		return none, err
	}
	for i := 0; i < len(c.places); i++ { // places are found while others are looked at
		if err := c.children(i); err != nil {
			return none, err
		}
	}
	if here := c.places[0].cost.looks; here > stepsFree {
		return none, fmt.Errorf("the schema takes %d steps at one place of a value; %d are allowed", here, stepsFree)
	}
	return effort{
		looks:   c.byDepth(func(p *place) uint64 { return p.cost.looks }),
		text:    c.byDepth(func(p *place) uint64 { return p.cost.text }),
		below:   c.byDepth(func(p *place) uint64 { return p.cost.below }),
		members: c.byDepth(func(p *place) uint64 { return p.cost.members }),
	}, nil
}

var (
	errTooIntricate = errors.New("the schema is too intricate: its parts lead to each other in too many ways")
	errDynamic      = errors.New("the schema has a $dynamicRef or $recursiveRef, whose target depends on the way there; use $ref")
)

// closure is all that is applied to the value at one place when a schema is: itself and what its references and combinations lead to,
// with the number of times.
type closure map[*jsonschema.Schema]uint64

// place is a schema where a value is entered.
type place struct {
	closure closure
	cost    cost // of the closure
	// groups has the places below for each child that a value may have there: a named member, any other, an element. A child
	// belongs to one group, so groups are alternatives and what is in a group adds up.
	groups [][]lead
}

// lead is a place below that is entered n times.
type lead struct {
	to int
	n  uint64
}

type counter struct {
	closures map[*jsonschema.Schema]closure // nil while one is being made
	index    map[*jsonschema.Schema]int
	costs    map[*jsonschema.Schema]cost
	places   []place
	work     int
}

func (c *counter) spend(n int) error {
	if c.work += n; c.work > maxEffortWork {
		return errTooIntricate
	}
	return nil
}

func (c *counter) closure(s *jsonschema.Schema) (closure, error) {
	if cl, ok := c.closures[s]; ok {
		if cl == nil {
			return nil, fmt.Errorf("the schema comes back to %s at the same place of the value; nothing would end there", strings.TrimPrefix(s.Location, schemaURL))
		}
		return cl, nil
	}
	c.closures[s] = nil
	cl := closure{s: 1}
	next, err := inPlace(s)
	if err != nil {
		return nil, err
	}
	for _, t := range next {
		below, err := c.closure(t)
		if err != nil {
			return nil, err
		}
		if err := c.spend(len(below)); err != nil {
			return nil, err
		}
		for u, n := range below {
			cl[u] = plus(cl[u], n)
		}
	}
	c.closures[s] = cl
	return cl, nil
}

// inPlace are the schemas that s applies to the value it is applied to.
func inPlace(s *jsonschema.Schema) ([]*jsonschema.Schema, error) {
	next := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, slices.Collect(maps.Values(s.DependentSchemas)),
		[]*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else})
	for _, d := range s.Dependencies {
		if d, ok := d.(*jsonschema.Schema); ok {
			next = append(next, d)
		}
	}
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		return nil, errDynamic
	}
	return slices.DeleteFunc(next, func(t *jsonschema.Schema) bool { return t == nil }), nil
}

func (c *counter) place(s *jsonschema.Schema) (int, error) {
	if i, ok := c.index[s]; ok {
		return i, nil
	}
	cl, err := c.closure(s)
	if err != nil {
		return 0, err
	}
	all, err := c.costOfAll(cl)
	if err != nil {
		return 0, err
	}
	c.index[s] = len(c.places)
	c.places = append(c.places, place{closure: cl, cost: all})
	return c.index[s], nil
}

// children finds the groups of a place.
func (c *counter) children(i int) error {
	cl := c.places[i].closure
	names, longest := map[string]bool{}, 0
	objects, arrays := false, false
	for s := range cl {
		for name := range s.Properties {
			names[name] = true
		}
		prefix := s.PrefixItems
		if list, ok := s.Items.([]*jsonschema.Schema); ok {
			prefix = list
		}
		longest = max(longest, len(prefix))
		objects = objects || len(s.Properties)+len(s.PatternProperties) > 0 || s.AdditionalProperties != nil || s.UnevaluatedProperties != nil || s.PropertyNames != nil
		arrays = arrays || len(prefix) > 0 || s.Items != nil || s.Items2020 != nil || s.UnevaluatedItems != nil || s.Contains != nil
	}
	var groups [][]lead
	group := func(of func(s *jsonschema.Schema) []*jsonschema.Schema) error {
		if err := c.spend(len(cl)); err != nil {
			return err
		}
		var g []lead
		for s, n := range cl {
			for _, t := range of(s) {
				to, err := c.place(t)
				if err != nil {
					return err
				}
				if err := c.spend(1); err != nil {
					return err
				}
				g = append(g, lead{to, n})
			}
		}
		if g != nil {
			groups = append(groups, g)
		}
		return nil
	}
	if objects {
		for name := range names {
			if err := group(func(s *jsonschema.Schema) []*jsonschema.Schema { return member(s, name) }); err != nil {
				return err
			}
		}
		if err := group(func(s *jsonschema.Schema) []*jsonschema.Schema { return member(s, "") }); err != nil {
			return err
		}
	}
	if arrays {
		for at := range longest + 1 {
			if err := group(func(s *jsonschema.Schema) []*jsonschema.Schema { return element(s, at) }); err != nil {
				return err
			}
		}
	}
	c.places[i].groups = groups
	return nil
}

// member are the schemas that s applies to a member of an object and to its key. Every pattern is taken to match.
func member(s *jsonschema.Schema, name string) []*jsonschema.Schema {
	var to []*jsonschema.Schema
	named := s.Properties[name]
	if named != nil {
		to = append(to, named)
	}
	to = slices.AppendSeq(to, maps.Values(s.PatternProperties))
	if other, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && named == nil {
		to = append(to, other)
	}
	for _, t := range []*jsonschema.Schema{s.UnevaluatedProperties, s.PropertyNames} {
		if t != nil {
			to = append(to, t)
		}
	}
	return to
}

// element are the schemas that s applies to the element of an array at an index.
func element(s *jsonschema.Schema, at int) []*jsonschema.Schema {
	var to []*jsonschema.Schema
	prefix, rest := s.PrefixItems, s.Items2020
	switch items := s.Items.(type) { // drafts before 2020-12
	case []*jsonschema.Schema:
		prefix = items
		rest, _ = s.AdditionalItems.(*jsonschema.Schema)
	case *jsonschema.Schema:
		rest = items
	}
	if at < len(prefix) {
		to = append(to, prefix[at])
	} else if rest != nil {
		to = append(to, rest)
	}
	for _, t := range []*jsonschema.Schema{s.Contains, s.UnevaluatedItems} {
		if t != nil {
			to = append(to, t)
		}
	}
	return to
}

// byDepth adds a cost up over all ways from the first place downwards, until nothing changes any more.
func (c *counter) byDepth(cost func(*place) uint64) byDepth {
	// What the places at the present depth cost in all ways to them, by where one starts.
	costs := make([]uint64, len(c.places))
	for i := range c.places {
		costs[i] = cost(&c.places[i])
	}
	b := byDepth{costs[0]}
	for len(b) <= event.MaxDepth+1 {
		deeper := make([]uint64, len(c.places))
		spent := len(c.places)
		for i, p := range c.places {
			for _, g := range p.groups {
				var sum uint64
				for _, l := range g {
					sum = plus(sum, times(l.n, costs[l.to]))
				}
				spent += len(g)
				deeper[i] = max(deeper[i], sum)
			}
		}
		if slices.Equal(deeper, costs) {
			return b
		}
		if c.spend(spent) != nil {
			return append(b, manyWays) // so deep that nobody has counted
		}
		b, costs = append(b, deeper[0]), deeper
	}
	return b
}
