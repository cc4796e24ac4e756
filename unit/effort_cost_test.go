package unit

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/foldhost/foldhost/event"
)

// list is n values, written by format, with commas between them.
func list(n int, format string) string {
	var parts []string
	for i := range n {
		parts = append(parts, fmt.Sprintf(format, i))
	}
	return strings.Join(parts, ",")
}

func TestWhatOneLookCostsCounts(t *testing.T) {
	same := func(n int, value string) string { return "[" + strings.Repeat(value+",", n-1) + value + "]" }
	object := func(n int) string { return "{" + list(n, `"key %d":1`) + "}" }
	text := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	for _, c := range []struct {
		name, schema string
		few, many    string // taken, refused
	}{
		{"numbers of an enum", `{"items":{"enum":[` + list(8000, "%d") + `]}}`, same(10, "-1"), same(1000, "-1")},
		{"texts of an enum", `{"items":{"enum":[` + list(8000, `"%d"`) + `]}}`, same(500, `"x"`), same(50_000, `"x"`)},
		{"numbers within the values of an enum", `{"items":{"enum":[[` + list(8000, "%d") + `]]}}`, same(10, "[]"), same(1000, "[]")},
		{"numbers of a const", `{"items":{"const":[{"a":[` + list(8000, "%d") + `]}]}}`, same(10, "[]"), same(1000, "[]")},
		{"names that are required", `{"items":{"required":[` + list(8000, `"%d"`) + `]}}`, same(50, "{}"), same(1000, "{}")},
		{"names that others require", `{"items":{"dependentRequired":{"a":[` + list(8000, `"%d"`) + `]}}}`, same(50, "{}"), same(1000, "{}")},
		{"names that others require, in an old draft", `{"$schema":"http://json-schema.org/draft-07/schema#","items":{"dependencies":{"a":[` + list(8000, `"%d"`) + `]}}}`, same(50, "{}"), same(1000, "{}")},
		{"a large pattern over a long text", `{"pattern":"(x{0,1000})y"}`, text(1000), text(100_000)},
		{"a large pattern over long keys", `{"patternProperties":{"(x{0,1000})y":true}}`, `{` + text(1000) + `:1}`, `{` + text(100_000) + `:1}`},
		{"a large pattern for the names of keys", `{"propertyNames":{"pattern":"(x{0,1000})y"}}`, `{` + text(1000) + `:1}`, `{` + text(100_000) + `:1}`},
		{"many bounds of the length of a long text", `{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"maxLength":9},`, 4000), ",") + `]}`, text(1000), text(1_000_000)},
		{"many looks at a long text", doubled(14), text(1000), text(1_000_000)},
		{"elements that must differ, deep", `{"uniqueItems":true,"items":{"$ref":"#"}}`, strings.Repeat("[1,", 100) + "[2,3]" + strings.Repeat("]", 100), strings.Repeat("[1,", 100) + "[" + list(10_000, "%d") + "]" + strings.Repeat("]", 100)},
		{"looks that go over many keys", `{"allOf":[` + strings.TrimSuffix(strings.Repeat(`true,`, 10_000), ",") + `]}`, object(100), object(10_000)},
		{"looks that note what is not evaluated", `{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{},`, 1000), ",") + `],"unevaluatedProperties":{}}`, object(100), object(10_000)},
		{"a long number", `{"minimum":1}`, strings.Repeat("9", 300) + "." + strings.Repeat("9", maxNumber-301), strings.Repeat("9", 300) + "." + strings.Repeat("9", maxNumber-300)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := compileSchema(json.RawMessage(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			refused := func(value string) bool {
				text := json.RawMessage(value)
				_, m := decode(text)
				return m.tooLong() != "" || s.effort.steps(m) > allowed(len(text))
			}
			if refused(c.few) {
				t.Error("a small value is refused")
			}
			if !refused(c.many) {
				t.Error("a large value is taken")
			}
			if path, reason := s.mismatch(json.RawMessage(c.many)); path != "$" || reason == "" {
				t.Errorf("a large value is checked: %s %s", path, reason)
			}
		})
	}
}

