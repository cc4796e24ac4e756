package event

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// Equal says whether two values are equal as JSON: key order does not matter, array order does, numbers by exact decimal
// value (1 = 1.0 = 10e-1), strings by what they decode to. Both must be lossless JSON. The time is linear in the
// size of both, but for sorting keys where their order differs. Nothing is allocated unless it does or strings are escaped.
func Equal(a, b json.RawMessage) bool {
	a, b = trim(a), trim(b)
	if bytes.Equal(a, b) {
		return true
	}
	c := comparer{a: a, b: b}
	equal := c.value(0)
	if c.turned {
		x, _ := readTree(a, 0, 0)
		y, _ := readTree(b, 0, 0)
		return x.equal(y)
	}
	return equal
}

// comparer walks two texts in step, with no memory of its own. It gives up when the keys of an object come in another order,
// and all is then read into trees: doing that for the one object would read it again for each object around it that is turned
// too. Recursion is bounded: lossless JSON is at most MaxDepth deep.
type comparer struct {
	a, b   []byte
	i, j   int
	turned bool // given up; what value says does not count
}

func (c *comparer) skip() {
	c.i, c.j = skipBlank(c.a, c.i), skipBlank(c.b, c.j)
}

// heads are the next bytes of both, 0 at an end.
func (c *comparer) heads() (x, y byte) {
	if c.i < len(c.a) {
		x = c.a[c.i]
	}
	if c.j < len(c.b) {
		y = c.b[c.j]
	}
	return x, y
}

// value compares the values at the present places and steps behind them if they are equal.
func (c *comparer) value(depth int) bool {
	if depth > MaxDepth+1 {
		return false
	}
	switch x, y := c.heads(); {
	case x == '[' && y == '[':
		return c.array(depth)
	case x == '{' && y == '{':
		return c.object(depth)
	case x == 0 || y == 0 || x == '[' || x == '{' || y == '[' || y == '{':
		return false
	}
	start, from := c.i, c.j
	c.i, c.j = skipValue(c.a, c.i), skipValue(c.b, c.j)
	return sameScalar(c.a[start:c.i], c.b[from:c.j])
}

func (c *comparer) array(depth int) bool {
	c.i++
	c.j++
	for {
		c.skip()
		x, y := c.heads()
		if x == ']' || y == ']' || x == 0 || y == 0 {
			c.i++
			c.j++
			return x == y
		}
		if !c.value(depth + 1) {
			return false
		}
		c.comma()
	}
}

// comma steps over a comma in both, where there is one.
func (c *comparer) comma() {
	c.skip()
	x, y := c.heads()
	if x == ',' {
		c.i++
	}
	if y == ',' {
		c.j++
	}
}

func (c *comparer) object(depth int) bool {
	c.i++
	c.j++
	for {
		c.skip()
		x, y := c.heads()
		if x != '"' || y != '"' {
			c.i++
			c.j++
			return x == y && x == '}'
		}
		i, j := skipString(c.a, c.i), skipString(c.b, c.j)
		if !sameText(c.a[c.i:i], c.b[c.j:j]) {
			c.turned = true
			return false
		}
		c.i, c.j = i, j
		c.skip()
		c.i++ // the colons
		c.j++
		c.skip()
		if !c.value(depth + 1) {
			return false
		}
		c.comma()
	}
}

func sameScalar(a, b []byte) bool {
	if string(a) == string(b) {
		return true
	}
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	if a[0] == '"' || b[0] == '"' {
		return sameText(a, b)
	}
	return isNumber(a) && isNumber(b) && parseDecimal(a).equal(parseDecimal(b))
}

func isNumber(raw []byte) bool {
	end, _ := numberEnd(raw, 0)
	return end > 0 && end == len(raw)
}

// tree is a value with the members of its objects sorted by key.
type tree struct {
	scalar  []byte
	kind    byte // '{', '[' or 0
	elems   []tree
	members []treeMember
}

type treeMember struct {
	key   string
	value tree
}

// readTree reads the value at i and returns the index behind it.
func readTree(raw []byte, i, depth int) (tree, int) {
	i = skipBlank(raw, i)
	if i >= len(raw) || depth > MaxDepth+1 || raw[i] != '{' && raw[i] != '[' {
		end := skipValue(raw, i)
		return tree{scalar: raw[i:end]}, end
	}
	t := tree{kind: raw[i]}
	i++
	for {
		i = skipBlank(raw, i)
		if i >= len(raw) {
			return t, i
		}
		switch raw[i] {
		case '}', ']':
			slices.SortFunc(t.members, func(x, y treeMember) int { return strings.Compare(x.key, y.key) })
			return t, i + 1
		case ',':
			i++
			continue
		}
		var m treeMember
		if t.kind == '{' {
			end := skipString(raw, i)
			m.key, _ = String(raw[i:end])
			i = min(skipBlank(raw, end)+1, len(raw)) // behind the colon
		}
		m.value, i = readTree(raw, i, depth+1)
		if t.kind == '{' {
			t.members = append(t.members, m)
		} else {
			t.elems = append(t.elems, m.value)
		}
	}
}

func (t *tree) equal(o tree) bool {
	if t.kind != o.kind || len(t.elems) != len(o.elems) || len(t.members) != len(o.members) {
		return false
	}
	if t.kind == 0 {
		return sameScalar(t.scalar, o.scalar)
	}
	for i := range t.elems {
		if !t.elems[i].equal(o.elems[i]) {
			return false
		}
	}
	for i := range t.members {
		if t.members[i].key != o.members[i].key || !t.members[i].value.equal(o.members[i].value) {
			return false
		}
	}
	return true
}
