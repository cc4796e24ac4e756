package sdk

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/foldhost/foldhost/event"
)

type (
	leaf struct {
		Text   string         `json:"text,omitempty"`
		N      int            `json:"n,string"`
		F      float64        `json:"f"`
		B      bool           `json:"b,omitempty"`
		U      uint8          `json:"u"`
		List   []string       `json:"list,omitempty"`
		Nulls  []string       `json:"nulls"`
		Bytes  []byte         `json:"bytes"`
		Map    map[string]int `json:"map"`
		Few    map[int]*bool  `json:"few,omitempty"`
		Zero   []int          `json:"zero,omitzero"`
		Pair   [2]int         `json:"pair"`
		P      *int           `json:"p"`
		Empty  struct{}       `json:"empty,omitempty"`
		Left   int            `json:"-"`
		hidden int
	}
	knot struct {
		Leaf leaf
		Down []knot
		Next *knot
	}
)

// TestFingerprintsAreEqualWhereTheJSONIs draws pairs out of few values, so that about as many are equal as are not, and alters one in
// what JSON does not show.
func TestFingerprintsAreEqualWhereTheJSONIs(t *testing.T) {
	f := newFingerprinter(reflect.TypeFor[knot]())
	if f.members == nil {
		t.Fatal("the type is not walked; nothing would be shown")
	}
	yes, no := true, false
	text := rapid.SampledFrom([]string{"", "a", "b", "ab", "ü", "\ufffd"})
	draw := func(t *rapid.T) leaf {
		// All but two fields are those of the zero leaf, so that pairs are equal often.
		var l leaf
		for range 2 {
			switch rapid.IntRange(0, 15).Draw(t, "field") {
			case 0:
				l.Text = text.Draw(t, "text")
			case 1:
				l.N = rapid.IntRange(-1, 1).Draw(t, "n")
			case 2:
				l.F = rapid.SampledFrom([]float64{0, 1, -1, 0.5, math.MaxFloat64}).Draw(t, "f")
			case 3:
				l.B = true
			case 4:
				l.U = 1
			case 5:
				l.List = rapid.SliceOfN(text, 0, 2).Draw(t, "list")
			case 6:
				l.Nulls = rapid.SliceOfN(text, 0, 2).Draw(t, "nulls")
			case 7:
				l.Bytes = rapid.SliceOfN(rapid.Byte(), 0, 1).Draw(t, "bytes")
			case 8:
				l.Map = rapid.MapOfN(text, rapid.IntRange(0, 1), 0, 2).Draw(t, "map")
			case 9:
				l.Few = rapid.MapOfN(rapid.IntRange(0, 1), rapid.SampledFrom([]*bool{nil, &yes, &no}), 0, 2).Draw(t, "few")
			case 10:
				l.Zero = rapid.SampledFrom([][]int{nil, {}, {0}}).Draw(t, "zero")
			case 11:
				l.Pair[rapid.IntRange(0, 1).Draw(t, "at")] = 1
			case 12:
				n := rapid.IntRange(0, 1).Draw(t, "p")
				l.P = &n
			case 13:
				l.Left = 1
			case 14:
				l.hidden = 1
			}
		}
		return l
	}
	drawKnot := func(t *rapid.T) knot {
		k := knot{Leaf: draw(t)}
		switch rapid.IntRange(0, 3).Draw(t, "shape") {
		case 0:
			k.Down = []knot{}
		case 1:
			k.Next = &knot{Leaf: draw(t)}
		case 2:
			k.Down = []knot{{Leaf: draw(t)}}
		}
		return k
	}
	equal, different := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawKnot(t), drawKnot(t)
		if rapid.Bool().Draw(t, "alike") {
			b = a
			b.Leaf.Left, b.Leaf.hidden = a.Leaf.Left+1, a.Leaf.hidden+1
			if len(b.Leaf.List) == 0 {
				b.Leaf.List = []string{}
			}
		}
		left, err := event.Encode(a)
		if err != nil {
			t.Fatal(err)
		}
		right, err := event.Encode(b)
		if err != nil {
			t.Fatal(err)
		}
		want := string(left) == string(right)
		if got := fingerprintOf(t, f, a) == fingerprintOf(t, f, b); got != want {
			t.Errorf("%s and %s: equal fingerprints: %t", left, right, got)
		}
		if want {
			equal++
		} else {
			different++
		}
	})
	if equal == 0 || different == 0 {
		t.Errorf("%d pairs are equal and %d are not", equal, different)
	}
}

