package event

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// The rules behind data-not-lossless that only values made in Go can break.
const (
	ruleUnsupported = "unsupported-value"
	ruleMarshaler   = "marshaler-failed"
)

// Encode makes lossless JSON of a Go value. json.RawMessage and []byte are taken as JSON text and compacted; everything
// else is marshalled as encoding/json does, but without rewriting <, > and &; a json.RawMessage inside keeps its bytes.
// The result shares nothing with v. What JSON cannot carry is refused, never repaired: NaN, infinities, negative zero,
// functions, channels, cycles, strings that are not UTF-8, and what nests more than 16,000 values of Go deep. The error is an *Error with code data-not-lossless.
func Encode(v any) (raw json.RawMessage, err error) {
	switch v := v.(type) {
	case json.RawMessage:
		return Compact(v, "$")
	case []byte:
		return Compact(v, "$")
	}
	// Marshalers are code of others, and are called below.
	defer func() {
		if p := recover(); p != nil {
			raw, err = nil, &Error{Code: DataNotLossless, Rule: ruleMarshaler, Path: "$", Reason: fmt.Sprintf("marshalling %T panicked: %v", v, p)}
		}
	}()
	if tooDeep(reflect.ValueOf(v), 0) {
		return nil, &Error{Code: DataNotLossless, Rule: ruleUnsupported, Path: "$", Reason: fmt.Sprintf("this %T is a cycle, or nests without end; make it flatter", v)}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		rule := ruleUnsupported
		if marshaler := (*json.MarshalerError)(nil); errors.As(err, &marshaler) {
			rule = ruleMarshaler
		}
		return nil, &Error{Code: DataNotLossless, Rule: rule, Path: "$", Reason: fmt.Sprintf("JSON cannot carry this %T: %v", v, err)}
	}
	// encoding/json lets some things through: negative zero, equal keys of a map, whatever a Marshaler wrote.
	raw, err = Compact(buf.Bytes(), "$")
	if err != nil {
		return nil, err
	}
	// It writes bytes that are not UTF-8 as this escape, while U+FFFD itself goes out as it is. A Marshaler may have meant
	// the escape, so only the value can tell.
	if bytes.Contains(raw, []byte(`\ufffd`)) {
		if path, bad := badText(reflect.ValueOf(v), "$", 0); bad {
			return nil, &Error{Code: DataNotLossless, Rule: ruleUTF8, Path: path, Reason: "a string holds bytes that are not UTF-8; encode them, for instance as base64"}
		}
	}
	return raw, nil
}

// badText finds a string that is not UTF-8 in a value that encoding/json has just marshalled, and so one that ends. Values
// that marshal themselves are left alone: what they wrote has been checked as JSON.
func badText(v reflect.Value, path string, depth int) (string, bool) {
	if !v.IsValid() || depth > maxGoDepth {
		return "", false
	}
	if v.Kind() == reflect.Interface {
		return badText(v.Elem(), path, depth+1) // whose own kind tells whether it is nil
	}
	if v.CanInterface() {
		switch m := v.Interface().(type) {
		case json.Marshaler:
			return "", false
		case encoding.TextMarshaler:
			if v.Kind() == reflect.Pointer && v.IsNil() {
				return "", false
			}
			text, err := m.MarshalText()
			return path, err == nil && !utf8.Valid(text)
		}
	}
	switch v.Kind() {
	case reflect.String:
		return path, !utf8.ValidString(v.String())
	case reflect.Pointer:
		return badText(v.Elem(), path, depth+1)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 && v.Kind() == reflect.Slice {
			return "", false // base64
		}
		for i := range v.Len() {
			if where, bad := badText(v.Index(i), path+"["+itoa(i)+"]", depth+1); bad {
				return where, true
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if where, bad := badText(it.Key(), path, depth+1); bad {
				return where, true
			}
			if where, bad := badText(it.Value(), path+PathKey(fmt.Sprint(it.Key())), depth+1); bad {
				return where, true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !encoded(f) {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			where := path
			switch {
			case name != "":
				where += PathKey(name)
			case !f.Anonymous:
				where += PathKey(f.Name)
			}
			if where, bad := badText(v.Field(i), where, depth+1); bad {
				return where, true
			}
		}
	}
	return "", false
}
