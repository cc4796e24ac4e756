package schema_test

//lint:file-ignore SA5008,U1000 odd tags and types that only reflection looks at are the cases that are tested

import (
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/sdk/internal/schema"
	"github.com/foldhost/foldhost/sdk/internal/schema/other"
	"github.com/foldhost/foldhost/unit"
)

type (
	Item struct {
		Name string `json:"name"`
	}
	packageItem = Item
	Tree        struct {
		Value    int     `json:"value"`
		Children []*Tree `json:"children"`
	}
	Base struct {
		ID string `json:"id"`
	}
	base  struct{ Kind string }
	List  []Item
	Level uint16
	Name  string
	Bytes []byte
	Octet byte
	Two   struct {
		A Item       `json:"a"`
		B other.Item `json:"b"`
	}
	Embedding struct {
		Base
		base
		Named Base `json:"named"`
	}
	Shadowing struct {
		ID int `json:"id"`
		Base
	}
	ShadowingLater struct {
		Base
		ID int `json:"id,omitempty"`
	}
	EmbeddedPointer struct{ *Base }
	Endless         struct{ *Endless }
	EmbeddedTime    struct {
		time.Time
		Zone string
	}
	EmbeddedStatus struct {
		Status
		N int
	}
	embeddedText struct{ text string }
	Described    struct{ N int }
	Extended     struct {
		A string `json:"a"`
	}
	Status       string
	PointerEnum  string
	WrongEnum    string
	Aliased      struct{ N int }
	Writes       struct{ n int }
	WritesHalf   struct{ n int }
	WritesAtAddr struct{ n int }
	ID           [16]byte
	TextOnly     struct{ s string }
	IntKey       int
	Nullable     []Item
	Panicking    struct{ N int }
	Pair         [2]string
	HalfKey      string
	// WritesBoth is read back, and still nothing says what it writes.
	WritesBoth struct{ n int }
	TextAtAddr struct{ s string }
	Properties struct{ N int }
	Docs       struct{ N int }
	HalfExtend struct{ N int }
	URL        struct{ Host string }
	StringBase struct {
		Name
		N int `json:"n"`
	}
	NamedBase struct {
		Base `json:"base"`
		ID   string `json:"id"`
	}
	ByAddr struct {
		WritesAtAddr
		N int
	}
	ByPointer struct {
		*Status
		N int
	}
	// Either has two alternatives, neither of which is null.
	Either struct{ N int }
)

func (Described) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }
func (Described) MarshalJSON() ([]byte, error)   { return []byte(`"x"`), nil }
func (*Described) UnmarshalJSON([]byte) error    { return nil }
func (Extended) JSONSchemaExtend(s *jsonschema.Schema) {
	one := uint64(1)
	s.MinProperties = &one
}
func (Status) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Enum: []any{"", "on"}}
}
func (*PointerEnum) JSONSchema() *jsonschema.Schema { return nil }
func (WrongEnum) JSONSchema() string                { return "" }
func (Aliased) JSONSchemaAlias() any                { return "" }
func (Writes) MarshalJSON() ([]byte, error)         { return []byte("1"), nil }
func (WritesHalf) MarshalJSON() ([]byte, error)     { return []byte("1"), nil }
func (WritesHalf) JSONSchema() *jsonschema.Schema   { return &jsonschema.Schema{} }
func (*WritesAtAddr) MarshalJSON() ([]byte, error)  { return []byte("1"), nil }
func (i ID) MarshalText() ([]byte, error)           { return []byte("id"), nil }
func (i *ID) UnmarshalText([]byte) error            { return nil }
func (TextOnly) MarshalText() ([]byte, error)       { return nil, nil }
func (IntKey) MarshalText() ([]byte, error)         { return []byte("k"), nil }
func (*IntKey) UnmarshalText([]byte) error          { return nil }
func (Panicking) JSONSchema() *jsonschema.Schema    { panic("no") }
func (HalfKey) MarshalText() ([]byte, error)        { return []byte("k"), nil }
func (WritesBoth) MarshalJSON() ([]byte, error)     { return []byte("1"), nil }
func (*WritesBoth) UnmarshalJSON([]byte) error      { return nil }
func (*TextAtAddr) MarshalText() ([]byte, error)    { return nil, nil }
func (*TextAtAddr) UnmarshalText([]byte) error      { return nil }
func (Properties) JSONSchemaProperty(string) any    { return nil }
func (Docs) GetFieldDocString(string) string        { return "" }
func (*HalfExtend) JSONSchemaExtend(*jsonschema.Schema) {
}
func (Either) JSONSchemaExtend(s *jsonschema.Schema) {
	*s = jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "object"}, {Type: "string"}}}
}
func (Nullable) JSONSchemaExtend(s *jsonschema.Schema) {
	c := *s
	*s = jsonschema.Schema{AnyOf: []*jsonschema.Schema{&c, {Type: "null"}}}
}