// doubled is a schema that looks at one place 2^n times and more.
func doubled(n int) string {
	var defs []string
	for i := range n {
		defs = append(defs, fmt.Sprintf(`"%d":{"allOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%d"}]}`, i, i+1, i+1))
	}
	return fmt.Sprintf(`{"$ref":"#/$defs/0","$defs":{%s,"%d":{}}}`, strings.Join(defs, ","), n)
}

func TestAPatternIsBounded(t *testing.T) {
	for pattern, ok := range map[string]bool{
		`^[0-9a-f]{8}-[0-9a-f]{4}$`:        true,
		`^.{1,1000}$`:                      true,
		strings.Repeat(`x{0,1000}`, 4):     false,
		strings.Repeat(`(a|b){0,1000}`, 2): false,
	} {
		_, err := compileSchema(json.RawMessage(`{"pattern":"` + pattern + `"}`))
		if (err == nil) != ok {
			t.Errorf("%s: error %v, want taken: %t", pattern, err, ok)
		}
	}
}

func TestASchemaWithANumberThatIsTooLongIsRefused(t *testing.T) {
	if _, err := compileSchema(json.RawMessage(`{"multipleOf":0.` + strings.Repeat("1", maxNumber) + `}`)); err == nil {
		t.Error("it is taken")
	}
}

