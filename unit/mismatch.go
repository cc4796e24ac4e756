package unit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/foldhost/foldhost/event"
)

// Schema is a compiled JSON Schema for what is no unit's state or view: configs, arguments and results of tools, data of events.
// It keeps the same rules: nothing outside itself, no more effort than the value is worth. Immutable, safe for concurrent use.
type Schema struct{ schema *schema }

// CompileSchema compiles text as draft 2020-12 unless it names another.
func CompileSchema(text json.RawMessage) (*Schema, error) {
	s, err := compileSchema(text)
	if err != nil {
		return nil, err
	}
	return &Schema{s}, nil
}

// Mismatch is one place where a value breaks a schema.
type Mismatch struct {
	// Path is the place in the value, such as "$.limits.maxImages". What is missing and what is too much have their own path.
	Path, Reason string
}

func (m Mismatch) String() string { return m.Path + ": " + m.Reason }

// maxMismatches bounds what is listed of one value: after twenty a reader starts again. They are the first by path of maxWorded, which
// bounds what is put in words: one may be a list of thousands.
const maxMismatches, maxWorded = 20, 200

// Check lists where a value breaks the schema, in the order of the paths; nothing when it does not. A value that is not lossless JSON
// is one mismatch.
func (s *Schema) Check(value json.RawMessage) []Mismatch {
	text, err := event.Compact(value, "$")
	if err != nil {
		m := Mismatch{Path: "$", Reason: err.Error()}
		if at := (*event.Error)(nil); errors.As(err, &at) {
			m.Path, m.Reason = at.Path, at.Reason
		}
		return []Mismatch{m}
	}
	return s.schema.mismatches(text)
}

// mismatches is mismatch for all places at once.
func (s *schema) mismatches(text json.RawMessage) (all []Mismatch) {
	path, reason := s.mismatch(text)
	if reason == "" {
		return nil
	}
	// What follows only says more about a value that was refused within its effort.
	defer func() {
		if recover() != nil || len(all) == 0 {
			all = []Mismatch{{path, reason}}
		}
	}()
	value, measured := decode(text)
	if measured.tooLong() != "" || s.effort.steps(measured) > allowed(len(text)) || s.compiled.Bool != nil {
		return nil
	}
	var m *jsonschema.ValidationError
	if !errors.As(s.compiled.Validate(value), &m) {
		return nil
	}
	printer := message.NewPrinter(language.English)
	var walk func(m *jsonschema.ValidationError)
	walk = func(m *jsonschema.ValidationError) {
		if len(all) >= maxWorded {
			return
		}
		switch k := m.ErrorKind.(type) {
		case *kind.AnyOf, *kind.OneOf:
			// Of alternatives, the one that fitted best.
			p, r := worst(m, value)
			all = append(all, Mismatch{p, r})
			return
		case *kind.Required:
			for _, name := range k.Missing[:min(len(k.Missing), maxWorded)] {
				all = append(all, Mismatch{pathOf(append(slices.Clip(m.InstanceLocation), name), value), "missing required value"})
			}
			return
		case *kind.AdditionalProperties:
			for _, name := range k.Properties[:min(len(k.Properties), maxWorded)] {
				all = append(all, Mismatch{pathOf(append(slices.Clip(m.InstanceLocation), name), value), "no such key is known here"})
			}
			return
		case *kind.Type:
			all = append(all, Mismatch{pathOf(m.InstanceLocation, value), fmt.Sprintf("expected %s, got %s", strings.Join(k.Want, " or "), k.Got)})
			return
		}
		if len(m.Causes) == 0 {
			all = append(all, Mismatch{pathOf(m.InstanceLocation, value), shorten(reasonOf(m.ErrorKind, printer), maxReason)})
			return
		}
		for _, cause := range m.Causes {
			walk(cause)
		}
	}
	walk(m)
	slices.SortFunc(all, func(a, b Mismatch) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Reason, b.Reason))
	})
	all = slices.Compact(all)
	if more := len(all) - maxMismatches; more > 0 {
		all = append(all[:maxMismatches], Mismatch{"$", fmt.Sprintf("and at least %d more", more)})
	}
	return all
}