type nullableParts struct {
	P []*int `json:"p" jsonschema:"nullable"`
	N uint   `json:"n" jsonschema:"nullable"`
}

// compile makes the schema of a type ready to hold values against.
func compile(t *testing.T, typ reflect.Type) *unit.Compiled {
	t.Helper()
	raw, err := schema.Of(typ)
	if err != nil {
		t.Fatal(err)
	}
	u, err := unit.Compile(unit.Definition{Key: "k", StateSchema: raw, Inline: nothing{}})
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	t.Logf("%s", raw)
	return u
}

type nothing struct{ unit.Inline }

// TestTheSchemaAgreesWithEncodingJSON has a row for each place where the generator alone does not, and for the neighbours that it gets
// right: the zero value and the values given are accepted as encoding/json writes them, and the texts are refused.
func TestTheSchemaAgreesWithEncodingJSON(t *testing.T) {
	local := func() any {
		type Item struct {
			Local bool `json:"local"`
		}
		return struct {
			Here  Item        `json:"here"`
			There packageItem `json:"there"`
		}{}
	}
	one, when := 1, time.Unix(0, 0).UTC()
	for _, c := range []struct {
		name   string
		zero   any
		values []any
		refuse []string
	}{
		{"a generic type of a package with slashes", other.Page[other.Item]{}, []any{other.Page[other.Item]{Items: []other.Item{{}}}}, []string{`{"items":[{"name":"x"}]}`}},
		{"a generic type of a generic type", other.Page[other.Page[Item]]{}, nil, []string{`{"items":[{"items":[1]}]}`}},
		{"two types of one name", Two{}, nil, []string{`{"a":{"weight":1},"b":{"weight":1}}`, `{"a":{"name":""},"b":{"name":""}}`}},
		{"two types of one name and package, one of them in a function", local(), nil,
			[]string{`{"here":{"name":"x"},"there":{"name":"x"}}`, `{"here":{"local":true},"there":{"local":true}}`}},
		{"a type that contains itself", Tree{}, []any{Tree{Children: []*Tree{nil, {}}}}, []string{`{"value":1}`, `{"value":1,"children":[1]}`, `[]`}},
		{"a pointer to a type that contains itself", (*Tree)(nil), []any{&Tree{}}, []string{`[]`, `{}`}},
		{"a pointer", struct {
			P *int `json:"p"`
		}{}, []any{struct {
			P *int `json:"p"`
		}{&one}}, []string{`{}`, `{"p":"1"}`}},
		{"a pointer that is left out when nil", struct {
			P *int `json:"p,omitempty"`
		}{}, nil, []string{`{"p":null}`}},
		{"a pointer that is left out when zero", struct {
			P *int `json:"p,omitzero"`
		}{}, nil, []string{`{"p":null}`}},
		{"a pointer with constraints", struct {
			P *string `json:"p" jsonschema:"minLength=2"`
		}{}, nil, []string{`{"p":"x"}`}},
		{"a pointer to a pointer", struct{ P **string }{}, nil, []string{`{"P":1}`}},
		{"a nil slice", struct{ S []string }{}, []any{struct{ S []string }{[]string{}}}, []string{`{"S":[1]}`, `{"S":[null]}`, `{}`}},
		{"a nil slice of slices of pointers", [][]*int{}, []any{[][]*int(nil), [][]*int{nil, {nil, &one}}}, []string{`[["x"]]`, `{}`}},
		{"a slice that is never nil", struct {
			S []string `json:"s" jsonschema:"nonnull,minItems=1"`
		}{[]string{"x"}}, nil, []string{`{"s":null}`, `{"s":[]}`}},
		{"a named slice as root", List{}, []any{List(nil), List{{}}}, []string{`[{}]`, `{}`}},
		{"a named slice as a field, twice", struct{ A, B List }{}, nil, []string{`{"A":[],"B":[1]}`, `{"A":[]}`}},
		{"a named slice that allows null itself", Nullable{}, []any{Nullable(nil), Nullable{{}}}, []string{`[1]`}},
		{"a nil map", struct{ M map[string]int }{}, []any{struct{ M map[string]int }{map[string]int{"a": 1}}}, []string{`{"M":{"a":"x"}}`, `{"M":{"a":null}}`}},
		{"a map of slices", map[string][]int{"a": nil}, []any{map[string][]int(nil)}, []string{`{"a":["x"]}`}},
		{"a map of anything", map[string]any{"a": nil}, []any{map[string]any{"a": map[string]any{"b": 1}}}, []string{`[]`}},
		{"integer keys", map[int]string{-5: "a", 0: "b", 10: "c"}, nil, []string{`{"x":"a"}`, `{"01":"a"}`, `{"1":1}`}},
		{"unsigned keys", map[uint8]string{0: "a", 255: "b"}, nil, []string{`{"-1":"a"}`}},
		{"keys that write themselves", map[ID]int{{}: 1}, nil, []string{`{"id":"x"}`}},
		{"bytes", struct{ B []byte }{}, []any{struct{ B []byte }{[]byte("x")}}, []string{`{"B":[1]}`}},
		{"named bytes", struct{ B Bytes }{}, []any{struct{ B Bytes }{Bytes("x")}}, []string{`{"B":[1]}`}},
		{"an array of bytes", [2]byte{}, nil, []string{`"AAA="`, `[1]`}},
		{"an array", [2]string{}, nil, []string{`["a"]`, `["a","b","c"]`, `null`}},
		{"json.Number", struct{ N json.Number }{"1.5"}, nil, []string{`{"N":"1"}`}},
		{"json.RawMessage", struct{ R json.RawMessage }{}, []any{struct{ R json.RawMessage }{json.RawMessage(`[1,"x"]`)}}, []string{`{}`}},
		{"any", struct{ A any }{}, []any{struct{ A any }{[]int{1}}}, []string{`{}`}},
		{"an array that writes itself as text", struct{ ID ID }{}, nil, []string{`{"ID":[1]}`}},
		{"netip.Addr", struct{ A netip.Addr }{}, []any{struct{ A netip.Addr }{netip.MustParseAddr("::1")}}, []string{`{"A":{}}`}},
		{"net.IP", struct{ A net.IP }{}, []any{struct{ A net.IP }{net.ParseIP("::1")}}, []string{`{"A":1}`}},
		{"a time", struct{ T time.Time }{}, []any{struct{ T time.Time }{when}}, []string{`{"T":1}`, `{"T":null}`}},
		{"a pointer to a time", struct{ T *time.Time }{}, []any{struct{ T *time.Time }{&when}}, []string{`{"T":1}`}},
		{"a duration is a number of nanoseconds", struct{ D time.Duration }{time.Second}, nil, []string{`{"D":"1s"}`}},
		{"unsigned", struct{ N uint }{}, []any{struct{ N uint }{1}}, []string{`{"N":-1}`}},
		{"unsigned in slices and maps, named", struct{ N map[string][]Level }{}, []any{struct{ N map[string][]Level }{map[string][]Level{}}}, []string{`{"N":{"a":[-1]}}`}},
		{"unsigned with a minimum of its own", struct {
			N uint `jsonschema:"minimum=3"`
		}{3}, nil, []string{`{"N":2}`}},
		{"a number as a string", struct {
			N int `json:",string"`
		}{}, nil, []string{`{"N":0}`}},
		{"an unsigned number as a string", struct {
			N uint `json:",string"`
		}{}, nil, []string{`{"N":0}`}},
		{"a pointer to a number as a string", struct {
			N *int `json:",string"`
		}{}, []any{struct {
			N *int `json:",string"`
		}{&one}}, []string{`{"N":0}`}},
		{"embedded structs, exported and not", Embedding{}, nil, []string{`{"id":"","named":{"id":""}}`, `{"id":"","Kind":"","named":{}}`}},
		{"left out", struct {
			A int `json:"-"`
			B int `json:"b"`
		}{}, nil, []string{`{"A":1,"b":1}`}},
		{"a field that is not exported", struct {
			a int
			B int
		}{}, nil, []string{`{"B":1,"a":1}`}},
		{"a type that describes itself", struct{ D Described }{}, nil, []string{`{"D":1}`}},
		{"a pointer to a type that describes itself", struct{ D *Described }{}, nil, []string{`{"D":1}`}},
		{"a type that extends its schema", Extended{A: "x"}, nil, []string{`{}`}},
		{"an enum by type", struct{ S Status }{}, []any{struct{ S Status }{"on"}}, []string{`{"S":"off"}`}},
		{"an enum by type, in a list, root", []Status{"on"}, []any{[]Status(nil)}, []string{`["off"]`}},
		{"an enum by tag, with a comma", struct {
			S string `jsonschema:"enum=a\\,b,enum="`
		}{}, []any{struct {
			S string `jsonschema:"enum=a\\,b,enum="`
		}{"a,b"}}, []string{`{"S":"a"}`}},
		{"an enum of numbers", struct {
			N int `jsonschema:"enum=0,enum=5"`
		}{}, nil, []string{`{"N":1}`}},
		{"an enum of the elements of a list", struct {
			S []string `jsonschema:"enum=a,maxItems=1"`
		}{}, []any{struct {
			S []string `jsonschema:"enum=a,maxItems=1"`
		}{[]string{"a"}}}, []string{`{"S":["b"]}`, `{"S":["a","a"]}`}},
		{"a pattern with = in it", struct {
			S string `jsonschema:"pattern=^(a=b)?$"`
		}{}, nil, []string{`{"S":"ab"}`}},
		{"required as nullable", struct {
			S string `jsonschema:"required,nullable,title=T"`
		}{}, nil, []string{`{}`, `{"S":1}`}},
		{"nullable by tag, with parts that may be null or are unsigned", nullableParts{}, []any{nullableParts{P: []*int{nil}}},
			[]string{`{"p":["x"],"n":0}`, `{"p":[],"n":-1}`}},
		{"one of two fields", struct {
			A int `json:"a,omitempty" jsonschema:"oneof_required=a"`
			B int `json:"b,omitempty" jsonschema:"oneof_required=b"`
		}{A: 1}, nil, []string{`{}`, `{"a":1,"b":1}`}},
		{"text for HTML", struct {
			S string `jsonschema:"pattern=^<&>$"`
		}{"<&>"}, nil, []string{`{"S":"\u003c"}`}},
		{"left out twice, and not exported under the name of another", struct {
			A  int `json:"-"`
			B  int `json:"-"`
			c  int
			C  int `json:"c"`
			_c int
		}{}, nil, []string{`{"c":1,"A":1}`, `{"c":1,"-":1}`, `{}`}},
		{"structs of one type in fields without tags", struct{ A, B Base }{}, nil, []string{`{"id":""}`, `{"A":{"id":""},"B":{}}`}},
		{"an embedded struct with a name of its own", NamedBase{}, nil, []string{`{"id":""}`, `{"id":"","base":{}}`}},
		{"an embedded string", StringBase{}, nil, []string{`{"n":1}`, `{"Name":1,"n":1}`}},
		{"unsigned that is left out when zero", struct {
			N uint         `json:"n,omitempty"`
			M map[int]uint `json:"m,omitempty"`
		}{}, []any{struct {
			N uint         `json:"n,omitempty"`
			M map[int]uint `json:"m,omitempty"`
		}{1, map[int]uint{-1: 0}}}, []string{`{"n":-1}`, `{"m":{"1":-1}}`, `{"m":{"x":1}}`, `{"m":null}`}},
		{"integer keys of anything", map[int]any{1: "x"}, nil, []string{`{"x":1}`}},
		{"a pointer to a choice of two", struct{ E *Either }{}, []any{struct{ E *Either }{&Either{}}}, []string{`{"E":1}`}},
		{"names with digits and signs", made(`json:"a1"`, `json:"b.c-d e"`, `json:"ü"`), nil, []string{`{"a1":1,"b.c-d e":1}`}},
		{"tags of others, in any case", made(`json:"a" Validate:"x"  db:"y"`), nil, []string{`{}`}},
		{"an extension", made(`json:"a" jsonschema_extras:"x-order=1"`), nil, []string{`{}`}},
		{"a default of a boolean", struct {
			A bool `jsonschema:"default=true"`
			B bool `jsonschema:"default=false"`
		}{}, nil, []string{`{"A":1,"B":true}`}},
		{"bounds of integers", struct {
			A int `jsonschema:"minimum=-9,exclusiveMaximum=9"`
			B int `jsonschema:"multipleOf=2.5"`
		}{}, nil, []string{`{"A":-10,"B":0}`, `{"A":9,"B":0}`, `{"A":0,"B":2}`}},
		{"bounds of other numbers", struct {
			F float64      `jsonschema:"minimum=-1.5,enum=0,enum=1.5"`
			G *float32     `jsonschema:"maximum=5"`
			N json.Number  `jsonschema:"exclusiveMinimum=0"`
			L []float64    `jsonschema:"enum=2.5"`
			M []*[]float64 `jsonschema:"maxItems=1"`
		}{N: "1", L: []float64{2.5}}, nil, []string{`{"F":2,"G":0,"N":1,"L":[],"M":[]}`, `{"F":0,"G":6,"N":1,"L":[],"M":[]}`,
			`{"F":0,"G":0,"N":0,"L":[],"M":[]}`, `{"F":0,"G":0,"N":1,"L":[2],"M":[]}`, `{"F":0,"G":0,"N":1,"L":[],"M":[[],[]]}`}},
		{"bounds of what is written as a string", struct {
			B []byte    `jsonschema:"maxLength=4"`
			T time.Time `jsonschema:"minLength=5"`
			N *int      `json:",string" jsonschema:"pattern=^1$"`
		}{N: &one}, nil, []string{`{"B":"AAAAAAAA","T":"1970-01-01T00:00:00Z","N":"1"}`, `{"B":"","T":"1970","N":"1"}`, `{"B":"","T":"1970-01-01T00:00:00Z","N":"2"}`}},
		{"a string", "", []any{"x"}, []string{`1`, `null`}},
		{"an empty struct", struct{}{}, nil, []string{`{"a":1}`, `null`}},
		{"a named string", Name(""), nil, []string{`1`}},
		{"a pointer to an empty struct", (*struct{})(nil), nil, []string{`[]`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			typ, zero := reflect.TypeOf(c.zero), c.zero
			if of, ok := zero.(reflect.Type); ok { // made by reflection
				typ, zero = of, reflect.Zero(of).Interface()
			}
			u := compile(t, typ)
			for _, v := range append([]any{zero}, c.values...) {
				raw, err := event.Encode(v)
				if err != nil {
					t.Fatal(err)
				}
				if err := u.CheckState(raw, 0); err != nil {
					t.Errorf("%s: %v", raw, err)
				}
				back := reflect.New(typ)
				if err := json.Unmarshal(raw, back.Interface()); err != nil {
					t.Errorf("%s cannot be read back: %v", raw, err)
				}
			}
			for _, text := range c.refuse {
				if err := u.CheckState(json.RawMessage(text), 0); err == nil {
					t.Errorf("%s is accepted", text)
				}
			}
		})
	}
}

