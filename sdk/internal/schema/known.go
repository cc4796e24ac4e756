package schema

import (
	"encoding"
	"encoding/json"
	"reflect"
	"time"

	"github.com/invopop/jsonschema"
)

var (
	timeType   = reflect.TypeFor[time.Time]()
	numberType = reflect.TypeFor[json.Number]()
	rawType    = reflect.TypeFor[json.RawMessage]()
	bytesType  = reflect.TypeFor[[]byte]()

	jsonMarshaler   = reflect.TypeFor[json.Marshaler]()
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

	customSchema = reflect.TypeFor[interface{ JSONSchema() *jsonschema.Schema }]()
	extendSchema = reflect.TypeFor[interface{ JSONSchemaExtend(*jsonschema.Schema) }]()
)

// known gives the schemas of types whose kind does not say how they are written, a fresh one each time because tags are written
// into it; nil for all others.
func known(t reflect.Type) *jsonschema.Schema {
	switch {
	case t == numberType:
		return &jsonschema.Schema{Type: "number"}
	case t == timeType:
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case isText(t):
		return &jsonschema.Schema{Type: "string"}
	}
	return nil
}

// isText says that values are written by their MarshalText, as strings.
func isText(t reflect.Type) bool {
	return t.Implements(textMarshaler) && !t.Implements(jsonMarshaler) && !t.Implements(customSchema)
}

// isCustom says that the type describes itself.
func isCustom(t reflect.Type) bool { return t.Implements(customSchema) }

// isOpaque says that nothing below the type is described by its Go fields or elements.
func isOpaque(t reflect.Type) bool {
	return t == rawType || isCustom(t) || known(t) != nil
}

// writesNull says whether encoding/json writes null for the zero value of a type, so that its schema must allow it. Interfaces
// and raw messages do too and allow everything anyway.
func writesNull(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer:
		return true
	case reflect.Slice, reflect.Map:
		return t != rawType && !t.Implements(jsonMarshaler) && !t.Implements(textMarshaler)
	}
	return false
}
