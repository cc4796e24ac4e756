// Package schema makes JSON Schemas (2020-12) of Go types that agree with what encoding/json writes for them.
//
// The generator underneath disagrees with encoding/json in many places and drops what it does not understand without a word.
// So types are inspected first, and whatever would come out wrong is an error that names the field and the fix; then the
// generator runs; then its result is corrected where a correction is certain (null, unsigned numbers, integer keys, names).
//
// It must never return a schema that it knows to be wrong. It keeps no state; every function may be called concurrently.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
)

// Of returns the schema of a type. The error joins one *FieldError for each thing that cannot be written as a schema.
func Of(t reflect.Type) (raw json.RawMessage, err error) {
	if t == nil {
		return nil, &FieldError{Path: "(nil)", Reason: "there is no type", Fix: "give a value of a Go type"}
	}
	if problems := inspect(t); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	defer func() {
		if v := recover(); v != nil {
			raw, err = nil, &FieldError{Path: t.String(), Reason: fmt.Sprintf("the schema generator panicked: %v", v),
				Fix: "look at the JSONSchema and JSONSchemaExtend methods of its types, or give the schema by hand"}
		}
	}()
	n := names{byType: map[reflect.Type]string{}, byName: map[string]reflect.Type{}}
	r := jsonschema.Reflector{Anonymous: true, Namer: n.name, Mapper: known}
	s := correct(t, r.ReflectFromType(t), n.byName)
	return json.Marshal(s)
}

// FieldError is one place in a Go type of which no right schema can be made.
type FieldError struct {
	// Path is the Go type and the field in it, such as "todounit.State.Items[].Status".
	Path string
	// Reason says what would be wrong, Fix what to do.
	Reason, Fix string
}

func (e *FieldError) Error() string { return fmt.Sprintf("%s: %s; %s", e.Path, e.Reason, e.Fix) }

// names gives each type one name under $defs: its package and its own, and a number where two types share those. The generator
// would let the second replace the first.
type names struct {
	byType map[reflect.Type]string
	byName map[string]reflect.Type
}

func (n *names) name(t reflect.Type) string {
	if t.Name() == "" || t.PkgPath() == "" {
		return t.Name()
	}
	if name, ok := n.byType[t]; ok {
		return name
	}
	base := plain(path.Base(t.PkgPath()) + "." + t.Name())
	name := base
	for i := 2; n.byName[name] != nil; i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	n.byType[t], n.byName[name] = name, t
	return name
}

// plain maps a name to characters that need no escape in a reference: names of generic types hold slashes and brackets.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}