// TestATypeWithoutARightSchemaIsAnError has a row for each thing that the generator would get wrong or drop without a word.
func TestATypeWithoutARightSchemaIsAnError(t *testing.T) {
	field := func(v any) reflect.Type { return reflect.TypeOf(v) }
	for _, c := range []struct {
		name string
		typ  reflect.Type
		path string // a part of it
	}{
		{"no type", nil, "nil"},
		{"a channel", field(struct{ C chan int }{}), ".C"},
		{"a function, deep", field(struct {
			A []map[string]*struct{ F func() }
		}{}), ".A[]{}.F"},
		{"a complex number", field(complex64(0)), "complex64"},
		{"an address", field(struct{ P uintptr }{}), ".P"},
		{"an interface with methods", field(struct{ E error }{}), ".E"},
		{"bytes as root", field([]byte(nil)), "uint8"},
		{"bytes of a named type", field(struct{ B []Octet }{}), ".B"},
		{"MarshalJSON without JSONSchema", field(struct{ W Writes }{}), "Writes"},
		{"MarshalJSON without UnmarshalJSON", field(WritesHalf{}), "WritesHalf"},
		{"MarshalJSON with a pointer receiver", field(struct{ W *WritesAtAddr }{}), "WritesAtAddr"},
		{"big.Int", field(struct{ N *big.Int }{}), "big.Int"},
		{"MarshalText without UnmarshalText", field(TextOnly{}), "TextOnly"},
		{"url.URL", field(struct{ U url.URL }{}), "url.URL"},
		{"a pointer to url.URL", field(struct{ U *url.URL }{}), "url.URL"},
		{"JSONSchema with a pointer receiver", field(struct{ E PointerEnum }{}), "PointerEnum"},
		{"JSONSchema with another signature", field(WrongEnum("")), "WrongEnum"},
		{"JSONSchemaAlias", field(Aliased{}), "Aliased"},
		{"JSONSchema that panics", field(Panicking{}), "Panicking"},
		{"keys that are structs", field(map[struct{ A int }]int{}), "map"},
		{"keys that are floats", field(map[float64]int{}), "map"},
		{"integer keys that write themselves", field(map[IntKey]int{}), "map"},
		{"an embedded field shadowed from before", field(Shadowing{}), ".Base.ID"},
		{"an embedded field shadowed from behind", field(ShadowingLater{}), ".ID"},
		{"two fields of one JSON name", made(`json:"x"`, `json:"x"`), ".B"},
		{"an embedded pointer", field(EmbeddedPointer{}), ".Base"},
		{"an embedded pointer to itself", field(Endless{}), ".Endless"},
		{"an embedded type that writes itself", field(struct{ E EmbeddedTime }{}), "EmbeddedTime"},
		{"an embedded type that describes itself", field(struct{ E EmbeddedStatus }{}), "EmbeddedStatus"},
		{"an embedded slice that is not exported", field(struct {
			list
			N int
		}{}), ".list"},
		{"a key named -", field(struct {
			A int `json:"-,"`
		}{}), ".A"},
		{"an inline map", field(struct {
			A map[string]int `json:",inline"`
		}{}), ".A"},
		{"a misspelt option", field(struct {
			A int `json:"a,omitemtpy"`
		}{}), ".A"},
		{"a name that encoding/json ignores", field(struct {
			A int `json:"a'b"`
		}{}), ".A"},
		{"a tag on a field that is not exported", hidden(`json:"a"`), ".a"},
		{"a tag that is not quoted", made(`json:a`), ".A"},
		{"a tag in the wrong case", made(`jsonSchema:"minimum=1"`), ".A"},
		{"left out of the schema alone", field(struct {
			A int `jsonschema:"-"`
		}{}), ".A"},
		{"required and left out", field(struct {
			A int `json:"a,omitempty" jsonschema:"required"`
		}{}), ".A"},
		{"nonnull and never null", field(struct {
			A int `jsonschema:"nonnull"`
		}{}), ".A"},
		{"a misspelt key", field(struct {
			A string `jsonschema:"minLenght=3"`
		}{}), ".A"},
		{"a key without a value", field(struct {
			A []int `jsonschema:"uniqueItems"`
		}{}), ".A"},
		{"const", field(struct {
			A string `jsonschema:"const=x"`
		}{}), ".A"},
		{"deprecated", field(struct {
			A string `jsonschema:"deprecated=true"`
		}{}), ".A"},
		{"minProperties", field(struct {
			A map[string]int `jsonschema:"minProperties=1"`
		}{}), ".A"},
		{"a type by tag", field(struct {
			A string `jsonschema:"oneof_type=string;null"`
		}{}), ".A"},
		{"a value that does not parse", field(struct {
			A int `jsonschema:"minimum=abc"`
		}{}), ".A"},
		{"a length below zero", field(struct {
			A string `jsonschema:"minLength=-1"`
		}{}), ".A"},
		{"a fraction of an integer enum", field(struct {
			A int `jsonschema:"enum=1.5"`
		}{}), ".A"},
		{"a pattern that does not compile", field(struct {
			A string `jsonschema:"pattern=(?=a)"`
		}{}), ".A"},
		{"a pattern with = on a list", field(struct {
			A []string `jsonschema:"pattern=a=b"`
		}{}), ".A"},
		{"a default of a list", field(struct {
			A []string `jsonschema:"default=a"`
		}{}), ".A"},
		{"a constraint of another kind", field(struct {
			A int `jsonschema:"minLength=1"`
		}{}), ".A"},
		{"a constraint on a number that is written as a string", field(struct {
			A int `json:",string" jsonschema:"minimum=1"`
		}{}), ".A"},
		{"a constraint on a named slice", field(struct {
			A List `jsonschema:"minItems=1"`
		}{}), ".A"},
		{"a constraint on a struct", field(struct {
			A Item `jsonschema:"minLength=1"`
		}{}), ".A"},
		{"a constraint on a type that describes itself", field(struct {
			A Status `jsonschema:"minLength=1"`
		}{}), ".A"},
		{"a constraint given twice", field(struct {
			A string `jsonschema:"minLength=1,minLength=2"`
		}{}), ".A"},
		{"a comma without a backslash", field(struct {
			A string `jsonschema:"description=one, two"`
		}{}), ".A"},
		{"an extra that is none", field(struct {
			A string `jsonschema_extras:"minProperties=1"`
		}{}), ".A"},
		{"an extra without a value", field(struct {
			A string `jsonschema_extras:"x-order"`
		}{}), ".A"},
		{"MarshalJSON and UnmarshalJSON without JSONSchema", field(WritesBoth{}), "WritesBoth"},
		{"MarshalText with a pointer receiver", field(TextAtAddr{}), "TextAtAddr"},
		{"JSONSchemaProperty", field(Properties{}), "Properties"},
		{"GetFieldDocString", field(Docs{}), "Docs"},
		{"JSONSchemaExtend with a pointer receiver", field(HalfExtend{}), "HalfExtend"},
		{"an embedded type that writes itself where it can be addressed", field(ByAddr{}), "ByAddr.WritesAtAddr"},
		{"an embedded pointer to a type that describes itself", field(ByPointer{}), "ByPointer.Status"},
		{"keys that are not read back", field(map[struct{ HalfKey }]int{}), "map"},
		{"keys of any type", field(map[any]int{}), "map"},
		{"an embedded array that is not exported", field(struct {
			array `json:"array"`
			N     int
		}{}), ".array"},
		{"an embedded struct that is not exported, under a name", field(struct {
			base `json:"base"`
			N    int
		}{}), ".base"},
		{"a schema for a field that is not exported", hidden(`jsonschema:"minimum=1"`), ".a"},
		{"a tag of the older generators", made(`json_schema:"minimum=1"`), ".A"},
		{"tags without a space", made(`json:"a"db:"b"`), ".A"},
		{"a tag twice", made(`json:"a" json:"b"`), ".A"},
		{"a tag without a key", made(`json:"a" :"b"`), ".A"},
		{"a tag with a space before the colon", made(`json :"a"`), ".A"},
		{"required and left out when zero", field(struct {
			A int `json:"a,omitzero" jsonschema:"required"`
		}{}), ".A"},
		{"a number that is no number", made(`jsonschema:"minimum=\"1\""`), ".A"},
		{"a number that is empty", made(`jsonschema:"minimum="`), ".A"},
		{"a number in another notation", made(`jsonschema:"minimum=0x10"`), ".A"},
		{"a length in another notation", field(struct {
			A string `jsonschema:"minLength=a"`
		}{}), ".A"},
		{"a length that the generator cannot hold", field(struct {
			A string `jsonschema:"maxLength=2147483648"`
		}{}), ".A"},
		{"a default of a boolean that is none", field(struct {
			A bool `jsonschema:"default=yes"`
		}{}), ".A"},
		{"a fraction of an integer enum of a list", field(struct {
			A []int `jsonschema:"enum=1.5"`
		}{}), ".A"},
		{"an example of a list", field(struct {
			A []string `jsonschema:"example=a"`
		}{}), ".A"},
		{"a list that is only read", field(struct {
			A []string `jsonschema:"readOnly=true"`
		}{}), ".A"},
		{"a list that is only written", field(struct {
			A []string `jsonschema:"writeOnly=true"`
		}{}), ".A"},
		{"a constraint on a named array", field(struct {
			A Pair `jsonschema:"minItems=1"`
		}{}), ".A"},
		{"a constraint on raw JSON", field(struct {
			A json.RawMessage `jsonschema:"minLength=1"`
		}{}), ".A"},
		{"a key of no kind on a list", field(struct {
			A *[]int `jsonschema:"minLength=1"`
		}{}), ".A"},
	} {
		t.Run(c.name, func(t *testing.T) {
			raw, err := schema.Of(c.typ)
			var wrong *schema.FieldError
			if !errors.As(err, &wrong) {
				t.Fatalf("error is %v, want a *FieldError; the schema is %s", err, raw)
			}
			if !strings.Contains(wrong.Path, c.path) || wrong.Reason == "" || wrong.Fix == "" {
				t.Errorf("got %+v, want a path with %q", wrong, c.path)
			}
			// One mistake is one problem: what follows from it is not told as well.
			if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) != 1 {
				t.Errorf("got %d problems of one mistake: %v", len(joined.Unwrap()), err)
			}
			t.Log(err)
		})
	}
}

