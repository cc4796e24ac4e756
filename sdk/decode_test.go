package sdk

//lint:file-ignore SA5008 the odd tag is the case that is tested

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/foldhost/foldhost/event"
)

func TestKeysAreMatchedExactly(t *testing.T) {
	type item struct {
		Content string `json:"content"`
	}
	type payload struct {
		Todos []item `json:"todos"`
		Plain int
		Upper int `json:"N"`
		Lower int `json:"n"`
	}
	for _, c := range []struct {
		data string
		want payload
	}{
		{`{"todos":[{"content":"a"}],"Plain":1,"N":2,"n":3}`, payload{[]item{{"a"}}, 1, 2, 3}},
		{`{"Todos":[{"content":"a"}]}`, payload{}},
		{`{"TODOS":7,"plain":"not even a number"}`, payload{}},
		{`{"todos":[{"content":"a","Content":"b"}]}`, payload{Todos: []item{{"a"}}}},
		{`{"Todos":null,"todos":[{"Content":"b"}],"TODOS":[]}`, payload{Todos: []item{{}}}},
		{`{"to\u0064os":[{"content":"an escaped key is the same key"}]}`, payload{Todos: []item{{"an escaped key is the same key"}}}},
		{`{"n":1}`, payload{Lower: 1}},
		{`{"N":1}`, payload{Upper: 1}},
	} {
		var got payload
		if err := decode([]byte(c.data), &got); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s decodes to %+v, %v; want %+v", c.data, got, err, c.want)
		}
	}
}

func TestALongValueDoesNotMakeALongReason(t *testing.T) {
	ev := &Event{Type: "t", Data: json.RawMessage(`{"n":1` + strings.Repeat("0", 5000) + `}`)}
	var into struct {
		N int `json:"n"`
	}
	var wrong *PayloadError
	if err := decodePayload(ev, &into, false); !errors.As(err, &wrong) || len(wrong.Reason) > maxReason+len("…") || wrong.Path != "$.data.n" {
		t.Errorf("error is %v", err)
	}
}

func TestPlacesInAPayloadAreWrittenAsPaths(t *testing.T) {
	data := json.RawMessage(`{"todos":[{"content":"a"},{"content":7}],"byID":{"2":{"n":"x"}},"deep":[[0,[1]]],"maps":[{"1":"x"}]}`)
	for place, want := range map[string]string{
		"":                "$.data",
		"todos":           "$.data.todos",
		"todos.1.content": "$.data.todos[1].content",
		"byID.2.n":        `$.data.byID["2"].n`,
		"deep.0.1.0":      "$.data.deep[0][1][0]",
		"maps.0.1":        `$.data.maps[0]["1"]`,
		"gone.3.x":        `$.data.gone["3"].x`,
		"odd key.x":       `$.data["odd key"].x`,
		"todos.9.x":       "$.data.todos[9].x",
	} {
		if got := pathIn(data, place, "$.data"); got != want {
			t.Errorf("%q is %s, want %s", place, got, want)
		}
	}
}

// The types below have one thing each that a decoder may take in its own way.
type (
	base struct {
		ID int
		B  string `json:"b"`
	}
	hidden  struct{ X int }
	embeds  struct{ base }
	shadows struct {
		base
		ID string
	}
	points struct {
		*Outer
		hidden
		N int
	}
	Outer     struct{ Y int }
	carries   struct{ fmt.Stringer }
	readsJSON struct{ s string }
	readsText struct{ s string }
	textKey   string
	octet     byte
)

func (r *readsJSON) UnmarshalJSON(raw []byte) error {
	if string(raw) == `"bad"` {
		return errors.New("bad")
	}
	r.s = string(raw)
	return nil
}
func (r *readsText) UnmarshalText(text []byte) error { r.s = string(text); return nil }
func (k *textKey) UnmarshalText(text []byte) error   { *k = textKey("key " + string(text)); return nil }

type everything struct {
	Any      any
	Map      map[string]any
	IntKeys  map[int]string
	Keys     map[textKey]int
	F64      float64
	F32      float32
	I8       int8
	U8       uint8
	I64      int64
	Text     string
	Bytes    []byte
	Pair     [2]int
	Octets   []octet
	Two      [2]byte
	P        *int
	PP       **int
	Slice    []int
	Time     time.Time
	Took     time.Duration
	Num      json.Number
	NumP     *json.Number
	Nums     map[string]json.Number
	Raw      json.RawMessage
	RawP     *json.RawMessage
	Big      *big.Int
	IP       netip.Addr
	J        readsJSON
	JP       *readsJSON
	T        readsText
	TP       *readsText
	QInt     int            `json:",string"`
	QText    string         `json:",string"`
	QBool    bool           `json:",string"`
	Dash     int            `json:"-,"`
	Left     int            `json:"-"`
	Inline   map[string]int `json:",inline"`
	Stringer fmt.Stringer
	Embeds   embeds
	Shadows  shadows
	Points   points
	Carries  carries
	Chan     chan int
}

