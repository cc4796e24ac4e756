package event_test

//lint:file-ignore SA5008 the odd tag is the case that is tested

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/foldhost/foldhost/event"
)

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("boom") }

type fails struct{}

func (fails) MarshalJSON() ([]byte, error) { return nil, errors.New("no") }

type writes string

func (w writes) MarshalJSON() ([]byte, error) { return []byte(w), nil }

type texts string

func (w texts) MarshalText() ([]byte, error) { return []byte(w), nil }

type loop struct{ Next *loop }

type link *link

type hidden string

// lossy writes what its text is not.
type lossy string

func (lossy) MarshalJSON() ([]byte, error) { return []byte(`"\ufffd"`), nil }

// textStruct writes its text, and its fields are its own business.
type textStruct struct{ s string }

func (t textStruct) MarshalText() ([]byte, error) { return []byte(t.s), nil }

type Embedded struct{ Inner string }

type embedded struct{ Inner string }

func TestGoValuesNestWhereJSONDoesNot(t *testing.T) {
	var end link
	for range 1000 {
		next := end
		end = &next
	}
	if got, err := event.Encode(end); err != nil || string(got) != `null` {
		t.Errorf("a thousand pointers: %s, %v", got, err)
	}
	list := &loop{}
	for range event.MaxDepth - 1 {
		list = &loop{list}
	}
	if _, err := event.Encode(list); err != nil {
		t.Errorf("as deep as JSON may be: %v", err)
	}
}

// endless are values that encoding/json would follow until the stack is used up, which no program survives.
func endless() map[string]any {
	var pointers link
	list, boxes := &loop{}, any(1)
	for range 3_000_000 {
		next := pointers
		pointers = &next
		list = &loop{list}
		boxes = []any{boxes}
	}
	return map[string]any{"pointers": pointers, "a list": list, "boxes": boxes, "boxes inside": map[string]any{"x": boxes},
		"a list inside": []any{struct{ List *loop }{list}}, "an embedded list": struct{ loop }{*list}, "a map": map[string]*loop{"x": list}, "an array": [1]any{boxes}}
}

func TestEndlessValuesAreRefused(t *testing.T) {
	values := endless()
	for name, v := range values {
		_, err := event.Encode(v)
		if e := refusal(t, err); e.Code != event.DataNotLossless || e.Rule != "unsupported-value" {
			t.Errorf("%s: %v", name, err)
		}
	}
	unseen := struct {
		Hidden any `json:"-"`
		hidden
		unread any
	}{values["a list"], "\xff", values["boxes"]}
	if got, err := event.Encode(unseen); err != nil || string(got) != `{}` {
		t.Errorf("what is not encoded may be endless: %s, %v", got, err)
	}
}

func TestGoValuesBecomeLosslessJSON(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{nil, `null`},
		{true, `true`},
		{1.25, `1.25`},
		{int64(math.MaxInt64), `9223372036854775807`},
		{0.0, `0`},
		{"<a href='x'>&</a>", `"<a href='x'>&</a>"`},
		{"\ufffd", `"` + "\ufffd" + `"`},
		{json.RawMessage(` {"b": 1.0, "a" : "<\u2028>"} `), `{"b":1.0,"a":"<\u2028>"}`},
		{[]byte(`[1, 2]`), `[1,2]`},
		{struct {
			Raw json.RawMessage `json:"raw"`
		}{json.RawMessage(`{"b":1.50,"a":"<&>` + "\u2028" + `\ud800\ufffd"}`)}, `{"raw":{"b":1.50,"a":"<&>` + "\u2028" + `\ud800\ufffd"}}`},
		{map[string]any{"x": []any{1, "two", nil}}, `{"x":[1,"two",null]}`},
		{writes(`"\ufffd"`), `"\ufffd"`},
		{[]any{texts("\ufffd"), writes(`"\ufffd"`), []byte{0xff}}, `["` + "\ufffd" + `","\ufffd","/w=="]`},
		{json.Number("1.50"), `1.50`},
		{struct {
			Hidden string `json:"-"`
			hidden string
			Raw    json.RawMessage
		}{"\xff", "\xff", json.RawMessage(`"\ufffd"`)}, `{"Raw":"\ufffd"}`},
		{[]any{(*texts)(nil), []*texts{nil}, lossy("\xff")}, `[null,[null],"\ufffd"]`},
		{struct {
			embedded
			Raw json.RawMessage
		}{embedded{"x"}, json.RawMessage(`"\ufffd"`)}, `{"Inner":"x","Raw":"\ufffd"}`},
		{struct {
			kept embedded
			Raw  json.RawMessage
		}{embedded{"\xff"}, json.RawMessage(`"\ufffd"`)}, `{"Raw":"\ufffd"}`},
		{time.Unix(0, 0).UTC(), `"1970-01-01T00:00:00Z"`},
	} {
		got, err := event.Encode(c.v)
		if err != nil || string(got) != c.want {
			t.Errorf("%#v: got %s, %v; want %s", c.v, got, err, c.want)
		}
	}
}

func TestAValueMayBeSharedAndChangedAfterwards(t *testing.T) {
	shared := map[string]any{"n": 1}
	raw, err := event.Encode(map[string]any{"a": shared, "b": shared})
	if err != nil {
		t.Fatal(err)
	}
	shared["n"] = 2
	if string(raw) != `{"a":{"n":1},"b":{"n":1}}` {
		t.Errorf("got %s", raw)
	}
}