type (
	list  []int
	array [2]int
)

// made is a struct of integers A, B and so on with these tags, some of which vet would not let through.
func made(tags ...reflect.StructTag) reflect.Type {
	var fields []reflect.StructField
	for i, tag := range tags {
		fields = append(fields, reflect.StructField{Name: string(rune('A' + i)), Type: reflect.TypeFor[int](), Tag: tag})
	}
	return reflect.StructOf(fields)
}

func hidden(tag reflect.StructTag) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{Name: "a", PkgPath: "p", Type: reflect.TypeFor[int](), Tag: tag}})
}

func TestEveryProblemOfATypeIsNamedAtOnce(t *testing.T) {
	_, err := schema.Of(reflect.TypeFor[struct {
		A chan int
		B struct{ C func() }
		D string `jsonschema:"minimum=1"`
	}]())
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 3 {
		t.Errorf("error is %v, want three", err)
	}
}

func TestTheSchemaIsTheSameEveryTime(t *testing.T) {
	want, err := schema.Of(reflect.TypeFor[Two]())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got, err := schema.Of(reflect.TypeFor[Two]()); err != nil || string(got) != string(want) {
					t.Errorf("got %s, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestARootIsUnfoldedUnlessItContainsItself(t *testing.T) {
	for _, c := range []struct {
		typ reflect.Type
		ref bool
	}{{reflect.TypeFor[Two](), false}, {reflect.TypeFor[Tree](), true}} {
		raw, err := schema.Of(c.typ)
		if err != nil {
			t.Fatal(err)
		}
		var root map[string]any
		if err := json.Unmarshal(raw, &root); err != nil {
			t.Fatal(err)
		}
		if root["type"] != "object" || (root["$ref"] != nil) != c.ref {
			t.Errorf("%s gives %s", c.typ, raw)
		}
	}
}

// Names under $defs stand in rows' digests and in what operators read: they are the same each time, and one for each type.
func TestDefinitionsAreNamedAfterPackageAndType(t *testing.T) {
	local := func() reflect.Type {
		type Item struct{ A int }
		type Tree struct{ A int }
		return reflect.TypeFor[struct {
			A Item
			B packageItem
			C other.Item
			D Tree
		}]()
	}
	for _, c := range []struct {
		typ  reflect.Type
		want []string
	}{
		{local(), []string{"other.Item", "schema_test.Item", "schema_test.Item-2", "schema_test.Tree"}},
		{reflect.TypeFor[struct {
			A, B other.Page[Item]
			C    *Item
		}](), []string{"other.Page_github.com_foldhost_foldhost_sdk_internal_schema_test.Item_", "schema_test.Item"}},
		{reflect.TypeFor[struct{ Z []AZaz_09 }](), []string{"schema_test.AZaz_09"}},
	} {
		raw, err := schema.Of(c.typ)
		if err != nil {
			t.Fatal(err)
		}
		var root struct {
			Defs map[string]any `json:"$defs"`
		}
		if err := json.Unmarshal(raw, &root); err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(root.Defs)); !slices.Equal(got, c.want) {
			t.Errorf("%s has the definitions %q, want %q", c.typ, got, c.want)
		}
	}
}

type AZaz_09 struct{ N int }
