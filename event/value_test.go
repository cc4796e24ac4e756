package event_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
)

func TestLookup(t *testing.T) {
	raw := json.RawMessage(` { "a" : { "b" : [ 1 ] , "c\"" : null } , "\u00e9" : "x" , "s" : "}\"{" , "" : 0 } `)
	for _, c := range []struct {
		path []string
		want string
	}{
		{nil, strings.TrimSpace(string(raw))},
		{[]string{"a", "b"}, `[ 1 ]`},
		{[]string{"a", `c"`}, `null`},
		{[]string{"é"}, `"x"`},
		{[]string{"s"}, `"}\"{"`},
		{[]string{""}, `0`},
		{[]string{"A"}, ``},
		{[]string{`\u00e9`}, ``},
		{[]string{"a", "b", "0"}, ``},
		{[]string{"s", "x"}, ``},
		{[]string{"missing", "x"}, ``},
	} {
		if got := event.Lookup(raw, c.path...); string(got) != c.want || (c.want == "") != (got == nil) {
			t.Errorf("%q: got %s, want %s", c.path, got, c.want)
		}
	}
}

func TestReadingAValueAllocatesNothing(t *testing.T) {
	raw := json.RawMessage(`{"pad":"0123456789","\u0061":{"n":1234567,"x":1.5e3}}`)
	if n := testing.AllocsPerRun(100, func() {
		if v, ok := event.Integer(event.Lookup(raw, "a", "n")); !ok || v != 1234567 {
			t.Fatal(v, ok)
		}
		if v, ok := event.Integer(event.Lookup(raw, "a", "x")); !ok || v != 1500 {
			t.Fatal(v, ok)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestCollectionsEndWhenToldTo(t *testing.T) {
	n := 0
	stop := func(json.RawMessage) bool { n++; return n < 2 }
	if !event.Elements(json.RawMessage(`[1,2,3]`), stop) || n != 2 {
		t.Errorf("%d elements", n)
	}
	n = 0
	if !event.Members(json.RawMessage(`{"a":1,"b":2,"c":3}`), func(_ string, v json.RawMessage) bool { return stop(v) }) || n != 2 {
		t.Errorf("%d members", n)
	}
	var keys []string
	if !event.Members(json.RawMessage(` {"\u0061\"":1,"b":2}`), func(key string, _ json.RawMessage) bool { keys = append(keys, key); return true }) || !slices.Equal(keys, []string{`a"`, "b"}) {
		t.Errorf("keys %q", keys)
	}
	n = 0
	if !event.Elements(json.RawMessage(" [1, 2] "), func(json.RawMessage) bool { n++; return true }) || n != 2 {
		t.Errorf("%d elements amid white space", n)
	}
	for _, raw := range []string{``, `1`, `"[]"`, `{}`, `null`} {
		if event.Elements(json.RawMessage(raw), func(json.RawMessage) bool { t.Error("an element"); return true }) {
			t.Errorf("%s is no array", raw)
		}
	}
	for _, raw := range []string{``, `1`, `"{}"`, `[]`, `null`} {
		if event.Members(json.RawMessage(raw), func(string, json.RawMessage) bool { t.Error("a member"); return true }) {
			t.Errorf("%s is no object", raw)
		}
	}
}

func TestStringsEndAtTheQuoteThatIsNotEscaped(t *testing.T) {
	for plain := range 40 {
		for slashes := range 6 {
			text := strings.Repeat("x", plain) + strings.Repeat(`\\`, slashes)
			for _, value := range []string{`"` + text + `"`, `"` + text + `\""`, `"` + text + `\",\"n\":2"`} {
				raw := json.RawMessage(`{"s":` + value + `,"n":1}`)
				if got := event.Lookup(raw, "s"); string(got) != value {
					t.Errorf("%s: got %s", raw, got)
				}
				if n, ok := event.Integer(event.Lookup(raw, "n")); !ok || n != 1 {
					t.Errorf("%s: got %d, %v", raw, n, ok)
				}
			}
		}
	}
}

func TestIntegers(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1": 1, "-1": -1, "1.0": 1, "1e0": 1, "1.50e1": 15, "100e-2": 1, "0e999999": 0, "0.000": 0, "12.340e2": 1234, "0.0012e4": 12,
		"9007199254740991": event.MaxInteger, "-9007199254740991": -event.MaxInteger, "9.007199254740991e15": event.MaxInteger, " 7 ": 7,
		"0.0000000000000000000000001e25": 1, "10000000000000000000000000e-25": 1,
	} {
		if got, ok := event.Integer(json.RawMessage(text)); !ok || got != want {
			t.Errorf("%s: got %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", " ", "a", `"1"`, "null", "true", "0.5", "1e-1", "15e-1", "1.5", "9007199254740992", "-9007199254740992", "9007199254740991.5",
		"1e16", "10e15", "1e17", "1e18446744073709551616", "1e-18446744073709551616", "1e400", "1e999999999999999999999", "1e-999999999999999999999", "99999999999999999999", "1.", "01", "1 2", "-", "[1]", "0.10"} {
		if got, ok := event.Integer(json.RawMessage(text)); ok {
			t.Errorf("%s: got %d", text, got)
		}
	}
}

func TestStrings(t *testing.T) {
	for text, want := range map[string]string{
		`""`: "", `"a"`: "a", ` "a" `: "a", `"\"\\\/\b\f\n\r\t"`: "\"\\/\b\f\n\r\t", `"\u00e9é"`: "éé", `"\ud83d\ude00"`: "😀",
		`"\ud800"`: "\xed\xa0\x80", `"\udfff\ud800x"`: "\xed\xbf\xbf\xed\xa0\x80x", `"\ud800\u0041"`: "\xed\xa0\x80A", `"\ud800\ue000"`: "\xed\xa0\x80\ue000", `"\ud800\ud83d\ude00"`: "\xed\xa0\x80😀", `"\u0000"`: "\x00",
		`"\ud800\udc00"`: "\U00010000", `"\udbff\udfff"`: "\U0010ffff", `"\u0041\udc00"`: "A\xed\xb0\x80", `"\udc00\udc00"`: "\xed\xb0\x80\xed\xb0\x80",
		`"\ud800xudc00"`: "\xed\xa0\x80xudc00", `"\ud800\ndc00"`: "\xed\xa0\x80\ndc00", `"\u00AB\u00ff\u00Ff"`: "\u00ab\u00ff\u00ff", `"\uE000\ud7ff"`: "\ue000\ud7ff",
		`"\ud83d\ude00x\ud83d\ude00\u00abc"`: "😀x😀\u00abc",
	} {
		got, ok := event.String(json.RawMessage(text))
		if !ok || got != want {
			t.Errorf("%s: got %q, %v", text, got, ok)
		}
		if back, ok := event.String(event.AppendString(nil, got)); !ok || back != got {
			t.Errorf("%s: came back as %q", text, back)
		}
	}
	for _, text := range []string{``, `"`, `"a`, `a"`, `a`, `1`, `null`, `["a"]`, `"a" "b"`, `{"a":"b"}`} {
		if got, ok := event.String(json.RawMessage(text)); ok {
			t.Errorf("%s: got %q", text, got)
		}
	}
}

func TestStringsGoOutWithTheFewestEscapes(t *testing.T) {
	for s, want := range map[string]string{
		"<&>\u2028é/": "\"<&>\u2028é/\"", "\"\\\n\r\t\b\f\x00\x1f": `"\"\\\n\r\t\b\f\u0000\u001f"`, "\x7f": "\"\x7f\"",
		"\xed\xa0\xbd": `"\ud83d"`, "a\xffb": `"a\ufffdb"`, "a\x80b": `"a\ufffdb"`, "\xed\xa0A": `"\ufffd\ufffdA"`, "\ufffd": "\"\ufffd\"",
		// Two halves of a character, joined.
		"\xed\xa0\xbd" + "\xed\xb8\x80": `"\ud83d\ude00"`,
	} {
		got := event.AppendString([]byte("x"), s)
		if string(got) != "x"+want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
		if !json.Valid(got[1:]) {
			t.Errorf("%s is not JSON", got[1:])
		}
	}
}

func TestEqual(t *testing.T) {
	wide := func(from, step int) string {
		var b strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&b, `,"k%d":{"v":[%d]}`, (from+i*step+1000)%1000, (from+i*step+1000)%1000)
		}
		return "{" + b.String()[1:] + "}"
	}
	deep := func(inner string) string {
		return strings.Repeat(`{"x":1,"y":[`, 400) + inner + strings.Repeat(`]}`, 400)
	}
	deepTurned := func(inner string) string {
		return strings.Repeat(`{"y":[`, 400) + inner + strings.Repeat(`],"x":1.0}`, 400)
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`1`, `1.0`, true}, {`10`, `1e1`, true}, {`0.1`, `1E-1`, true}, {`0`, `0e5`, true}, {`0.0`, `0`, true}, {`-1`, `-1.00`, true},
		{`123000`, `1.23e5`, true}, {`1e-400`, `0.1e-399`, true}, {`1e400000000000000000000`, `1e400000000000000000000`, true},
		{`1`, `-1`, false}, {`1`, `2`, false}, {`12`, `1`, false}, {`1`, `10`, false}, {`1e-400`, `0`, false}, {`0.1`, `0.10000000000000000001`, false}, {`1`, `"1"`, false},
		{`"a"`, `"\u0061"`, true}, {`"😀"`, `"\ud83d\ude00"`, true}, {`"\ud83d"`, `"\uD83D"`, true}, {`"a"`, `"A"`, false}, {`""`, `null`, false},
		{`null`, `null`, true}, {`true`, `false`, false}, {`null`, `false`, false}, {`[]`, `{}`, false}, {`[]`, `null`, false}, {``, `null`, false},
		{`[1,2]`, `[ 1.0 , 2e0 ]`, true}, {`[1,2]`, `[2,1]`, false}, {`[1]`, `[1,2]`, false}, {`[1,2]`, `[1]`, false}, {`[]`, `[1]`, false}, {`[[]]`, `[]`, false}, {`[]`, `[ ]`, true},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, true}, {`{"a":1,"b":2}`, ` { "\u0062" : 2.0 , "a" : 1 } `, true}, {`{"a":1}`, `{"a":2}`, false}, {`{"a":1}`, `{"b":1}`, false},
		{`{"a":1}`, `{}`, false}, {`{}`, `{"a":1}`, false}, {`{"a":1}`, `{"a":1,"b":1}`, false}, {`{"a":1,"b":1}`, `{"a":1}`, false}, {`{"b":1,"c":1}`, `{"a":1,"b":1,"c":1}`, false},
		{`{"a":null}`, `{"b":null}`, false}, {`"]"`, `[]`, false}, {`"1]"`, `[1]`, false}, {`"}"`, `{}`, false}, {`{"a":[],"b":1}`, `{"b":1,"a":{}}`, false},
		{`{"x":{"a":1,"b":1},"y":1}`, `{"y":1,"x":{"a":1}}`, false}, {`{"x":[1,2],"y":1}`, `{"y":1,"x":[1]}`, false}, {`{"x":[1,2],"y":1}`, `{"y":1,"x":[2,1]}`, false},
		{`1e-400000000000000000000`, `1e-400000000000000000001`, false}, {`1e-400000000000000000000`, `1e-4000000000000000000`, false}, {`1e-18446744073709551616`, `1`, false},
		{`{"a":{"x":1,"y":[{"p":1,"q":2}]}}`, `{"a":{"y":[{"q":2,"p":1}],"x":1}}`, true},
		{`[{"a":1,"b":2},3]`, `[{"b":2,"a":1},3]`, true}, {`[{"a":1,"b":2},3]`, `[{"b":2,"a":1},4]`, false}, {`[{"a":1,"b":2},3]`, `[{"b":2,"a":1}]`, false},
		{wide(0, 1), wide(0, 1), true}, {wide(0, 1), wide(999, -1), true}, {wide(0, 1), strings.Replace(wide(999, -1), "[7]", "[8]", 1), false},
		{deep(`1`), deepTurned(`1e0`), true}, {deep(`1`), deepTurned(`2`), false}, {nested(1000), nested(1000) + " ", true}, {nested(1000), nested(999), false},
	} {
		for _, pair := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			if got := event.Equal(json.RawMessage(pair[0]), json.RawMessage(pair[1])); got != c.want {
				t.Errorf("%.60s and %.60s: got %v", pair[0], pair[1], got)
			}
		}
	}
}
