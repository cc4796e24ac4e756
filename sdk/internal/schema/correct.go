package schema

import (
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
)

// refPrefix is how the generator refers to a definition.
const refPrefix = "#/$defs/"

// correct makes a generated schema agree with encoding/json. types are those of the definitions by name.
func correct(t reflect.Type, root *jsonschema.Schema, types map[string]reflect.Type) *jsonschema.Schema {
	defs, version := root.Definitions, root.Version
	root.Definitions, root.Version = nil, ""
	for name, def := range defs {
		if dt := types[name]; dt != nil && def.Ref == "" {
			below(dt, def)
		}
	}
	below(t, root)

	// A root that is only a reference is unfolded: some readers look at type alone. One that contains itself keeps the
	// reference and says its type beside it.
	if name, ok := strings.CutPrefix(root.Ref, refPrefix); ok && defs[name] != nil {
		switch {
		case !refersTo(defs, root.Ref):
			root = defs[name]
			delete(defs, name)
		case !writesNull(t):
			root.Type = defs[name].Type
		}
	}
	if writesNull(t) {
		root = orNull(root)
	}
	root.Definitions, root.Version = defs, version
	return root
}

// below corrects what lies under a schema s that was made of t.
func below(t reflect.Type, s *jsonschema.Schema) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s == nil || s.Ref != "" || isOpaque(t) {
		return
	}
	if inner := withoutNull(s); inner != s {
		below(t, inner)
		return
	}
	switch t.Kind() {
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if s.Type == "integer" && s.Minimum == "" && s.ExclusiveMinimum == "" {
			s.Minimum = "0"
		}
	case reflect.Slice, reflect.Array:
		s.Items = place(t.Elem(), s.Items)
	case reflect.Map:
		elem := s.AdditionalProperties
		for _, of := range s.PatternProperties {
			elem = of // the generator writes some integer keys as a pattern, the wrong one
		}
		elem = place(t.Elem(), elem)
		if pattern := keyPattern(t.Key()); pattern == "" {
			s.AdditionalProperties = elem
		} else {
			if elem == nil {
				elem = jsonschema.TrueSchema
			}
			s.PatternProperties = map[string]*jsonschema.Schema{pattern: elem}
			s.AdditionalProperties = jsonschema.FalseSchema
		}
	case reflect.Struct:
		if s.Properties == nil {
			return
		}
		for _, f := range fieldsOf(t) {
			property, ok := s.Properties.Get(f.name)
			if !ok {
				continue
			}
			if f.optional || f.nonnull {
				below(f.Type, property)
			} else {
				s.Properties.Set(f.name, place(f.Type, property))
			}
		}
	}
}

// place corrects the schema of an element or field of type t, which is there whether it is nil or not.
func place(t reflect.Type, s *jsonschema.Schema) *jsonschema.Schema {
	below(t, s)
	if s == nil || !writesNull(t) {
		return s
	}
	return orNull(s)
}

func orNull(s *jsonschema.Schema) *jsonschema.Schema {
	if withoutNull(s) != s {
		return s
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, {Type: "null"}}}
}

// withoutNull is the first alternative of a schema whose second is null, else the schema itself.
func withoutNull(s *jsonschema.Schema) *jsonschema.Schema {
	for _, of := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		if len(of) == 2 && of[1].Type == "null" {
			return of[0]
		}
	}
	return s
}

// keyPattern is how encoding/json writes integer keys; empty for all others.
func keyPattern(key reflect.Type) string {
	switch key.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "^(0|-?[1-9][0-9]*)$"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "^(0|[1-9][0-9]*)$"
	}
	return ""
}

// refersTo says whether a definition refers to ref anywhere.
func refersTo(defs jsonschema.Definitions, ref string) bool {
	for _, def := range defs {
		if mentions(def, ref) {
			return true
		}
	}
	return false
}