func TestWhatJSONCannotCarryIsRefused(t *testing.T) {
	cycle := &loop{}
	cycle.Next = cycle
	mapCycle := map[string]any{}
	mapCycle["self"] = mapCycle
	sliceCycle := make([]any, 1)
	sliceCycle[0] = sliceCycle
	deep := any(0)
	for range event.MaxDepth + 1 {
		deep = []any{deep}
	}
	text := texts("\xff")
	far := any("a\xff")
	for range event.MaxDepth - 1 {
		next := far
		far = []*any{&next}
	}
	for _, c := range []struct {
		name string
		v    any
		rule string
		path string
	}{
		{"NaN", math.NaN(), "unsupported-value", "$"},
		{"infinity", math.Inf(-1), "unsupported-value", "$"},
		{"negative zero", map[string]any{"a": []float64{1, math.Copysign(0, -1)}}, "negative-zero", "$.a[1]"},
		{"a function", func() {}, "unsupported-value", "$"},
		{"a channel", make(chan int), "unsupported-value", "$"},
		{"a function inside", map[string]any{"f": func() {}}, "unsupported-value", "$"},
		{"a complex number", 1i, "unsupported-value", "$"},
		{"a pointer cycle", cycle, "unsupported-value", "$"},
		{"a map cycle", mapCycle, "unsupported-value", "$"},
		{"a slice cycle", sliceCycle, "unsupported-value", "$"},
		{"too deep", deep, "depth", ""},
		{"text that is not UTF-8", "a\xffb", "invalid-utf-8", "$"},
		{"text that is not UTF-8, inside", struct {
			Ok   string
			List []any `json:"list,omitempty"`
		}{"\ufffd", []any{1, map[string]string{"odd key": "\xed\xa0\x80"}}}, "invalid-utf-8", `$.list[1]["odd key"]`},
		{"text that is not UTF-8, far inside", far, "invalid-utf-8", ""},
		{"text that is not UTF-8, under the name -", struct {
			Dash string `json:"-,"`
		}{"\xff"}, "invalid-utf-8", `$["-"]`},
		{"text that is not UTF-8, in fields without tags", struct{ A, B []string }{nil, []string{"", "\xff"}}, "invalid-utf-8", "$.B[1]"},
		{"text that is not UTF-8, embedded", struct {
			N int
			Embedded
		}{0, Embedded{"\xff"}}, "invalid-utf-8", "$.Inner"},
		{"text that is not UTF-8, embedded and not exported", struct{ embedded }{embedded{"\xff"}}, "invalid-utf-8", "$.Inner"},
		{"text that is not UTF-8, behind an embedded pointer that is not exported", struct{ *embedded }{&embedded{"\xff"}}, "invalid-utf-8", "$.Inner"},
		{"a pointer to a text of its own that is not UTF-8", []any{&text}, "invalid-utf-8", "$[0]"},
		{"a struct with a text of its own that is not UTF-8", []any{textStruct{"\xff"}}, "invalid-utf-8", "$[0]"},
		{"text that is not UTF-8, in an array", [2]string{"", "\xff"}, "invalid-utf-8", "$[1]"},
		{"a key that is not UTF-8", map[string]int{"\xff": 1}, "invalid-utf-8", "$"},
		{"two keys that are not UTF-8", map[string]int{"\xff": 1, "\xfe": 2}, "duplicate-key", ""},
		{"a text of its own that is not UTF-8", []any{texts("\xff")}, "invalid-utf-8", "$[0]"},
		{"raw JSON that is none", json.RawMessage(`{"a":}`), "json-syntax", "$.a"},
		{"no raw JSON", json.RawMessage(nil), "json-syntax", "$"},
		{"no bytes", []byte{}, "json-syntax", "$"},
		{"raw JSON inside that is none", []any{json.RawMessage(`{`)}, "marshaler-failed", "$"},
		{"raw JSON inside that is not lossless", []any{json.RawMessage(`{"a":1,"a":2}`)}, "duplicate-key", "$[0].a"},
		{"a marshaler that writes negative zero", []any{writes(`-0.0`)}, "negative-zero", "$[0]"},
		{"a marshaler that writes bytes", []any{writes("\"\xff\"")}, "invalid-utf-8", "$[0]"},
		{"a marshaler that fails", fails{}, "marshaler-failed", "$"},
		{"a marshaler that panics", []any{panics{}}, "marshaler-failed", "$"},
		{"a number out of range", json.Number("1e400"), "number-range", "$"},
		{"an event", event.Event{Type: "x"}, "marshaler-failed", "$"},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw, err := event.Encode(c.v)
			e := refusal(t, err)
			if e.Code != event.DataNotLossless || e.Rule != c.rule || c.path != "" && e.Path != c.path || raw != nil {
				t.Errorf("got %s (%s) at %s: %s", e.Code, e.Rule, e.Path, e.Reason)
			}
		})
	}
}

func TestATypedNilErrorDoesNotComeOut(t *testing.T) {
	for _, err := range []error{
		event.CheckLossless([]byte(`1`), "$"), event.CheckID("a"), event.CheckType("x"),
		event.CheckShape(&event.Event{Type: "x", Data: json.RawMessage(`1`)}), (&event.Header{ID: "a"}).Check(), event.CheckSize(&event.Event{}, 0),
	} {
		if err != nil {
			t.Errorf("%#v", err)
		}
	}
	if _, err := event.Encode(strings.Repeat("x", 10)); err != nil {
		t.Error(err)
	}
}