type fataler interface {
	Helper()
	Fatal(...any)
}

func fingerprintOf(t fataler, f fingerprinter, v any) uint64 {
	t.Helper()
	sum, err := f.of(reflect.ValueOf(v))
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

type (
	selfWritten struct{ n int }
	selfText    struct{ n int }
	zeroable    struct{ N int }
	list        struct{ N, hidden int }
)

func (s *selfWritten) MarshalJSON() ([]byte, error) { return json.Marshal(s.n) }
func (s selfText) MarshalText() ([]byte, error)     { return []byte{'0' + byte(s.n)}, nil }
func (z zeroable) IsZero() bool                     { return z.N < 10 }

// TestPartsThatOnlyEncodingJSONKnowsAreEncoded has values that look different and are equal as JSON, or the other way about.
func TestPartsThatOnlyEncodingJSONKnowsAreEncoded(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		name  string
		a, b  any
		equal bool
	}{
		{"a pointer method writes it", &selfWritten{1}, &selfWritten{2}, false},
		{"a pointer method writes an element", []selfWritten{{1}}, []selfWritten{{2}}, false},
		{"text", struct{ A selfText }{selfText{1}}, struct{ A selfText }{selfText{2}}, false},
		{"text as a key", map[selfText]int{{1}: 1}, map[selfText]int{{2}: 1}, false},
		{"time, with a monotonic clock and without", struct{ T time.Time }{now}, struct{ T time.Time }{now.Round(0)}, true},
		{"raw JSON with white space", struct{ R json.RawMessage }{json.RawMessage(`{"a": 1}`)}, struct{ R json.RawMessage }{json.RawMessage(`{"a":1}`)}, true},
		{"a number of json, empty and 0", struct{ N json.Number }{""}, struct{ N json.Number }{"0"}, true},
		{"any", map[string]any{"a": 1}, map[string]any{"a": 1.0}, true},
		{"any, different", map[string]any{"a": 1}, map[string]any{"a": "1"}, false},
		{"a zero of its own making", struct {
			Z zeroable `json:",omitzero"`
		}{zeroable{1}}, struct {
			Z zeroable `json:",omitzero"`
		}{zeroable{2}}, true},
		{"an embedded field that is hidden", shadows{base{ID: 1}, "x"}, shadows{base{ID: 2}, "x"}, true},
		{"an embedded field that is not", shadows{base{B: "1"}, "x"}, shadows{base{B: "2"}, "x"}, false},
		{"equal names hide each other", twins(1), twins(2), true},
		{"deeper than is walked", deep(maxWalk), deep(maxWalk + 1), false},
		{"as deep", deep(maxWalk), deep(maxWalk), true},
		{"a list and the nil list", []int{}, []int(nil), false},
		{"a map and the nil map", map[string]int{}, map[string]int(nil), false},
		{"what is there and what is not, changed over", []*int{nil, new(int)}, []*int{new(int), nil}, false},
		{"not zero by what JSON does not show", struct {
			A list `json:",omitzero"`
		}{list{}}, struct {
			A list `json:",omitzero"`
		}{list{hidden: 1}}, false},
		{"text that runs together", []string{"ab", "c"}, []string{"a", "bc"}, false},
		{"lists that run together", [][]int{{1}, {}}, [][]int{{}, {1}}, false},
		{"values of keys changed over", map[string]int{"a": 1, "b": 2}, map[string]int{"a": 2, "b": 1}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFingerprinter(reflect.TypeOf(c.a))
			if got := fingerprintOf(t, f, c.a) == fingerprintOf(t, f, c.b); got != c.equal {
				t.Errorf("equal fingerprints: %t, want %t", got, c.equal)
			}
		})
	}
}

