package event_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
)

func refusal(t testing.TB, err error) *event.Error {
	t.Helper()
	var e *event.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a refusal", err)
	}
	return e
}

func nested(levels int) string {
	return strings.Repeat("[", levels) + strings.Repeat("]", levels)
}

func TestLosslessJSONKeepsItsBytes(t *testing.T) {
	for _, text := range []string{
		`null`, `true`, `false`, `0`, `""`, `[]`, `{}`, `-1`, `1.25`, `1.0`, `1e0`, `1E+2`, `0.10`,
		`1e-400`, `-1e-400`, `0e999999`, `0.0e-9`, `0E400`, `1.7976931348623157e308`, `1.7976931348623158e308`, `-1.7976931348623158e308`,
		`123456789012345678901234567890`, `0.1000000000000000055511151231257827`,
		`{"b":1,"a":2}`, `{"":0}`, `{"__proto__":1}`, `{"a":1,"A":2}`, `{"a":{"a":{"a":1}}}`,
		`"<&>` + "\u2028\u2029" + `"`, `"\u003c\u2028\/\b\f\n\r\t\"\\"`, `"\ud800"`, `"\udc00\ud800"`, `"\ud83d\ude00"`, `"\uD83D"`,
		`"` + "\u007f\u0080é上😀\uffff\U0010ffff" + `"`, `"01234567` + "é" + `89"`,
		`[{"x":[1,{"y":null}]},"a  b",[[]]]`, `{"a":{"b":1},"b":{"a":{},"b":2},"c":0}`,
		strings.Repeat("9", 308), "0." + strings.Repeat("0", 5000) + "1", `1` + strings.Repeat("0", 308),
		"0." + strings.Repeat("0", 20000) + "1e20309", "1" + strings.Repeat("0", 20000) + "e-19692",
		nested(event.MaxDepth),
		strings.Repeat(`{"a":`, event.MaxDepth) + "1" + strings.Repeat("}", event.MaxDepth),
	} {
		got, err := event.Compact([]byte(text), "$")
		if err != nil || string(got) != text {
			t.Errorf("%.80s: got %.80s, %v", text, got, err)
		}
		if err := event.CheckLossless([]byte(text), "$"); err != nil {
			t.Errorf("%.80s: %v", text, err)
		}
		spaced := "\n" + text + "\t "
		if got, err := event.Compact([]byte(spaced), "$"); err != nil || string(got) != text {
			t.Errorf("%.80s: got %.80s, %v", spaced, got, err)
		}
	}
}