// TestLooksByDepth has schemas small enough to count by hand.
func TestLooksByDepth(t *testing.T) {
	for _, c := range []struct {
		name, schema string
		want         byDepth
	}{
		{"one look, and none below", `{"type":"array"}`, byDepth{1, 0}},
		{"one look everywhere", `{"items":{"$ref":"#"}}`, byDepth{1, 2}},
		{"a reference is a look of its own", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"null"}}}`, byDepth{2, 0}},
		{"in two parts, each of which goes down", `{"items":{"allOf":[{"items":{}},{"items":{}}]}}`, byDepth{1, 3, 2, 0}},
		{"twice as many at each level", `{"items":{"allOf":[{"items":{"$ref":"#/$defs/n"}}]},"$defs":{"n":{"items":true}}}`, byDepth{1, 2, 2, 1, 0}},
		{"members told apart by name are alternatives", `{"properties":{"a":{"allOf":[{},{}]},"b":{}}}`, byDepth{1, 3, 0}},
		{"a named member is none of the others", `{"properties":{"a":{}},"additionalProperties":{"allOf":[{},{}]}}`, byDepth{1, 3, 0}},
		{"a named member may fit a pattern", `{"properties":{"a":{}},"patternProperties":{"a":{},"b":{}}}`, byDepth{1, 3, 0}},
		{"keys are looked at beside their values", `{"properties":{"a":{}},"propertyNames":{}}`, byDepth{1, 2, 0}},
		{"what is contained is looked at beside the elements", `{"prefixItems":[{},{"allOf":[{}]}],"items":{},"contains":{}}`, byDepth{1, 3, 0}},
		{"what is not evaluated is looked at beside the elements", `{"prefixItems":[{}],"unevaluatedItems":{}}`, byDepth{1, 2, 0}},
		{"an old draft, all elements", `{"$schema":"http://json-schema.org/draft-07/schema#","items":{"allOf":[{},{}]}}`, byDepth{1, 3, 0}},
		{"an old draft, the rest of the elements", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{}],"additionalItems":{"allOf":[{},{}]}}`, byDepth{1, 3, 0}},
		{"an old draft, the rest without the first, which is ignored", `{"$schema":"http://json-schema.org/draft-07/schema#","additionalItems":{"allOf":[{},{}]}}`, byDepth{1, 0}},
		{"conditions all count", `{"if":{},"then":{},"else":{},"not":{},"dependentSchemas":{"a":{}}}`, byDepth{6, 0}},
		{"from two ways to the same place", `{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"items":{}}}}`, byDepth{5, 2, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := compileSchema(json.RawMessage(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.effort.looks; !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestTheDepthsOfALadderAreCountedToTheEnd(t *testing.T) {
	s, err := compileSchema(json.RawMessage(`{"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	// The root is three looks; each element of each part is a reference and the root again.
	want := uint64(3)
	for depth := range 35 {
		if got := s.effort.looks.at(depth); got != want {
			t.Fatalf("depth %d costs %d looks, want %d", depth, got, want)
		}
		if depth == 0 {
			want = 1 + 3
		}
		want *= 2
	}
	if got := s.effort.looks.at(900); got != manyWays {
		t.Errorf("depth 900 costs %d looks, want no end of them", got)
	}
}

// TestNoValueTakesMoreLooksThanCounted holds the count against one that goes the ways one by one, over random schemas and values.
func TestNoValueTakesMoreLooksThanCounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b"}
		var schemaText func(depth int) string
		schemaText = func(depth int) string {
			if depth == 0 {
				return rapid.SampledFrom([]string{`true`, `{}`, `{"$ref":"#/$defs/a"}`, `{"$ref":"#/$defs/b"}`}).Draw(t, "leaf")
			}
			sub := func() string { return schemaText(rapid.IntRange(0, depth-1).Draw(t, "depth")) }
			var parts []string
			for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"allOf", "anyOf", "not", "items", "prefixItems", "contains", "properties",
				"patternProperties", "additionalProperties", "if", "unevaluatedItems"}), 0, 3, rapid.ID[string]).Draw(t, "keywords") {
				switch key {
				case "allOf", "anyOf", "prefixItems":
					parts = append(parts, fmt.Sprintf(`%q:[%s,%s]`, key, sub(), sub()))
				case "properties", "patternProperties":
					parts = append(parts, fmt.Sprintf(`%q:{"a":%s,"b":%s}`, key, sub(), sub()))
				default:
					parts = append(parts, fmt.Sprintf(`%q:%s`, key, sub()))
				}
			}
			return "{" + strings.Join(parts, ",") + "}"
		}
		text := fmt.Sprintf(`{"items":%s,"properties":{"a":%s},"$defs":{"a":%s,"b":%s}}`, schemaText(2), schemaText(2), schemaText(2), schemaText(2))
		s, err := compileSchema(json.RawMessage(text))
		if err != nil {
			return // it comes back to itself
		}
		var valueText func(depth int) string
		valueText = func(depth int) string {
			switch kind := rapid.IntRange(0, 2).Draw(t, "kind"); {
			case depth == 0 || kind == 0:
				return "1"
			case kind == 1:
				return fmt.Sprintf("[%s,%s]", valueText(depth-1), valueText(depth-1))
			default:
				return fmt.Sprintf(`{%q:%s,"c":%s}`, rapid.SampledFrom(names).Draw(t, "name"), valueText(depth-1), valueText(depth-1))
			}
		}
		value, m := decode(json.RawMessage(valueText(3)))
		var counted uint64
		for depth, n := range m.places {
			counted += uint64(n) * s.effort.looks.at(depth)
		}
		if walked := looks(s.compiled, value); walked > counted {
			t.Fatalf("%s takes %d looks, %d were counted: %v for %v", text, walked, counted, s.effort.looks, m.places)
		}
	})
}

// looks goes all the ways that lead into a value, as a validator that never stops early.
func looks(s *jsonschema.Schema, v any) uint64 {
	n := uint64(1)
	for _, part := range slices.Concat(s.AllOf, s.AnyOf, []*jsonschema.Schema{s.Not, s.If, s.Ref}) {
		if part != nil {
			n += looks(part, v)
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			known := false
			if p := s.Properties[name]; p != nil {
				n, known = n+looks(p, member), true
			}
			for pattern, p := range s.PatternProperties {
				if pattern.MatchString(name) {
					n, known = n+looks(p, member), true
				}
			}
			if other, ok := s.AdditionalProperties.(*jsonschema.Schema); ok && !known {
				n += looks(other, member)
			}
		}
	case []any:
		for i, elem := range v {
			switch {
			case i < len(s.PrefixItems):
				n += looks(s.PrefixItems[i], elem)
			case s.Items2020 != nil:
				n += looks(s.Items2020, elem)
			}
			for _, each := range []*jsonschema.Schema{s.Contains, s.UnevaluatedItems} {
				if each != nil {
					n += looks(each, elem)
				}
			}
		}
	}
	return n
}

func TestDepthsThatNobodyHasCountedHaveNoEnd(t *testing.T) {
	// Two levels take turns, so that there is no end, and each has thousands of members to add up.
	s, err := compileSchema(json.RawMessage(`{"properties":{` + list(2000, `"%d":{"$ref":"#/$defs/b"}`) + `},"$defs":{"b":{"properties":{"a":{"allOf":[{"$ref":"#"}]}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for depth, want := range map[int]uint64{0: 1, 1: 2, 2: 3, 3: 2, 12: 3, event.MaxDepth: manyWays} {
		if got := s.effort.looks.at(depth); got != want {
			t.Errorf("depth %d costs %d looks, want %d", depth, got, want)
		}
	}
}

// Older drafts say the same in other words, and it costs the same.
func TestKeywordsThatMeanTheSameCostTheSame(t *testing.T) {
	const draft7 = `"$schema":"http://json-schema.org/draft-07/schema#"`
	for name, pair := range map[string][2]string{
		"tuples":                {`{` + draft7 + `,"items":[{"pattern":"^a*$"},{"uniqueItems":true}],"additionalItems":{"enum":[1,2,3]}}`, `{"prefixItems":[{"pattern":"^a*$"},{"uniqueItems":true}],"items":{"enum":[1,2,3]}}`},
		"lists":                 {`{` + draft7 + `,"items":{"enum":[1,2,3]}}`, `{"items":{"enum":[1,2,3]}}`},
		"what a key asks for":   {`{` + draft7 + `,"dependencies":{"a":{"enum":[1,2,3]},"b":["c","d","e","f","g","h","i"]}}`, `{"dependentSchemas":{"a":{"enum":[1,2,3]}},"dependentRequired":{"b":["c","d","e","f","g","h","i"]}}`},
		"lengths":               {`{"minLength":1}`, `{"maxLength":1}`},
		"what is not evaluated": {`{"unevaluatedItems":true}`, `{"unevaluatedProperties":true}`},
	} {
		var efforts []effort
		for _, text := range pair {
			s, err := compileSchema(json.RawMessage(text))
			if err != nil {
				t.Fatal(err)
			}
			efforts = append(efforts, s.effort)
		}
		if !reflect.DeepEqual(efforts[0], efforts[1]) {
			t.Errorf("%s cost %+v in one and %+v in the other", name, efforts[0], efforts[1])
		}
	}
}

func TestCostsDoNotOverflow(t *testing.T) {
	for _, pair := range [][2]uint64{{manyWays, manyWays}, {1 << 33, 1 << 33}, {1, manyWays + 1}, {3, manyWays / 2}, {manyWays, 2}} {
		if got := times(pair[0], pair[1]); got != manyWays {
			t.Errorf("%d times %d is %d", pair[0], pair[1], got)
		}
	}
	for _, c := range [][3]uint64{{0, manyWays + 1, 0}, {3, 0, 0}, {2, manyWays / 2, manyWays}, {1, manyWays - 1, manyWays - 1}} {
		if got := times(c[0], c[1]); got != c[2] {
			t.Errorf("%d times %d is %d, want %d", c[0], c[1], got, c[2])
		}
	}
}
