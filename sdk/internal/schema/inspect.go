package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// inspect looks for everything in a type that the generator or encoding/json would get wrong. Each named type is looked at once.
func inspect(t reflect.Type) []error {
	i := inspector{seen: map[reflect.Type]bool{}}
	switch {
	case t == bytesType:
		i.refuse(t.String(), "the SDK takes a bare []byte as JSON text", "use json.RawMessage for JSON, or put the bytes in a struct")
	default:
		i.visit(t, nameOf(t))
	}
	return i.problems
}

// nameOf is short for structs without a name, which reflect writes with all their fields.
func nameOf(t reflect.Type) string {
	if t.Name() == "" && t.Kind() == reflect.Struct {
		return "struct"
	}
	return t.String()
}

type inspector struct {
	seen     map[reflect.Type]bool
	problems []error
}

func (i *inspector) refuse(path, reason, fix string) {
	i.problems = append(i.problems, &FieldError{Path: path, Reason: reason, Fix: fix})
}

func (i *inspector) visit(t reflect.Type, path string) {
	if t.Name() != "" && t.PkgPath() != "" {
		if i.seen[t] {
			return
		}
		i.seen[t] = true
		path = t.String()
	}
	if !i.methods(t, path) || isOpaque(t) {
		return
	}
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		i.refuse(path, "JSON cannot carry a "+t.Kind().String(), `leave it out with json:"-"`)
	case reflect.Uintptr:
		i.refuse(path, "an address means nothing outside its process", "use uint64")
	case reflect.Interface:
		if t.NumMethod() > 0 {
			i.refuse(path, "a value of interface "+t.String()+" cannot be read back from JSON", "use a concrete type, or json.RawMessage")
		}
	case reflect.Pointer:
		i.visit(t.Elem(), path)
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 && t.Elem() != bytesType.Elem() {
			i.refuse(path, "encoding/json writes it as a base64 string and the schema would say array", "use []byte")
			return
		}
		i.visit(t.Elem(), path+"[]")
	case reflect.Map:
		i.key(t.Key(), path)
		i.visit(t.Elem(), path+"{}")
	case reflect.Struct:
		i.structure(t, path)
	}
}

// methods looks at the methods by which a type writes or describes itself. It says whether to look further.
func (i *inspector) methods(t reflect.Type, path string) bool {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return true
	}
	p := reflect.PointerTo(t)
	if name := promoted(t); name != "" {
		i.refuse(path+"."+name, "the methods of the embedded type become those of the struct around it, which is then written or described as that field alone",
			"do not embed it: give it a field name")
		return false
	}
	switch {
	case has(p, "JSONSchemaAlias"), has(p, "JSONSchemaProperty"), has(p, "GetFieldDocString"):
		i.refuse(path, "JSONSchemaAlias, JSONSchemaProperty and GetFieldDocString describe another type than encoding/json writes",
			"use JSONSchema or JSONSchemaExtend")
	case !t.Implements(customSchema) && has(p, "JSONSchema"):
		i.refuse(path, "JSONSchema is never called: it has a pointer receiver or another signature", "write func ("+t.Name()+") JSONSchema() *jsonschema.Schema")
	case !t.Implements(extendSchema) && has(p, "JSONSchemaExtend"):
		i.refuse(path, "JSONSchemaExtend is never called: it has a pointer receiver or another signature", "write func ("+t.Name()+") JSONSchemaExtend(*jsonschema.Schema)")
	case t == timeType, t == numberType, t == rawType:
		return true
	case !t.Implements(jsonMarshaler) && p.Implements(jsonMarshaler), !t.Implements(textMarshaler) && p.Implements(textMarshaler):
		i.refuse(path, "it writes itself only where it can be addressed: MarshalJSON or MarshalText has a pointer receiver",
			"give the method a value receiver, or use a type that encoding/json writes by itself, such as string")
	case t.Implements(jsonMarshaler) && !t.Implements(customSchema):
		i.refuse(path, "it writes itself with MarshalJSON and nothing says what comes out", "give it a method JSONSchema() *jsonschema.Schema with a value receiver")
	case t.Implements(jsonMarshaler) && !p.Implements(jsonUnmarshaler):
		i.refuse(path, "it has MarshalJSON and no UnmarshalJSON, so it cannot be read back", "write UnmarshalJSON")
	case isText(t) && !p.Implements(textUnmarshaler):
		i.refuse(path, "it has MarshalText and no UnmarshalText, so it cannot be read back", "write UnmarshalText")
	case t.PkgPath() == "net/url" && t.Name() == "URL":
		i.refuse(path, "encoding/json writes a url.URL as an object of its fields and the schema would say string", "use string")
	default:
		return true
	}
	return false
}