var odd = []string{`null`, `1`, `-1`, `1.5`, `1.0`, `1e0`, `300`, `9007199254740993`, `9223372036854775807`, `9223372036854775808`, `1e400`, `1e-400`,
	`1e300`, `true`, `"x"`, `""`, `"1"`, `"1.5"`, `"true"`, `"null"`, `"\"q\""`, `"AQI="`, `"AQI"`, `"\ud800"`, `"\ud83d\ude00 \u0000"`,
	`"2024-01-01T00:00:00Z"`, `"2024-01-01"`, `"1.2.3.4"`, `"bad"`, `[]`, `[1]`, `[1,2,3]`, `[null]`, `["a"]`, `[[1]]`, `{}`, `{"a":1}`, `{"a":null}`,
	`{"1":"x"}`, `{"ID":1,"b":"x","X":5,"N":4,"Y":2,"more":{"q":[1]}}`, `{"ID":"s"}`, `{"Stringer":null}`, `{"Stringer":1}`}

// TestOnlyTheCaseOfKeysIsNotAsInEncodingJSON decodes every odd value into every odd type with both.
func TestOnlyTheCaseOfKeysIsNotAsInEncodingJSON(t *testing.T) {
	whole := reflect.TypeFor[everything]()
	for i := range whole.NumField() {
		f := whole.Field(i)
		alone := reflect.StructOf([]reflect.StructField{{Name: f.Name, Type: f.Type, Tag: f.Tag}})
		for _, value := range odd {
			sameAsStandard(t, f.Type, value)
			for _, name := range []string{f.Name, "-"} {
				sameAsStandard(t, alone, `{"`+name+`":`+value+`}`)
			}
		}
	}
}

// FuzzDecode does the same with whatever is lossless JSON and has no key in another case.
func FuzzDecode(f *testing.F) {
	whole := reflect.TypeFor[everything]()
	for i := range whole.NumField() {
		for _, value := range odd[:8] {
			f.Add(`{"` + whole.Field(i).Name + `":` + value + `}`)
		}
	}
	names := map[string]string{}
	for _, name := range []string{"ID", "b", "X", "Y", "N", "-"} {
		names[strings.ToLower(name)] = name
	}
	for i := range whole.NumField() {
		names[strings.ToLower(whole.Field(i).Name)] = whole.Field(i).Name
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := event.Compact([]byte(text), "$")
		if err != nil || oddCase(raw, names) {
			return
		}
		sameAsStandard(t, whole, string(raw))
	})
}

func oddCase(raw json.RawMessage, names map[string]string) (found bool) {
	event.Members(raw, func(key string, value json.RawMessage) bool {
		// encoding/json folds more than ASCII (ſ is s), so that anything else is left alone.
		found = found || strings.ContainsFunc(key, func(r rune) bool { return r > '~' }) || names[strings.ToLower(key)] != "" && names[strings.ToLower(key)] != key || oddCase(value, names)
		return !found
	})
	event.Elements(raw, func(elem json.RawMessage) bool {
		found = found || oddCase(elem, names)
		return !found
	})
	return found
}

func sameAsStandard(t *testing.T, typ reflect.Type, text string) {
	t.Helper()
	want, got := reflect.New(typ), reflect.New(typ)
	wantErr := json.Unmarshal([]byte(text), want.Interface())
	err := decode([]byte(text), got.Interface())
	switch {
	case (err == nil) != (wantErr == nil):
		t.Errorf("%s into %s: error %v, encoding/json %v", text, typ, err, wantErr)
	case err == nil && !reflect.DeepEqual(got.Interface(), want.Interface()):
		t.Errorf("%s into %s: got %+v, encoding/json %+v", text, typ, got.Elem(), want.Elem())
	}
}

var errUnread = errors.New("cannot be read")

// reader reads itself: null too, and never "no".
type reader struct{ text string }

func (r *reader) UnmarshalJSON(raw []byte) error {
	if r.text = string(raw); r.text == `"no"` {
		return errUnread
	}
	return nil
}

// A payload that reads itself decides what it takes, and what it says reaches who looks for it.
func TestAPayloadThatReadsItself(t *testing.T) {
	h := On(func(_ string, r reader) string { return r.text })
	for data, want := range map[string]string{`null`: `null`, `{"a":1}`: `{"a":1}`} {
		if got, changed, err := h.apply("", &Event{Type: "t", Data: json.RawMessage(data)}); err != nil || !changed || got != want {
			t.Errorf("%s: got %s, %v, %v", data, got, changed, err)
		}
	}
	got, changed, err := h.apply("before", &Event{Type: "t", Seq: 3, Data: json.RawMessage(`"no"`)})
	var wrong *PayloadError
	if !errors.Is(err, errUnread) || !errors.As(err, &wrong) || wrong.Seq != 3 || wrong.Type != "t" || changed || got != "before" {
		t.Errorf("got %s, %v, %v", got, changed, err)
	}
}
