package sdk

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/invopop/jsonschema"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/sdk/internal/schema"
)

// Schema is a JSON Schema as the methods JSONSchema and JSONSchemaExtend of a type write it. Both need a value receiver:
//
//	func (Status) JSONSchema() *sdk.Schema { return sdk.Enum(Open, Closed) }
//
// Constraints of a field stand in its jsonschema tag, such as `jsonschema:"minLength=1"`. A slice, map or pointer may be null in
// JSON, and so in the schema, unless omitempty leaves it out or the tag says nonnull.
type Schema = jsonschema.Schema

// Enum is the schema of a string type that has only these values.
func Enum[T ~string](values ...T) *Schema {
	s := &Schema{Type: "string"}
	for _, v := range values {
		s.Enum = append(s.Enum, string(v))
	}
	return s
}

// SchemaOf returns the JSON Schema of a Go type as the SDK makes it. It agrees with what encoding/json writes; a type of which no
// right schema can be made is a *SchemaError that names each field and the fix.
func SchemaOf[T any]() (json.RawMessage, error) { return schemaOf[T]("", "type") }

func schemaOf[T any](key, role string) (json.RawMessage, error) {
	t := reflect.TypeFor[T]()
	raw, err := schema.Of(t)
	if err == nil {
		raw, err = event.Compact(raw, "$")
	}
	if err != nil {
		return nil, &SchemaError{Key: key, Role: role, Type: t.String(), Err: err}
	}
	return raw, nil
}

// SchemaError says that no right schema can be made of a Go type.
type SchemaError struct {
	// Key is the unit, empty outside one; Role is "State", "View" or "type".
	Key, Role string
	// Type is the Go type.
	Type string
	// Err joins one error for each field, with the fix.
	Err error
}

func (e *SchemaError) Error() string {
	of := fmt.Sprintf("%s %s", e.Role, e.Type)
	if e.Key != "" {
		of = fmt.Sprintf("unit %q: %s", e.Key, of)
	}
	return fmt.Sprintf("%s: no right schema can be made of it; change the type, or give a schema by hand:\n%v", of, e.Err)
}

func (e *SchemaError) Unwrap() error { return e.Err }

// FieldError is one field of a type that has no right schema: its path, what would be wrong, and the fix.
type FieldError = schema.FieldError
