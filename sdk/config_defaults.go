package sdk

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/foldhost/foldhost/event"
)

// Defaults of a config live in its schema, under "default", so that operators see the very values that are filled in.

// relax drops from required, in the schema and its definitions, what has a default or is an object that may be empty.
func relax(root map[string]any) {
	done := map[string]bool{}
	var object func(s map[string]any)
	// mayBeEmpty relaxes the object behind a property and says whether {} is one.
	mayBeEmpty := func(s map[string]any) bool {
		target, name := follow(root, s)
		if target == nil || target["type"] != "object" || target["properties"] == nil {
			return false
		}
		if name == "" || !done[name] {
			done[name] = name != ""
			object(target)
		}
		return target["required"] == nil
	}
	object = func(s map[string]any) {
		properties, _ := s["properties"].(map[string]any)
		for name, p := range properties {
			property, ok := p.(map[string]any)
			if !ok || !requires(s, name) {
				continue
			}
			if _, ok := property["default"]; !ok {
				if !mayBeEmpty(property) {
					continue
				}
				property["default"] = map[string]any{}
			}
			unrequire(s, name)
		}
	}
	object(root)
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

// fill puts the defaults of a schema into an object where it has no member, and into the objects in it. Anything but an object is
// left as it is: the schema will say what is wrong with it.
func fill(root, s map[string]any, raw json.RawMessage) (json.RawMessage, error) {
	target, _ := follow(root, s)
	properties, _ := target["properties"].(map[string]any)
	raw = bytes.TrimSpace(raw)
	if len(properties) == 0 || len(raw) == 0 || raw[0] != '{' {
		return raw, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, ok := properties[name].(map[string]any)
		if !ok {
			continue
		}
		member, there := members[name]
		if !there {
			value, ok := property["default"]
			if !ok {
				continue
			}
			var err error
			if member, err = event.Encode(value); err != nil {
				return nil, err
			}
		}
		filled, err := fill(root, property, member)
		if err != nil {
			return nil, err
		}
		members[name] = filled
	}
	return json.Marshal(members)
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