// TestEveryKindOfValueIsToldApart has, for each kind that is walked, values of which no two are the same as JSON. One that is taken for
// another is a change of the state that is lost.
func TestEveryKindOfValueIsToldApart(t *testing.T) {
	yes, no := true, false
	one, two := 1, 2
	inner := &one
	type omits struct {
		A int    `json:"a,omitempty"`
		B *int   `json:"b,omitzero"`
		C []int  `json:"c,omitempty"`
		D []int  `json:"d,omitzero"`
		E [1]int `json:"e,omitempty"`
		F [1]int `json:"f,omitzero"`
	}
	type short [2]uint8
	for _, values := range []any{
		[]bool{true, false}, []int{0, 1, -1, 256}, []int8{0, 1, -1}, []int16{0, 1, -1}, []int32{0, 1, -1, 1 << 16}, []int64{0, 1, -1, 1 << 32, math.MinInt64},
		[]uint{0, 1, 256}, []uint8{0, 1}, []uint16{0, 1, 256}, []uint32{0, 1, 1 << 16}, []uint64{0, 1, 1 << 32, math.MaxUint64},
		[]float32{0, 1, -1, 0.5}, []float64{0, 1, 2, -1, 0.5, math.SmallestNonzeroFloat64, math.MaxFloat64}, []string{"", "a", "b", "ab", "\x00"},
		[]*bool{nil, &yes, &no}, []**int{nil, &inner}, []*int{nil, &one, &two},
		[][]int{nil, {}, {0}, {1}, {0, 0}, {0, 1}, {1, 0}}, [][]bool{{true, false}, {false, true}}, []short{{0, 1}, {1, 0}, {1, 1}},
		[]map[string]bool{nil, {}, {"a": true}, {"a": false}, {"b": true}, {"a": true, "b": false}, {"a": false, "b": true}},
		[]map[int8]int{{1: 2}, {2: 1}, {-1: 2}}, []map[uint64]string{{1: "a"}, {2: "a"}},
		[]omits{{}, {A: 1}, {B: &one}, {B: &two}, {C: []int{1}}, {D: []int{}}, {D: []int{1}}, {E: [1]int{1}}, {F: [1]int{1}}},
		[]struct{ A, B bool }{{}, {A: true}, {B: true}, {true, true}},
		[]struct{ A, B string }{{"a", ""}, {"", "a"}},
	} {
		all := reflect.ValueOf(values)
		f := newFingerprinter(all.Type().Elem())
		if f.members == nil {
			t.Errorf("%s is not walked; nothing would be shown", all.Type().Elem())
		}
		seen := map[uint64]any{}
		for i := range all.Len() {
			v := all.Index(i).Interface()
			sum, again := fingerprintOf(t, f, v), fingerprintOf(t, f, v)
			if sum != again {
				t.Errorf("%T %v has two fingerprints", v, v)
			}
			if other, ok := seen[sum]; ok {
				t.Errorf("%T %v has the fingerprint of %v", v, v, other)
			}
			seen[sum] = v
		}
	}
}

// twins is a struct of two fields with one name, which vet would not let through.
func twins(n int) any {
	f := func(name string) reflect.StructField {
		return reflect.StructField{Name: name, Type: reflect.TypeFor[int](), Tag: `json:"x"`}
	}
	v := reflect.New(reflect.StructOf([]reflect.StructField{f("A"), f("B")})).Elem()
	v.Field(0).SetInt(int64(n))
	return v.Interface()
}

func deep(n int) (k knot) {
	for range n {
		next := k
		k = knot{Next: &next}
	}
	return k
}

func TestWhatJSONCannotCarryHasNoFingerprint(t *testing.T) {
	ring := &knot{}
	ring.Next = ring
	for name, v := range map[string]any{
		"not a number":                []float64{math.NaN()},
		"infinite":                    []float64{math.Inf(-1)},
		"negative zero":               struct{ F float32 }{float32(math.Copysign(0, -1))},
		"bytes that are no text":      map[string]string{"a": "\xff"},
		"bytes that are no text, key": map[string]int{"\xff": 1},
		"keys of another kind":        map[bool]int{true: 1},
		"a channel":                   make(chan int),
		"a ring":                      ring,
	} {
		if _, err := newFingerprinter(reflect.TypeOf(v)).of(reflect.ValueOf(v)); err == nil {
			t.Errorf("%s has a fingerprint", name)
		}
	}
}
