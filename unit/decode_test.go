package unit

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/foldhost/foldhost/event"
)

// standard decodes as the validator's own reader would.
func standard(t *testing.T, text []byte) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("encoding/json refuses %s: %v", text, err)
	}
	return v
}

// FuzzDecode holds the decoder against encoding/json over everything that is lossless JSON. Lone surrogates, which encoding/json
// replaces, and numbers with exponents, some of which become 0 here, are left out.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`null`, `true`, `false`, `0`, `-1.5`, `""`, `"a\"b\\"`, `"\u00e9\n"`, `[]`, `{}`, `[[],{}, [ 1 , 2 ] ]`,
		` { "a" : { "b" : [ null , "x" ] } , "c\td" : -0.25 } `, `"\\"`, `{"":""}`, `[9007199254740993]`} {
		f.Add([]byte(s))
	}
	unequal := regexp.MustCompile(`\\u[dD]|[eE]`)
	f.Fuzz(func(t *testing.T, raw []byte) {
		text, err := event.Compact(raw, "$")
		if err != nil {
			return
		}
		got, m := decode(text)
		count := 0
		for _, n := range m.places {
			count += n
		}
		if want := countValues(got); count != want {
			t.Errorf("%s: %d places, want %d", text, count, want)
		}
		if unequal.Match(text) {
			return
		}
		if want := standard(t, text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, want %#v", text, got, want)
		}
	})
}

func countValues(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, m := range v {
			n += countValues(m)
		}
	case []any:
		for _, e := range v {
			n += countValues(e)
		}
	}
	return n
}

func TestAValueIsMeasuredByDepth(t *testing.T) {
	_, m := decode(json.RawMessage(`{"a":[1,2,[3]],"bcd":{"e":"four"},"f":"g\"ü","n":-1.25e2}`))
	want := measure{places: []int{1, 4, 4, 1}, text: []int{6, 6 + 4 + 1, 1 + 4, 0}, number: 7}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got %+v, want %+v", m, want)
	}
}

// A bell may ring for a batch that was taken with the one before it.
func TestABellWithoutABatchIsHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := NewLocal()
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		l.wake <- struct{}{}
		synctest.Wait()
		answered := make(chan Reply, 1)
		l.Submit(t.Context(), Batch{}, func(r Reply) { answered <- r })
		if r := <-answered; r.Err != nil {
			t.Error(r.Err)
		}
	})
}

func TestNumbersKeepTheirSpelling(t *testing.T) {
	for text, want := range map[string]json.Number{
		"1": "1", "1.0": "1.0", "1e2": "1e2", "-1E+2": "-1E+2", "9007199254740993": "9007199254740993",
		"1e-400": "0", "-1e-400": "0", "0e5": "0", "5e-324": "5e-324",
	} {
		if got, _ := decode(json.RawMessage(text)); got != want {
			t.Errorf("%s decodes to %v, want %v", text, got, want)
		}
	}
}
