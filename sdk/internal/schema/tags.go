package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// schemaTags are the tags that are read.
var schemaTags = []string{"json", "jsonschema", "jsonschema_description", "jsonschema_extras"}

// kind is what the constraints of a field apply to.
type kind uint8

const (
	// other takes no constraints: objects, maps, types with a definition of their own, and any.
	other kind = iota
	text
	number
	integer
	boolean
	list
)

// constraints are the keys of a jsonschema tag by kind, with a check of the value. The generator ignores every other key, and every
// value that does not parse, without a word.
var constraints = map[kind]map[string]func(string) bool{
	text: {"minLength": isUint, "maxLength": isUint, "pattern": isPattern, "format": isAny, "default": isAny, "example": isAny, "enum": isAny,
		"readOnly": isBool, "writeOnly": isBool},
	number: {"multipleOf": isNumber, "minimum": isNumber, "maximum": isNumber, "exclusiveMinimum": isNumber, "exclusiveMaximum": isNumber,
		"default": isNumber, "example": isNumber, "enum": isNumber},
	boolean: {"default": isBool},
	list:    {"minItems": isUint, "maxItems": isUint, "uniqueItems": isTrue},
}

// nonnull is a key of ours: nil slices, maps and pointers are written as null, and the author of a field that has it promises that there
// are none. The generator does not see it; a value that breaks the promise fails its schema.
const nonnull = "nonnull"

// everywhere are the keys that every field may have.
var everywhere = map[string]func(string) bool{"title": isAny, "description": isAny, "oneof_required": isAny, "anyof_required": isAny}

// once may not be given twice; enum and example add up.
func once(key string) bool { return key != "enum" && key != "example" }

func isAny(string) bool { return true }
func isUint(s string) bool {
	_, err := strconv.ParseUint(s, 10, 31)
	return err == nil
}
func isBool(s string) bool { return s == "true" || s == "false" }
func isTrue(s string) bool { return s == "true" }
func isPattern(s string) bool {
	_, err := regexp.Compile(s)
	return err == nil
}
func isNumber(s string) bool {
	return s != "" && json.Valid([]byte(s)) && (s[0] == '-' || '0' <= s[0] && s[0] <= '9')
}

// checkTags looks at the tags of a field; the path of the problem is left to the caller.
func checkTags(sf reflect.StructField, tags map[string]string, optional, quoted bool) *FieldError {
	for _, extra := range splitTag(tags["jsonschema_extras"]) {
		if extra != "" && (!strings.HasPrefix(extra, "x-") || !strings.Contains(extra, "=")) {
			return &FieldError{Reason: fmt.Sprintf("jsonschema_extras %q is no extension", extra), Fix: "extras are x-name=value; put everything else in JSONSchemaExtend"}
		}
	}
	k, elem := kindOf(sf.Type, quoted), other
	if k == list {
		t := sf.Type
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		elem = kindOf(t.Elem(), false)
	}
	var seen []string
	for n, tag := range splitTag(tags["jsonschema"]) {
		key, value, valued := strings.Cut(tag, "=")
		switch {
		case tag == "" && tags["jsonschema"] == "":
			continue
		case n == 0 && tag == "-":
			return &FieldError{Reason: `jsonschema:"-" leaves out of the schema what encoding/json writes`, Fix: `leave it out of both with json:"-"`}
		case tag == "required" && optional:
			return &FieldError{Reason: "it is required and may be left out (omitempty, omitzero)", Fix: "drop one of the two"}
		case tag == "required", tag == "nullable":
			continue
		case tag == nonnull && !writesNull(sf.Type):
			return &FieldError{Reason: "it is nonnull and its type never gives null", Fix: "drop nonnull"}
		case tag == nonnull:
			continue
		case !valued:
			return &FieldError{Reason: fmt.Sprintf("the generator ignores %q in the jsonschema tag", tag), Fix: `write key=value; a comma in a value is written \\,`}
		case once(key) && slices.Contains(seen, key):
			return &FieldError{Reason: fmt.Sprintf("%s is given twice", key), Fix: "give it once"}
		}
		seen = append(seen, key)
		check, own := everywhere[key], true
		if check == nil {
			check = constraints[k.base()][key]
		}
		if check == nil && k == list && key != "default" && key != "example" && key != "readOnly" && key != "writeOnly" {
			check, own = constraints[elem.base()][key], false
		}
		switch {
		case check == nil && slices.Contains(everyKey(), key):
			return &FieldError{Reason: fmt.Sprintf("the generator drops %s on the type %s", key, nameOf(sf.Type)), Fix: "use a key that fits the type, or give it a named type with JSONSchemaExtend"}
		case check == nil:
			return &FieldError{Reason: fmt.Sprintf("%q is no key of a jsonschema tag", key), Fix: "the keys are " + strings.Join(everyKey(), ", ") + "; put everything else in JSONSchemaExtend"}
		case !check(value), !own && strings.Contains(value, "="),
			(own && k == integer || !own && elem == integer) && key == "enum" && strings.ContainsAny(value, ".eE"):
			return &FieldError{Reason: fmt.Sprintf("%s cannot be %q", key, value), Fix: "write a value that fits the key"}
		}
	}
	return nil
}