// promoted is the embedded field of a struct that has methods by which a type writes or describes itself.
func promoted(t reflect.Type) string {
	if t.Kind() != reflect.Struct || t == timeType {
		return ""
	}
	for n := range t.NumField() {
		sf := t.Field(n)
		if !sf.Anonymous {
			continue
		}
		for _, method := range []string{"MarshalJSON", "MarshalText", "JSONSchema", "JSONSchemaExtend"} {
			if has(sf.Type, method) || sf.Type.Kind() != reflect.Pointer && sf.Type.Kind() != reflect.Interface && has(reflect.PointerTo(sf.Type), method) {
				return sf.Name
			}
		}
	}
	return ""
}

func has(t reflect.Type, method string) bool {
	_, ok := t.MethodByName(method)
	return ok
}

func (i *inspector) key(t reflect.Type, path string) {
	switch t.Kind() {
	case reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if t.Kind() != reflect.String && t.Implements(textMarshaler) {
			i.refuse(path, "its integer keys are written by MarshalText and the schema would say digits", "use string keys")
		}
	default:
		if !t.Implements(textMarshaler) || !reflect.PointerTo(t).Implements(textUnmarshaler) {
			i.refuse(path, "keys of type "+t.String()+" cannot be written to JSON and read back", "use string keys")
		}
	}
}

func (i *inspector) structure(t reflect.Type, path string) {
	before := len(i.problems)
	for n := range t.NumField() {
		sf := t.Field(n)
		i.field(sf, path+"."+sf.Name)
	}
	if len(i.problems) > before {
		return // the list of fields may be wrong, or without end
	}
	by := map[string]string{}
	for _, f := range fieldsOf(t) {
		if first, ok := by[f.name]; ok {
			i.refuse(path+"."+f.path, fmt.Sprintf("its JSON name %q is that of %s too: one hides the other, or both are left out", f.name, first),
				"rename one, or leave one out")
			continue
		}
		by[f.name] = f.path
	}
}

func (i *inspector) field(sf reflect.StructField, path string) {
	tags, err := parseTags(string(sf.Tag))
	if err != nil {
		i.refuse(path, "its tag is malformed: "+err.Error(), `write key:"value" pairs, one space between them`)
		return
	}
	for key := range tags {
		if lower := strings.ToLower(key); key != lower && slices.Contains(schemaTags, lower) || lower == "json_schema" {
			i.refuse(path, fmt.Sprintf("its tag %q is ignored", key), "write it in lower case: json, jsonschema, jsonschema_description, jsonschema_extras")
			return
		}
	}
	name, options := jsonTag(sf)
	if name == "-" && options == nil {
		return
	}
	if !sf.Anonymous && !sf.IsExported() {
		if tags["json"] != "" || tags["jsonschema"] != "" {
			i.refuse(path, "it has a tag and is not exported, so it is not written", "export it, or drop the tag")
		}
		return
	}
	switch {
	case name == "-":
		i.refuse(path, `json:"-," writes a key "-" that the schema would forbid`, "give it another name")
		return
	case !validName(name):
		i.refuse(path, fmt.Sprintf("encoding/json ignores the name %q", name), "use letters, digits and the like")
		return
	}
	for _, o := range options {
		switch o {
		case "", "omitempty", "omitzero", "string":
		case "inline":
			i.refuse(path, "encoding/json does not know the option inline", "embed a struct, or give the field a name")
			return
		default:
			i.refuse(path, fmt.Sprintf("encoding/json ignores the option %q", o), "use omitempty, omitzero or string")
			return
		}
	}
	if sf.Anonymous && !i.embedded(sf, name, path) {
		return
	}
	if problem := checkTags(sf, tags, slices.Contains(options, "omitempty") || slices.Contains(options, "omitzero"), slices.Contains(options, "string")); problem != nil {
		problem.Path = path
		i.problems = append(i.problems, problem)
		return
	}
	i.visit(sf.Type, path)
}

// embedded says whether an embedded field is written as the generator thinks.
func (i *inspector) embedded(sf reflect.StructField, name, path string) bool {
	t := sf.Type
	elem := t
	if t.Kind() == reflect.Pointer {
		elem = t.Elem()
	}
	switch {
	case name == "" && t.Kind() == reflect.Pointer && elem.Kind() == reflect.Struct:
		i.refuse(path, "the fields of an embedded pointer are left out when it is nil and the schema would require them", "embed the struct itself, or give it a field name")
	case !sf.IsExported() && (elem.Kind() != reflect.Struct || name != ""):
		i.refuse(path, "encoding/json does not write it, or cannot read it back, and the schema would require it", "give it an exported field name")
	default:
		return true
	}
	return false
}

// validName says whether encoding/json takes a name from a tag.
func validName(name string) bool {
	for _, r := range name {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return false
		}
	}
	return true
}
