package unit

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestEveryMismatchHasThePathOfWhatIsWrong(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{
		"flag":{"type":"boolean"},
		"limits":{"type":"object","properties":{"max":{"type":"integer","minimum":1}},"required":["max"],"additionalProperties":false},
		"twice":{"allOf":[{"type":"string"},{"type":"string"}]},
		"names":{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}]}
	},"required":["flag"],"additionalProperties":false}`)
	s, err := CompileSchema(schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, value string
		want        []string
	}{
		{"right", `{"flag":true,"limits":{"max":1},"names":null}`, nil},
		{"required and absent", `{}`, []string{"$.flag"}},
		{"required and absent below", `{"flag":true,"limits":{}}`, []string{"$.limits.max"}},
		{"another type", `{"flag":"no"}`, []string{"$.flag"}},
		{"unknown keys", `{"flag":true,"flog":1,"odd key":2}`, []string{"$.flog", `$["odd key"]`}},
		{"an element, in one of several alternatives", `{"flag":true,"names":["a",1]}`, []string{"$.names[1]"}},
		{"several at once", `{"limits":{"max":0,"min":1}}`, []string{"$.flag", "$.limits.max", "$.limits.min"}},
		{"not an object", `[]`, []string{"$"}},
		{"in the order of the paths", `{"limits":{"z":1,"max":"x"},"flag":1,"b":1,"a":1,"names":3}`, []string{"$.a", "$.b", "$.flag", "$.limits.max", "$.limits.z", "$.names"}},
		{"the same twice", `{"flag":true,"twice":1}`, []string{"$.twice"}},
		{"a number that is too long to be looked at", `{"flag":true,"limits":{"max":0.` + strings.Repeat("1", maxNumber) + `}}`, []string{"$"}},
		{"not JSON", `{"flag":tru`, []string{"$.flag"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, m := range s.Check(json.RawMessage(tt.value)) {
				got = append(got, m.Path)
				if m.Reason == "" || m.String() != m.Path+": "+m.Reason {
					t.Errorf("%s has no reason: %s", m.Path, m)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestOfManyMismatchesTheFirstAreListed(t *testing.T) {
	s, err := CompileSchema(json.RawMessage(`{"items":{"type":"string"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]string{
		maxMismatches: "", maxMismatches + 1: "and at least 1 more", maxWorded: "and at least 180 more", maxWorded + 50: "and at least 180 more",
	} {
		got := s.Check(json.RawMessage("[1" + strings.Repeat(",1", n-1) + "]"))
		listed := got
		if want != "" {
			last := len(got) - 1
			if listed = got[:last]; got[last] != (Mismatch{"$", want}) {
				t.Errorf("of %d the last is %v, want %s", n, got[last], want)
			}
		}
		if len(listed) != maxMismatches || listed[0].Path != "$[0]" {
			t.Errorf("of %d, %d are listed, from %v on", n, len(listed), listed[0])
		}
	}
	no, err := CompileSchema(json.RawMessage(`false`))
	if err != nil {
		t.Fatal(err)
	}
	if got := no.Check(json.RawMessage(`1`)); len(got) != 1 || got[0].Path != "$" || got[0].Reason == "" {
		t.Errorf("nothing is allowed, and %v", got)
	}
}

func TestToolsAreRefusedWithTheRuleThatTheyBreak(t *testing.T) {
	right := func() Tool { return Tool{Name: "todo_write", ArgumentSchema: json.RawMessage(`{"type":"object"}`)} }
	for _, tt := range []struct {
		rule string
		make func(*Tool)
	}{
		{"", func(*Tool) {}},
		{"", func(t *Tool) { t.Name = "azAZ09_-" }},
		{"", func(t *Tool) { t.Name = strings.Repeat("x", MaxToolName) }},
		{"", func(t *Tool) { t.ResultSchema = json.RawMessage(`true`) }},
		{"", func(t *Tool) { t.Reads = []string{"todo/list", "a"} }},
		{"", func(t *Tool) { t.Retry = RetryNever }},
		{"name", func(t *Tool) { t.Name = strings.Repeat("x", MaxToolName+1) }},
		{"name", func(t *Tool) { t.Name = "a.b" }},
		{"name", func(t *Tool) { t.Name = "a{" }},
		{"name", func(t *Tool) { t.Name = "ü" }},
		{"name", func(t *Tool) { t.Name = "" }},
		{"name", func(t *Tool) { t.Name = "a b" }},
		{"argument-schema", func(t *Tool) { t.ArgumentSchema = nil }},
		{"argument-schema", func(t *Tool) { t.ArgumentSchema = json.RawMessage(`{"type":5}`) }},
		{"result-schema", func(t *Tool) { t.ResultSchema = json.RawMessage(`[]`) }},
		{"reads", func(t *Tool) { t.Reads = []string{"ok", "not a key"} }},
		{"retry", func(t *Tool) { t.Retry = RetryNever + 1 }},
	} {
		tool := right()
		tt.make(&tool)
		err := CheckTool(&tool)
		if tt.rule == "" {
			if err != nil {
				t.Errorf("a right tool is refused: %v", err)
			}
			continue
		}
		if te, ok := err.(*ToolError); !ok || te.Rule != tt.rule || te.Name != tool.Name {
			t.Errorf("got %v, want rule %q", err, tt.rule)
		}
	}
}
