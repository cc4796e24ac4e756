package unit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/foldhost/foldhost/unit"
)

func TestAValueIsWithinItsLimitLosslessAndTrueToItsSchema(t *testing.T) {
	d := marks()
	d.StateSchema = json.RawMessage(`{"type":"object","properties":{
		"a":{"type":"array","items":{"anyOf":[{"type":"object","properties":{"s":{"enum":["x","y"]}},"required":["s"]},{"type":"null"}]}},
		"n":{"type":"integer","maximum":9007199254740993},"t":{"pattern":"^b"},"m":{"additionalProperties":{"type":"string"}}},"additionalProperties":false}`)
	u, err := unit.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, value string
		limit       int
		path        string // empty: taken
		size        bool
	}{
		{"right", `{"a":[{"s":"x"},null],"n":1,"t":"bc"}`, 0, "", false},
		{"white space", " { \"n\" :\n1 } ", 0, "", false},
		{"an integer in another spelling", `{"n":1e0}`, 0, "", false},
		{"an integer that no double carries", `{"n":9007199254740993}`, 0, "", false},
		{"one more than the maximum, which a double would round to it", `{"n":9007199254740994}`, 0, "$.n", false},
		{"at the limit", `{"n":1}`, 7, "", false},
		{"above the limit", `{"n":12}`, 7, "$", true},
		{"above the limit and not JSON", strings.Repeat("x", 100), 7, "$", true},
		{"above the default limit", `"` + strings.Repeat("x", unit.DefaultMaxBytes) + `"`, 0, "$", true},
		{"empty", ``, 0, "$", false},
		{"not JSON", `{"n":}`, 0, "$.n", false},
		{"a duplicate key", `{"n":1,"n":1}`, 0, "$.n", false},
		{"negative zero", `{"n":-0}`, 0, "$.n", false},
		{"the wrong type", `[]`, 0, "$", false},
		{"an unknown key", `{"b":1}`, 0, "$", false},
		{"deep inside, past another alternative", `{"a":[null,{"s":"x"},{"s":"z"}]}`, 0, "$.a[2].s", false},
		{"a key that is missing", `{"a":[{}]}`, 0, "$.a[0]", false},
		{"an odd key", `{"m":{"odd key":1}}`, 0, `$.m["odd key"]`, false},
		{"a pattern", `{"t":"ab"}`, 0, "$.t", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := u.CheckState(json.RawMessage(c.value), c.limit)
			if c.path == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var wrong *unit.ValueError
			if !errors.As(err, &wrong) {
				t.Fatalf("error is %v, want a *ValueError", err)
			}
			if wrong.What != "state" || wrong.Path != c.path || wrong.Reason == "" {
				t.Errorf("got %+v, want path %s", wrong, c.path)
			}
			if c.size != (wrong.Limit > 0) || c.size && wrong.Size != len(c.value) {
				t.Errorf("size %d, limit %d of a value of %d bytes", wrong.Size, wrong.Limit, len(c.value))
			}
			t.Log(err)
		})
	}
}