// base is the kind whose constraints a kind takes.
func (k kind) base() kind {
	if k == integer {
		return number
	}
	return k
}

// kindOf tells from a Go type what the generator will write, and so which constraints it keeps.
func kindOf(t reflect.Type, quoted bool) kind {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if isCustom(t) || t == rawType {
		return other
	}
	k := other
	switch {
	case t == numberType:
		k = number
	case known(t) != nil:
		return text
	case t.Name() != "" && t.PkgPath() != "" && (t.Kind() == reflect.Slice || t.Kind() == reflect.Array):
		return other // it gets a definition of its own, and constraints beside a reference are dropped
	default:
		switch t.Kind() {
		case reflect.String:
			return text
		case reflect.Bool:
			k = boolean
		case reflect.Float32, reflect.Float64:
			k = number
		case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
			reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			k = integer
		case reflect.Slice, reflect.Array:
			if t == bytesType {
				return text
			}
			return list
		}
	}
	if quoted && k != other {
		return text
	}
	return k
}

// everyKey lists the keys of all kinds, sorted.
func everyKey() []string {
	keys := []string{"nullable", nonnull, "required"}
	for key := range everywhere {
		keys = append(keys, key)
	}
	for _, of := range constraints {
		for key := range of {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// splitTag splits at commas that no backslash escapes, as the generator does.
func splitTag(tag string) []string {
	var parts []string
	part := ""
	for i, piece := range strings.Split(tag, ",") {
		if i > 0 {
			if n := len(part); n > 0 && part[n-1] == '\\' {
				part = part[:n-1] + "," + piece
				continue
			}
			parts = append(parts, part)
		}
		part = piece
	}
	return append(parts, part)
}

// parseTags reads key:"value" pairs. reflect gives up at the first mistake and calls the rest absent.
func parseTags(tag string) (map[string]string, error) {
	tags := map[string]string{}
	for tag = strings.TrimLeft(tag, " "); tag != ""; tag = strings.TrimLeft(tag, " ") {
		colon := strings.IndexByte(tag, ':')
		if colon <= 0 || strings.ContainsAny(tag[:colon], " \"") {
			return nil, fmt.Errorf("no key at %q", tag)
		}
		key := tag[:colon]
		quoted, err := strconv.QuotedPrefix(tag[colon+1:])
		if err != nil || quoted[0] != '"' {
			return nil, fmt.Errorf("the value of %s is not in double quotes", key)
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, fmt.Errorf("the value of %s: %w", key, err)
		}
		if _, ok := tags[key]; ok {
			return nil, errors.New(key + " is there twice")
		}
		tags[key] = value
		tag = tag[colon+1+len(quoted):]
		if tag != "" && tag[0] != ' ' {
			return nil, fmt.Errorf("no space after %s", key)
		}
	}
	return tags, nil
}
