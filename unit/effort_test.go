package unit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/unit"
)

// doubling is a schema of n steps, each of which goes to the next one twice: 2^n ways to one place.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"a%d":{"type":"null"}}}`, n)
	return b.String()
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestASchemaWithTooManyWaysToOnePlaceIsRefused(t *testing.T) {
	for _, c := range []struct {
		n  int
		ok bool
	}{{3, true}, {10, true}, {30, false}, {200, false}} {
		d := marks()
		d.StateSchema = json.RawMessage(doubling(c.n))
		if _, err := unit.Compile(d); (err == nil) != c.ok {
			t.Errorf("2^%d ways: error %v, want taken: %t", c.n, err, c.ok)
		}
	}
}

func TestAValueThatWouldKeepTheValidatorBusyIsRefused(t *testing.T) {
	twice := `{"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}`
	binary := `{"properties":{"l":{"$ref":"#"},"r":{"$ref":"#"},"v":{"type":"integer"}},"additionalProperties":false}`
	apart := `{"allOf":[{"properties":{"l":{"$ref":"#"}}},{"properties":{"r":{"$ref":"#"}}}]}`
	leftmost := func(n int) string { return strings.Repeat(`{"l":`, n) + "{}" + strings.Repeat("}", n) }
	union := `{"anyOf":[{"properties":{"kind":{"const":"text"}},"required":["kind"],"additionalProperties":false}`
	for _, kind := range []string{"row", "column", "box", "list"} {
		union += `,{"properties":{"kind":{"const":"` + kind + `"},"children":{"items":{"$ref":"#"}}},"required":["kind"],"additionalProperties":false}`
	}
	union += `]}`
	node := func(n int) string {
		return strings.Repeat(`{"kind":"box","children":[`, n) + `{"kind":"text"}` + strings.Repeat(`]}`, n)
	}
	for _, c := range []struct {
		name, schema, value string
		ok                  bool
	}{
		{"two ways down at each level, 5 deep", twice, nested(5), true},
		{"two ways down at each level, 40 deep", twice, nested(40), false},
		{"two ways down at each level, 900 deep", twice, nested(900), false},
		{"two ways down, and many values none of which is deep", twice, "[" + strings.Repeat("1,", 50_000) + "1]", true},
		{"one way down at each level, 900 deep", binary, leftmost(900), true},
		{"one way down at each level, told apart by name, 300 deep", apart, leftmost(300), true},
		{"alternatives for each of many elements", `{"items":{"anyOf":[{"type":"string"},{"type":"boolean"},{"type":"integer"}]}}`, "[" + strings.Repeat("1,", 100_000) + "1]", true},
		{"a union of five kinds of node, six deep", union, node(6), true},
		{"a union of five kinds of node, twelve deep", union, node(12), false},
		{"a draft with items as a list", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"$ref":"#"}],"additionalItems":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}`, nested(10), true},
		{"two ways for the rest of the elements", `{"prefixItems":[{}],"items":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}`, strings.Repeat("[1,", 60) + strings.Repeat("]", 60), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := marks()
			d.StateSchema = json.RawMessage(c.schema)
			u, err := unit.Compile(d)
			if err != nil {
				t.Fatal(err)
			}
			value := strings.ReplaceAll(c.value, ",]", ",1]")
			err = u.CheckState(json.RawMessage(value), 0)
			var wrong *unit.ValueError
			if c.ok && err != nil || !c.ok && !errors.As(err, &wrong) {
				t.Errorf("error %v, want taken: %t", err, c.ok)
			}
		})
	}
}

func TestNumbersThatNoDoubleTellsFromZeroAreNotComputed(t *testing.T) {
	d := marks()
	d.StateSchema = json.RawMessage(`{"type":"array","items":{"type":"number","minimum":-1,"multipleOf":0.5}}`)
	u, err := unit.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	// Exact arithmetic over these would take minutes.
	if err := u.CheckState(json.RawMessage("["+strings.Repeat("1e-999999,", 2000)+"1]"), 0); err != nil {
		t.Error(err)
	}
}