func TestOnlyWhiteSpaceOutsideStringsGoes(t *testing.T) {
	got, err := event.Compact([]byte(" { \"a b\" :\t[ 1 ,\r\n 2 , \" \\\" , \" ] , \"c\" : { } }\n"), "$")
	if want := `{"a b":[1,2," \" , "],"c":{}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
}

func TestTheResultSharesNothingWithItsSource(t *testing.T) {
	for _, text := range []string{`{"a":[1,2,3]}`, `{"a": [1, 2, 3]}`} {
		source := []byte(text)
		got, err := event.Compact(source, "$")
		if err != nil {
			t.Fatal(err)
		}
		for i := range source {
			source[i] = 'x'
		}
		if string(got) != `{"a":[1,2,3]}` {
			t.Errorf("got %s", got)
		}
	}
}

func TestWhatIsNotLosslessIsRefusedWithItsPlace(t *testing.T) {
	for _, c := range []struct{ text, rule, path string }{
		{``, "json-syntax", "$"},
		{`  `, "json-syntax", "$"},
		{`nul`, "json-syntax", "$"},
		{`True`, "json-syntax", "$"},
		{`NaN`, "json-syntax", "$"},
		{`'a'`, "json-syntax", "$"},
		{"\xef\xbb\xbf{}", "json-syntax", "$"},
		{`{"`, "json-syntax", "$"},
		{`{"a`, "json-syntax", "$"},
		{`{"a"`, "json-syntax", "$.a"},
		{`{"a":1`, "json-syntax", "$.a"},
		{`{"a":1,}`, "json-syntax", "$"},
		{`{,}`, "json-syntax", "$"},
		{`{"a" 1}`, "json-syntax", "$.a"},
		{`{"a":}`, "json-syntax", "$.a"},
		{`{a:1}`, "json-syntax", "$"},
		{`{a":1}`, "json-syntax", "$"},
		{`{1":1}`, "json-syntax", "$"},
		{`{"a"=1}`, "json-syntax", "$.a"},
		{`{"a":1"b":2}`, "json-syntax", "$.a"},
		{`{"a":1 "b":2}`, "json-syntax", "$.a"},
		{`{"a":"b" 1}`, "json-syntax", "$.a"},
		{`{"a":1]`, "json-syntax", "$.a"},
		{`{"a":{}]`, "json-syntax", "$.a"},
		{`[1"b"]`, "json-syntax", "$[0]"},
		{`{1:1}`, "json-syntax", "$"},
		{`[1,]`, "json-syntax", "$[1]"},
		{`[,1]`, "json-syntax", "$[0]"},
		{`[1 2]`, "json-syntax", "$[0]"},
		{`[1}`, "json-syntax", "$[0]"},
		{`[[],[[1,2,3,tru]]]`, "json-syntax", "$[1][0][3]"},
		{`{"a":[0,{"odd key":[01]}]}`, "json-syntax", `$.a[1]["odd key"][0]`},
		{`{"a":{"b":1},"c":[x]}`, "json-syntax", "$.c[0]"},
		{`01`, "trailing-data", "$"},
		{`1.`, "json-syntax", "$"},
		{`.5`, "json-syntax", "$"},
		{`+1`, "json-syntax", "$"},
		{`-`, "json-syntax", "$"},
		{`1e`, "json-syntax", "$"},
		{`1e+`, "json-syntax", "$"},
		{`0x10`, "trailing-data", "$"},
		{`1_000`, "trailing-data", "$"},
		{`"a`, "json-syntax", "$"},
		{`"\x41"`, "json-syntax", "$"},
		{`"\u12g4"`, "json-syntax", "$"},
		{`"\u12`, "json-syntax", "$"},
		{"\"a\nb\"", "json-syntax", "$"},
		{"\"a\x00b\"", "json-syntax", "$"},
		{"\"0123456789abcdef\x1f\"", "json-syntax", "$"},
		{`[1] [2]`, "trailing-data", "$"},
		{`{}x`, "trailing-data", "$"},
		{`null,`, "trailing-data", "$"},

		{"[\"\xff\"]", "invalid-utf-8", "$[0]"},
		{"[\"\xc0\xaf\"]", "invalid-utf-8", "$[0]"},         // overlong
		{"[\"\xed\xa0\x80\"]", "invalid-utf-8", "$[0]"},     // surrogate
		{"[\"\xf4\x90\x80\x80\"]", "invalid-utf-8", "$[0]"}, // beyond the last code point
		{"[\"\xe4\xb8\"]", "invalid-utf-8", "$[0]"},         // cut off
		{"[\"01234567\xe4\xb8", "invalid-utf-8", "$[0]"},
		{"{\"a\":1,\"\xff\":2}", "invalid-utf-8", "$"},

		{`{"a":1,"a":1}`, "duplicate-key", "$.a"},
		{`{"a":1,"\u0061":2}`, "duplicate-key", "$.a"},
		{`{"\u0061":1,"a":2}`, "duplicate-key", "$.a"},
		{`{"\u0061":1,"\u0061":2}`, "duplicate-key", "$.a"},
		{`{"\ud83d\ude00":1,"😀":2}`, "duplicate-key", `$["😀"]`},
		{`{"\ud83d":1,"\uD83D":2}`, "duplicate-key", `$["\ud83d"]`},
		{`{"/":1,"\/":2}`, "duplicate-key", `$["/"]`},
		{`[{"x":{"k":1,"l":[{"k":1}],"k":3}}]`, "duplicate-key", "$[0].x.k"},
		{`{"":1,"":2}`, "duplicate-key", `$[""]`},

		{`-0`, "negative-zero", "$"},
		{`-0.0`, "negative-zero", "$"},
		{`-0e5`, "negative-zero", "$"},
		{`-0.000E-3`, "negative-zero", "$"},
		{`-0e999999999999`, "negative-zero", "$"},
		{`{"a":[1,-0]}`, "negative-zero", "$.a[1]"},

		{`1e400`, "number-range", "$"},
		{`-1e400`, "number-range", "$"},
		{`1.8e308`, "number-range", "$"},
		{`1.797693134862315808e308`, "number-range", "$"},
		{`1e309`, "number-range", "$"},
		{`1e999999999999`, "number-range", "$"},
		{`1e99999999999999999999999999999`, "number-range", "$"},
		{`1e18446744073709551616`, "number-range", "$"}, // 2^64, which is 0 to who does not look
		{`1e18446744073709551617`, "number-range", "$"},
		{`1e9223372036854775808`, "number-range", "$"},
		{`[` + strings.Repeat("9", 310) + `]`, "number-range", "$[0]"},
		{"0." + strings.Repeat("0", 20000) + "1e20310", "number-range", "$"},
		{"1" + strings.Repeat("0", 20000) + "e-19691", "number-range", "$"},

		{nested(event.MaxDepth + 1), "depth", ""},
		{strings.Repeat(`{"a":`, event.MaxDepth+1) + "1" + strings.Repeat("}", event.MaxDepth+1), "depth", ""},
		{strings.Repeat("[", 1<<20), "depth", ""},
	} {
		t.Run(fmt.Sprintf("%.40s", c.text), func(t *testing.T) {
			raw, err := event.Compact([]byte(c.text), "$")
			e := refusal(t, err)
			if e.Code != event.DataNotLossless || e.Rule != c.rule || c.path != "" && e.Path != c.path || raw != nil {
				t.Errorf("got %s (%s) at %s, want %s at %s", e.Code, e.Rule, e.Path, c.rule, c.path)
			}
			if len(e.Path) > 4096 {
				t.Errorf("the path has %d bytes", len(e.Path))
			}
			if err := event.CheckLossless([]byte(c.text), "$"); err == nil || err.Error() != e.Error() {
				t.Errorf("CheckLossless says %v", err)
			}
		})
	}
}