// Of several mismatches the deepest helps most, then one where at least the type was right, then the first by path and wording.
func TestTheMismatchThatHelpsMostIsTold(t *testing.T) {
	for _, c := range []struct{ schema, value, want string }{
		{`{"properties":{"a":{"type":"string"},"b":{"items":{"type":"string"}}}}`, `{"a":1,"b":["x",1]}`, "the state is wrong at $.b[1]: got number, want string"},
		{`{"properties":{"a":{"type":"string"},"b":{"minLength":3}}}`, `{"a":1,"b":"x"}`, "the state is wrong at $.b: minLength: got 1, want 3"},
		{`{"properties":{"b":{"type":"string"},"a":{"type":"string"},"c":{"type":"string"}}}`, `{"c":1,"a":1,"b":1}`, "the state is wrong at $.a: got number, want string"},
		{`{"allOf":[{"minLength":3},{"maxLength":0},{"const":"xyz"}]}`, `"x"`, "the state is wrong at $: maxLength: got 1, want 0"},
		{`{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"string"}}]}`, `["x",1]`, "the state is wrong at $[1]: got number, want string"},
		{`{"properties":{"1":{"properties":{"odd key":{"const":1}}}}}`, `{"1":{"odd key":2}}`, `the state is wrong at $["1"]["odd key"]: value must be 1`},
		{`false`, `1`, "the state is wrong at $: nothing is allowed here"},
	} {
		d := marks()
		d.StateSchema = json.RawMessage(c.schema)
		u, err := unit.Compile(d)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 { // the library's order is that of a map
			if err := u.CheckState(json.RawMessage(c.value), 0); err == nil || err.Error() != c.want {
				t.Errorf("%s of %s: %v, want %s", c.value, c.schema, err, c.want)
			}
		}
	}
	u, err := unit.Compile(marks())
	if err != nil {
		t.Fatal(err)
	}
	if err := u.CheckView(json.RawMessage(`{"marks":[]}`), 5); err == nil || err.Error() != "the view is 12 bytes; the limit is 5" {
		t.Error(err)
	}
}

func TestAReasonStaysShort(t *testing.T) {
	d := marks()
	values := make([]string, 5000)
	for i := range values {
		values[i] = fmt.Sprintf(`"ü%d"`, i)
	}
	d.StateSchema = json.RawMessage(`{"enum":[` + strings.Join(values, ",") + `]}`)
	u, err := unit.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := u.CheckState(json.RawMessage(`"x"`), 0); err == nil || len(err.Error()) > 1000 || strings.ToValidUTF8(err.Error(), "") != err.Error() {
		t.Errorf("error is %v", err)
	}
}

func TestAnAcceptedViewHasNoWhiteSpaceAndSharesNothing(t *testing.T) {
	u, err := unit.Compile(marks())
	if err != nil {
		t.Fatal(err)
	}
	given := json.RawMessage("{\n\"marks\": [\"a b\", \"<\\u003c\"]}")
	got, err := u.AcceptView(given, 0)
	if err != nil {
		t.Fatal(err)
	}
	clear(given)
	if want := `{"marks":["a b","<\u003c"]}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAHostOnlyUnitHasNoViewToCheck(t *testing.T) {
	u, err := unit.Compile(count())
	if err != nil {
		t.Fatal(err)
	}
	var wrong *unit.ValueError
	if err := u.CheckView(json.RawMessage(`1`), 0); !errors.As(err, &wrong) || !u.HostOnly() || wrong.What != "view" || wrong.Path != "$" {
		t.Errorf("error is %v, want a *ValueError", err)
	}
}

func TestValuesAreCheckedFromManyGoroutines(t *testing.T) {
	u, err := unit.Compile(marks())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 50 {
				value := json.RawMessage(`{"marks":["a"]}`)
				if i%2 == 1 {
					value = json.RawMessage(`{"marks":[1]}`)
				}
				if err := u.CheckView(value, 0); (err == nil) != (i%2 == 0) {
					t.Errorf("%s: %v", value, err)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkCompile(b *testing.B) {
	d := marks()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := unit.Compile(d); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckView(b *testing.B) {
	d := marks()
	d.ViewSchema = json.RawMessage(`{"$defs":{"Todo":{"type":"object","properties":{"content":{"type":"string"},"status":{"enum":["pending","in_progress","completed"]}},"required":["content","status"],"additionalProperties":false}},"anyOf":[{"type":"array","items":{"$ref":"#/$defs/Todo"}},{"type":"null"}]}`)
	u, err := unit.Compile(d)
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1, 50} {
		view := "[" + strings.Repeat(`{"content":"write the tests for the registry","status":"in_progress"},`, n-1) + `{"content":"x","status":"pending"}]`
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := u.CheckView(json.RawMessage(view), 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
