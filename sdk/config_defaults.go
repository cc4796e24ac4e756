package sdk

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/foldhost/foldhost/event"
)

// Defaults of a config live in its schema, under "default", so that operators see the very values that are filled in.

// relax drops from required, everywhere in the schema, what has a default or is an object that may be empty.
func relax(root map[string]any) {
	seen := map[uintptr]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, elem := range v {
				walk(elem)
			}
		case map[string]any:
			if at := reflect.ValueOf(v).Pointer(); seen[at] {
				return
			} else {
				seen[at] = true
			}
			// What is below first: whether an object may be empty depends on it.
			if target, name := follow(root, v); name != "" {
				walk(target)
			}
			for _, member := range v {
				walk(member)
			}
			relaxObject(root, v)
		}
	}
	walk(root)
}

func relaxObject(root, s map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		property, ok := p.(map[string]any)
		if !ok || !requires(s, name) {
			continue
		}
		if _, ok := property["default"]; !ok {
			target, _ := follow(root, property)
			if target["type"] != "object" || target["properties"] == nil || target["required"] != nil {
				continue
			}
			property["default"] = map[string]any{}
		}
		unrequire(s, name)
	}
}

// addDefaults puts each field of a value into the schema as its default.
func addDefaults(root map[string]any, value any) error {
	raw, err := event.Encode(value)
	if err != nil {
		return err
	}
	var fields map[string]any
	if err := decodeNumbers(raw, &fields); err != nil {
		return err
	}
	defaultObject(root, root, fields)
	return nil
}

func defaultObject(root, s, fields map[string]any) {
	properties, _ := s["properties"].(map[string]any)
	for name, value := range fields {
		property, ok := properties[name].(map[string]any)
		if !ok {
			property = map[string]any{}
			if properties[name] == nil {
				continue
			}
		}
		unrequire(s, name)
		inner, isObject := value.(map[string]any)
		if target, ref := follow(root, property); isObject && target != nil && target["properties"] != nil {
			// The definition may be used elsewhere, with other defaults or none.
			if ref != "" {
				target = clone(target)
			}
			defaultObject(root, target, inner)
			target["default"] = map[string]any{}
			properties[name] = target
			continue
		}
		property["default"] = value
		properties[name] = property
	}
}

// fill puts the defaults of a schema into an object where it has no member, and into what lies below. What is not as the schema wants it
// is left as it is: the schema will say so.
func fill(root, s map[string]any, raw json.RawMessage) (json.RawMessage, error) {
	s, _ = follow(root, orElse(s))
	raw = bytes.TrimSpace(raw)
	items, _ := s["items"].(map[string]any)
	properties, _ := s["properties"].(map[string]any)
	others, _ := s["additionalProperties"].(map[string]any)
	switch {
	case items != nil && bytes.HasPrefix(raw, []byte("[")):
		var elems []json.RawMessage
		if err := json.Unmarshal(raw, &elems); err != nil {
			return nil, err
		}
		for i := range elems {
			var err error
			if elems[i], err = fill(root, items, elems[i]); err != nil {
				return nil, err
			}
		}
		return json.Marshal(elems)
	case (properties != nil || others != nil) && bytes.HasPrefix(raw, []byte("{")):
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, err
		}
		for name := range properties {
			property, _ := properties[name].(map[string]any)
			if value, ok := property["default"]; ok && members[name] == nil {
				var err error
				if members[name], err = event.Encode(value); err != nil {
					return nil, err
				}
			}
		}
		for name, member := range members {
			below, ok := properties[name].(map[string]any)
			if !ok {
				below = others
			}
			if below == nil {
				continue
			}
			var err error
			if members[name], err = fill(root, below, member); err != nil {
				return nil, err
			}
		}
		return json.Marshal(members)
	}
	return raw, nil
}

// orElse is the first alternative of a schema whose second is null, as those of pointers, slices and maps are; else the schema itself.
func orElse(s map[string]any) map[string]any {
	for _, key := range []string{"anyOf", "oneOf"} { // The tag nullable gives oneOf.
		of, _ := s[key].([]any)
		if len(of) != 2 {
			continue
		}
		first, _ := of[0].(map[string]any)
		if second, _ := of[1].(map[string]any); first != nil && second["type"] == "null" {
			return first
		}
	}
	return s
}

// follow gives the schema that a reference stands for, and the name of its definition; a schema without one stands for itself.
func follow(root, s map[string]any) (target map[string]any, name string) {
	ref, ok := s["$ref"].(string)
	if !ok {
		return s, ""
	}
	name, _ = strings.CutPrefix(ref, "#/$defs/")
	defs, _ := root["$defs"].(map[string]any)
	target, _ = defs[name].(map[string]any)
	return target, name
}

func requires(s map[string]any, name string) bool {
	required, _ := s["required"].([]any)
	return slices.Contains(required, any(name))
}

func unrequire(s map[string]any, name string) {
	required, _ := s["required"].([]any)
	required = slices.DeleteFunc(slices.Clone(required), func(n any) bool { return n == name })
	if len(required) == 0 {
		delete(s, "required")
		return
	}
	s["required"] = required
}

func clone(s map[string]any) map[string]any {
	out := make(map[string]any, len(s))
	for k, v := range s {
		if m, ok := v.(map[string]any); ok {
			v = clone(m)
		}
		out[k] = v
	}
	return out
}
