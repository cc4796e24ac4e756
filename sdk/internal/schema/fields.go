package schema

import (
	"reflect"
	"slices"
	"strings"
)

// field is one field of a struct as encoding/json writes it.
type field struct {
	reflect.StructField
	// name is the JSON name, path the Go name with those of the structs that it is embedded in.
	name, path string
	// optional says that the field may be left out: omitempty or omitzero.
	optional bool
	// nonnull says that the author promises that it is never nil.
	nonnull bool
	// quoted says that a number or boolean is written as a string.
	quoted bool
}

// fieldsOf lists the fields of a struct that has passed inspection, those of embedded structs in their place.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		sf := t.Field(i)
		name, options := jsonTag(sf)
		if name == "-" && options == nil {
			continue
		}
		if sf.Anonymous && name == "" && sf.Type.Kind() == reflect.Struct {
			for _, f := range fieldsOf(sf.Type) {
				f.path = sf.Name + "." + f.path
				fields = append(fields, f)
			}
			continue
		}
		if !sf.IsExported() {
			continue
		}
		f := field{StructField: sf, name: name, path: sf.Name}
		if name == "" {
			f.name = sf.Name
		}
		for _, o := range options {
			switch o {
			case "omitempty", "omitzero":
				f.optional = true
			case "string":
				f.quoted = true
			}
		}
		f.nonnull = slices.Contains(splitTag(sf.Tag.Get("jsonschema")), nonnull)
		fields = append(fields, f)
	}
	return fields
}

// jsonTag splits the json tag. options is nil where there is no comma: "-" leaves a field out, and "-," names it "-".
func jsonTag(sf reflect.StructField) (name string, options []string) {
	name, rest, comma := strings.Cut(sf.Tag.Get("json"), ",")
	if comma {
		options = strings.Split(rest, ",")
	}
	return name, options
}
