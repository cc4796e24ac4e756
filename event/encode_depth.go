package event

import (
	"encoding"
	"encoding/json"
	"reflect"
	"sync"
)

// maxGoDepth is how many pointers, interfaces and containers of Go may stand in each other: each level of JSON may take several. encoding/json
// recurses through them without a bound, and a stack that is used up (1 GiB, at about a million levels) ends the program and not the call.
const maxGoDepth = 16 * MaxDepth

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// tooDeep says whether encoding v would recurse deeper than maxGoDepth, as it does for a cycle. Types that cannot hold themselves cost one look-up.
func tooDeep(v reflect.Value, depth int) bool {
	if !v.IsValid() || !mayNest(v.Type()) {
		return false
	}
	if depth > maxGoDepth {
		return true
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return tooDeep(v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if tooDeep(v.Index(i), depth+1) {
				return true
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if tooDeep(it.Value(), depth+1) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if encoded(v.Type().Field(i)) && tooDeep(v.Field(i), depth+1) {
				return true
			}
		}
	}
	return false
}

// encoded says whether encoding/json looks at a field: at embedded types that are not exported only for their fields.
func encoded(f reflect.StructField) bool {
	if f.Tag.Get("json") == "-" {
		return false
	}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return f.IsExported() || f.Anonymous && t.Kind() == reflect.Struct
}

// nesting remembers mayNest by type; a program has few types.
var nesting sync.Map

// mayNest says whether values of a type may nest without a bound: it holds an interface, or itself. What marshals itself is on its own.
func mayNest(t reflect.Type) bool {
	if known, ok := nesting.Load(t); ok {
		return known.(bool)
	}
	may := nests(t, map[reflect.Type]bool{})
	nesting.Store(t, may)
	return may
}

// nests is mayNest for a type inside of others: inside holds true for those that it stands in, false for those that are known not to nest.
func nests(t reflect.Type, inside map[reflect.Type]bool) bool {
	if open, seen := inside[t]; seen {
		return open
	}
	if t.Kind() == reflect.Interface {
		return true
	}
	if t.Implements(jsonMarshaler) || t.Implements(textMarshaler) {
		return false
	}
	inside[t] = true
	may := false
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		may = nests(t.Elem(), inside)
	case reflect.Struct:
		for i := range t.NumField() {
			may = may || encoded(t.Field(i)) && nests(t.Field(i).Type, inside)
		}
	}
	inside[t] = false // read again only when it is so: otherwise all around nests too
	return may
}
