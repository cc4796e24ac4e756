package unit

import (
	"fmt"
	"regexp/syntax"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The units of costs that are below a step, which is 1 µs.
const (
	// textUnits of text are one step. A look copies each byte of a string: 0.1 ns.
	textUnits = 10_000
	// lengthCost is counting the characters of a byte, and patternCost taking it past one instruction of a pattern: 1 ns and 20 ns.
	lengthCost, patternCost = 10, 200
	// nameShare required names are one step: to look one up, and to list it as missing.
	nameShare = 8
	// memberShare looks past one value right below are one step: 15 ns each; unevaluatedCost times as much where each look keeps a list
	// of what is not evaluated yet.
	memberShare, unevaluatedCost = 64, 32
	// scalarShare comparisons with a text, boolean, null or empty container of an enum are one step: 10 ns each. A number is one
	// step, because it is parsed into a fraction each time.
	scalarShare = 64
	// uniqueCost is comparing one value with those beside it: up to twenty are compared in pairs, more are hashed.
	uniqueCost = 8
)

// cost is what schemas cost where they are applied: see effort.
type cost struct{ looks, text, below, members uint64 }

// costOfAll is what a closure costs.
func (c *counter) costOfAll(cl closure) (all cost, err error) {
	all.members = 1
	for s, n := range cl {
		one, err := c.costOf(s)
		if err != nil {
			return cost{}, err
		}
		all.add(one, n)
		if s.UnevaluatedProperties != nil || s.UnevaluatedItems != nil {
			all.members = unevaluatedCost
		}
	}
	all.members = times(all.members, all.looks)
	return all, nil
}

func (c *cost) add(o cost, n uint64) {
	c.looks = plus(c.looks, times(o.looks, n))
	c.text = plus(c.text, times(o.text, n))
	c.below = plus(c.below, times(o.below, n))
}

// costOf is what a schema costs by itself, without those that it leads to.
func (c *counter) costOf(s *jsonschema.Schema) (cost, error) {
	if known, ok := c.costs[s]; ok {
		return known, nil
	}
	one := cost{looks: 1, text: 1}
	names := len(s.Required)
	for _, of := range s.DependentRequired {
		names += 1 + len(of)
	}
	for _, of := range s.Dependencies {
		of, _ := of.([]string)
		names += 1 + len(of)
	}
	one.looks += uint64(names / nameShare)
	var numbers, others uint64
	if s.Enum != nil {
		compared(s.Enum.Values, &numbers, &others)
	}
	if s.Const != nil {
		compared(*s.Const, &numbers, &others)
	}
	one.looks += numbers + others/scalarShare
	if s.MinLength != nil || s.MaxLength != nil {
		one.text += lengthCost
	}
	patterns := make([]jsonschema.Regexp, 0, len(s.PatternProperties)+1)
	if s.Pattern != nil {
		patterns = append(patterns, s.Pattern)
	}
	for p := range s.PatternProperties {
		patterns = append(patterns, p)
	}
	for _, p := range patterns {
		n, err := instructions(p.String())
		if err != nil {
			return cost{}, err
		}
		one.text += uint64(n) * patternCost
	}
	if s.UniqueItems {
		one.below = uniqueCost
	}
	c.costs[s] = one
	return one, nil
}

// compared counts the values within one that a value is compared with.
func compared(v any, numbers, others *uint64) {
	switch v := v.(type) {
	case []any:
		*others++
		for _, elem := range v {
			compared(elem, numbers, others)
		}
	case map[string]any:
		*others++
		for _, member := range v {
			compared(member, numbers, others)
		}
	case nil, bool, string:
		*others++
	default:
		*numbers++
	}
}

// maxInstructions bounds one pattern: at the worst each byte of a text goes past all of them. A name of up to 1,000 characters takes
// 2,000.
const maxInstructions = 5000

// instructions is the size of a pattern, as the matcher runs it.
func instructions(pattern string) (int, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, fmt.Errorf("the pattern %q: %w", shorten(pattern, maxReason), err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, fmt.Errorf("the pattern %q: %w", shorten(pattern, maxReason), err)
	}
	if n := len(program.Inst); n > maxInstructions {
		return 0, fmt.Errorf("the pattern %q takes %d instructions; %d are allowed: repeat less in it", shorten(pattern, maxReason), n, maxInstructions)
	}
	return len(program.Inst), nil
}
