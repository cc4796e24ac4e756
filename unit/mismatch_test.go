package unit

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestEveryMismatchHasThePathOfWhatIsWrong(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{
		"flag":{"type":"boolean"},
		"limits":{"type":"object","properties":{"max":{"type":"integer","minimum":1}},"required":["max"],"additionalProperties":false},
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
		{"not JSON", `{"flag":tru`, []string{"$.flag"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, m := range s.Check(json.RawMessage(tt.value)) {
				got = append(got, m.Path)
				if m.Reason == "" {
					t.Errorf("%s has no reason", m.Path)
				}
			}
			if tt.name == "not JSON" && len(got) == 1 {
				return
			}
			slices.Sort(got)
			want := slices.Sorted(slices.Values(tt.want))
			if !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

func TestToolsAreRefusedWithTheRuleThatTheyBreak(t *testing.T) {
	right := func() Tool { return Tool{Name: "todo_write", ArgumentSchema: json.RawMessage(`{"type":"object"}`)} }
	for _, tt := range []struct {
		rule string
		make func(*Tool)
	}{
		{"", func(*Tool) {}},
		{"name", func(t *Tool) { t.Name = "" }},
		{"name", func(t *Tool) { t.Name = "a b" }},
		{"name", func(t *Tool) { t.Name = string(make([]byte, MaxToolName+1)) }},
		{"argument-schema", func(t *Tool) { t.ArgumentSchema = nil }},
		{"argument-schema", func(t *Tool) { t.ArgumentSchema = json.RawMessage(`{"type":5}`) }},
		{"result-schema", func(t *Tool) { t.ResultSchema = json.RawMessage(`[]`) }},
		{"reads", func(t *Tool) { t.Reads = []string{"ok", "not a key"} }},
		{"retry", func(t *Tool) { t.Retry = 9 }},
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
		if te, ok := err.(*ToolError); !ok || te.Rule != tt.rule {
			t.Errorf("got %v, want rule %q", err, tt.rule)
		}
	}
}