// A text that is part of a larger one ends where it ends.
func TestWhatLiesBehindATextIsNotRead(t *testing.T) {
	for text, behind := range map[string]string{`tru`: `e`, `nul`: `l`, `[1`: `]`, `{"a":1`: `}`, `"a`: `"`, `"\`: `n"`, `"\u12`: `34"`, `{"a"`: `:1}`, `1e`: `5`, `-`: `1`, `1.`: `5`, "\"\xe4\xb8": "\xad\""} {
		all := []byte(text + behind)
		if err := event.CheckLossless(all, "$"); err != nil {
			t.Errorf("%s: %v", all, err)
		}
		if err := event.CheckLossless(all[:len(text)], "$"); err == nil {
			t.Errorf("%s is taken where %s lies behind it", text, behind)
		}
		if err := event.CheckLossless(slices.Clip(all[:len(text)]), "$"); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestTheByteInTheWayIsShown(t *testing.T) {
	for text, want := range map[string]string{
		`[1 2]`: `'2' where a comma`, `{'a'}`: `'\'' where a key`, "[\x1f]": "byte 0x1f where a value", "[\x7f]": "byte 0x7f where a value", "[~": "'~' where a value", "[!": "'!' where a value",
		"[\xff": "byte 0xff where a value", `[1 `: "ends where a comma", "\"\x00\"": "byte 0x0 in a string",
	} {
		if e := refusal(t, event.CheckLossless([]byte(text), "$")); !strings.Contains(e.Reason, want) {
			t.Errorf("%q: %s; want %s", text, e.Reason, want)
		}
	}
}

// The middle of a path that has no end is left out.
func TestALongPathIsCutInTheMiddle(t *testing.T) {
	for levels, want := range map[int]string{
		32: "$" + strings.Repeat("[0]", 32),
		33: "$" + strings.Repeat("[0]", 16) + "…" + strings.Repeat("[0]", 16),
		40: "$" + strings.Repeat("[0]", 16) + "…" + strings.Repeat("[0]", 16),
	} {
		if e := refusal(t, event.CheckLossless([]byte(strings.Repeat("[", levels)+"-0"), "$")); e.Path != want {
			t.Errorf("%d levels: %s", levels, e.Path)
		}
	}
}

// The border between the largest double and infinity lies in the middle of the last place, and goes up.
func TestTheBorderOfTheRangeIsExact(t *testing.T) {
	const border = "1797693134862315807937289714053034150799341327100378269361737789804449682927647509466490179775872070" +
		"9633028641669288791094655554785194040263065748867150582068190890200070838367627385484581771153176447" +
		"5730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880177904" +
		"174497792"
	below := border[:len(border)-1] + "1"
	for text, ok := range map[string]bool{
		border: false, below: true, border + ".0": false, below + ".999": true, below + strings.Repeat("9", 50) + "e-50": true,
		border + ".0000000001": false, "0.0" + border + "e310": false, "0.0" + below + "e310": true, "-" + below: true, "-" + border: false,
	} {
		if err := event.CheckLossless([]byte(text), "$"); (err == nil) != ok {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// Long strings are looked at eight bytes at a time; no byte may hide among them.
func TestEveryByteCountsAtEveryPlaceInAString(t *testing.T) {
	for at := range 24 {
		for b := range 256 {
			text := []byte(`"abcdefghijklmnopqrstuvwx"`)
			text[1+at] = byte(b)
			plain := b >= ' ' && b < 0x80 && b != '"' && b != '\\'
			// A backslash may make an escape of the letter behind it.
			if want := plain || b == '\\' && json.Valid(text); (event.CheckLossless(text, "$") == nil) != want {
				t.Errorf("%q: want %v", text, want)
			}
		}
	}
}

func TestThePrefixComesFirst(t *testing.T) {
	_, err := event.Compact([]byte(`{"todos":[1,-0]}`), "$.data")
	if e := refusal(t, err); e.Path != "$.data.todos[1]" {
		t.Errorf("got %s", e.Path)
	}
}

func TestKeysInPaths(t *testing.T) {
	for key, want := range map[string]string{
		"a": ".a", "A_b-9": ".A_b-9", "aAzZ09": ".aAzZ09", strings.Repeat("k", 63) + " ": `["` + strings.Repeat("k", 63) + ` "]`, "$ref": ".$ref", "": `[""]`, "9": `["9"]`, "-a": `["-a"]`, "a b": `["a b"]`, "a.b": `["a.b"]`, "é": `["é"]`, `"`: `["\""]`,
		strings.Repeat("k", 64): "." + strings.Repeat("k", 64), strings.Repeat("k", 65): `["` + strings.Repeat("k", 64) + `…"]`,
		strings.Repeat("k", 63) + "é": `["` + strings.Repeat("k", 63) + `…"]`,
	} {
		if got := event.PathKey(key); got != want {
			t.Errorf("%q is %s, want %s", key, got, want)
		}
	}
}

func TestLargeObjectsAreCheckedForDuplicatesToo(t *testing.T) {
	object := func(keys int, last string) []byte {
		var b bytes.Buffer
		b.WriteByte('{')
		for i := range keys {
			if i%2 == 0 {
				fmt.Fprintf(&b, `"\u006b%d":{"k0":0},`, i)
			} else {
				fmt.Fprintf(&b, `"k%d":{"k0":0},`, i)
			}
		}
		b.WriteString(last + ":0}")
		return b.Bytes()
	}
	for _, keys := range []int{1, 30, 31, 32, 33, 34, 100, 100_000} {
		if err := event.CheckLossless(object(keys, `"new"`), "$"); err != nil {
			t.Errorf("%d keys: %v", keys, err)
		}
		for _, last := range []string{`"k0"`, fmt.Sprintf(`"k%d"`, keys-1), fmt.Sprintf(`"k\u003%d"`, 0)} {
			e := refusal(t, event.CheckLossless(object(keys, last), "$"))
			if e.Rule != "duplicate-key" {
				t.Errorf("%d keys and %s: %v", keys, last, e)
			}
		}
	}
}

func TestCheckingAllocatesNothing(t *testing.T) {
	for _, text := range []string{
		`{"todos":[{"content":"plan the work","status":"pending"},{"content":"上下文","status":"in_progress"}],"n":[1,2.5e3,-7]}`,
		` { "a" : [ 1 , 2 ] } `,
	} {
		raw := []byte(text)
		if n := testing.AllocsPerRun(100, func() {
			if err := event.CheckLossless(raw, "$"); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}

func TestCompactAgreesWithTheStandardLibraryOnWhatIsJSON(t *testing.T) {
	for _, text := range []string{`{"a":1}`, `[1,2`, `"\ud800"`, `1.5e+3`, `tru`, `{"a":1,}`, "\"\t\""} {
		_, err := event.Compact([]byte(text), "$")
		if (err == nil) != json.Valid([]byte(text)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A request stands around the data of its events and takes nothing of the depth that they may have.
func TestNestedTextsMayBeThatMuchDeeper(t *testing.T) {
	for around, text := range map[int]string{0: nested(event.MaxDepth), 1: nested(event.MaxDepth + 1), 3: nested(event.MaxDepth + 3)} {
		if err := event.CheckNested([]byte(text), "$", around); err != nil {
			t.Errorf("around %d: %v", around, err)
		}
		refusal(t, event.CheckNested([]byte("["+text+"]"), "$", around))
	}
}
