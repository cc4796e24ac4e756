package schema

import (
	"encoding/json"

	"github.com/invopop/jsonschema"
)

// mentions looks for a reference in the written schema: there is no other place where all of its parts are listed.
func mentions(s *jsonschema.Schema, ref string) bool {
	text, err := json.Marshal(s)
	if err != nil {
		return true
	}
	var doc any
	if json.Unmarshal(text, &doc) != nil {
		return true
	}
	return holdsRef(doc, ref)
}

func holdsRef(v any, ref string) bool {
	switch v := v.(type) {
	case map[string]any:
		if v["$ref"] == ref {
			return true
		}
		for _, member := range v {
			if holdsRef(member, ref) {
				return true
			}
		}
	case []any:
		for _, elem := range v {
			if holdsRef(elem, ref) {
				return true
			}
		}
	}
	return false
}
