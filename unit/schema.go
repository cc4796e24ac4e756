package unit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/foldhost/foldhost/event"
)

// MaxSchemaBytes bounds one schema. 64 KiB: what generators make of a rich type is a few KiB, and the time to compile grows with
// the square of the number of subschemas.
const MaxSchemaBytes = 64 << 10

// maxReason bounds what a mismatch says: an enum lists all its members.
const maxReason = 300

// schemaURL is where a schema lies for the compiler. It is absolute, so that no reference is ever looked up on the disk.
const schemaURL = "mem:///schema"

// schema is one compiled JSON Schema. Immutable, safe for concurrent use.
type schema struct {
	// text is the schema without white space, doc what it decodes to.
	text     json.RawMessage
	doc      any
	compiled *jsonschema.Schema
	effort   effort
}

// compileSchema compiles text as draft 2020-12 unless it names another. It reads nothing from disk or network.
func compileSchema(raw json.RawMessage) (s *schema, err error) {
	if len(raw) > MaxSchemaBytes {
		return nil, fmt.Errorf("the schema is %d bytes; the limit is %d", len(raw), MaxSchemaBytes)
	}
	text, err := event.Compact(raw, "$")
	if err != nil {
		return nil, fmt.Errorf("the schema is not lossless JSON: %w", err)
	}
	doc, measured := decode(text)
	if reason := measured.tooLong(); reason != "" {
		return nil, errors.New("the schema cannot be used: " + reason)
	}
	switch doc.(type) {
	case map[string]any, bool:
	default:
		return nil, errors.New("a schema is a JSON object, true or false")
	}
	defer func() {
		if v := recover(); v != nil {
			s, err = nil, fmt.Errorf("the schema makes the compiler panic: %s", shorten(fmt.Sprint(v), maxPanicText))
		}
	}()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(nothingOutside{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, fmt.Errorf("add the schema: %w", err)
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return nil, schemaFault(err, doc)
	}
	effort, err := effortOf(compiled)
	if err != nil {
		return nil, err
	}
	return &schema{text: text, doc: doc, compiled: compiled, effort: effort}, nil
}

// nothingOutside refuses every document that is not the schema itself. The published drafts, which $schema may name, the library
// carries along.
type nothingOutside struct{}

var errOutside = errors.New("a schema may refer to nothing outside itself")

func (nothingOutside) Load(string) (any, error) { return nil, errOutside }

// schemaFault says what is wrong with a schema and where, without the address that it has only for the compiler.
func schemaFault(err error, doc any) error {
	var outside *jsonschema.LoadURLError
	if errors.As(err, &outside) {
		return fmt.Errorf("the schema refers to %q%s; it may refer to nothing outside itself: move what it needs into $defs",
			strings.TrimPrefix(outside.URL, strings.TrimSuffix(schemaURL, "schema")), placeOf(doc, outside.URL))
	}
	var invalid *jsonschema.SchemaValidationError
	var mismatch *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &mismatch) {
		path, reason := worst(mismatch, doc)
		return fmt.Errorf("the schema is wrong at %s: %s", path, reason)
	}
	return fmt.Errorf("the schema does not compile: %s", shorten(strings.ReplaceAll(err.Error(), schemaURL, ""), maxReason))
}

// placeOf finds the reference that led outside. The address was resolved since it was written, so its end is compared.
func placeOf(doc any, url string) (place string) {
	var walk func(v any, path string)
	walk = func(v any, path string) {
		switch v := v.(type) {
		case map[string]any:
			for key, member := range v {
				at := path + event.PathKey(key)
				if text, ok := member.(string); ok && (key == "$ref" || key == "$dynamicRef" || key == "$schema") {
					target, _, _ := strings.Cut(text, "#")
					if target != "" && strings.HasSuffix(url, strings.TrimLeft(target, "./")) && (place == "" || at < place) {
						place = at
					}
				}
				walk(member, at)
			}
		case []any:
			for i, elem := range v {
				walk(elem, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}
	walk(doc, "$")
	if place != "" {
		place = " at " + place
	}
	return place
}

// mismatch says where and how a value breaks the schema; an empty reason says that it does not. text is lossless JSON.
func (s *schema) mismatch(text json.RawMessage) (path, reason string) {
	if s.compiled.Bool != nil && *s.compiled.Bool {
		return "", ""
	}
	value, measured := decode(text)
	if reason := measured.tooLong(); reason != "" {
		return "$", reason
	}
	if steps, most := s.effort.steps(measured), allowed(len(text)); steps > most {
		return "$", fmt.Sprintf("its schema is so intricate that checking it could take %d steps; %d are allowed for its %d bytes", steps, most, len(text))
	}
	defer func() {
		if v := recover(); v != nil {
			path, reason = "$", "the schema cannot be applied to it: "+shorten(fmt.Sprint(v), maxPanicText)
		}
	}()
	err := s.compiled.Validate(value)
	if err == nil {
		return "", ""
	}
	var m *jsonschema.ValidationError
	if !errors.As(err, &m) {
		return "$", shorten(err.Error(), maxReason)
	}
	return worst(m, value)
}

// worst picks the one mismatch that helps most: the deepest, since in a choice of alternatives that is the one that fitted best;
// among equals one where at least the type was right, and then the first by path and wording, because the library's order is
// that of a map.
func worst(m *jsonschema.ValidationError, value any) (path, reason string) {
	best := -1
	var kinds []jsonschema.ErrorKind // at path: they are put in words at the end, because a word may be a list of thousands
	var walk func(m *jsonschema.ValidationError)
	walk = func(m *jsonschema.ValidationError) {
		for _, cause := range m.Causes {
			walk(cause)
		}
		fit := 2 * len(m.InstanceLocation)
		if _, wrongType := m.ErrorKind.(*kind.Type); !wrongType {
			fit++
		}
		if len(m.Causes) > 0 || fit < best {
			return
		}
		p := pathOf(m.InstanceLocation, value)
		switch {
		case fit > best || p < path:
			best, path, kinds = fit, p, append(kinds[:0], m.ErrorKind)
		case p == path:
			kinds = append(kinds, m.ErrorKind)
		}
	}
	walk(m)
	printer := message.NewPrinter(language.English)
	for i, k := range kinds {
		if r := reasonOf(k, printer); i == 0 || r < reason {
			reason = r
		}
	}
	return path, shorten(reason, maxReason)
}

// reasonOf says that a false schema means an unknown key, which the library does not.
func reasonOf(k jsonschema.ErrorKind, printer *message.Printer) string {
	switch k.(type) {
	case *kind.FalseSchema:
		return "nothing is allowed here"
	default:
		return k.LocalizedString(printer)
	}
}

// pathOf writes a location as "$.todos[2].status". Whether a step is an index or a key depends on the value.
func pathOf(location []string, value any) string {
	path := "$"
	for _, step := range location {
		switch v := value.(type) {
		case []any:
			path += "[" + step + "]"
			if i, err := strconv.Atoi(step); err == nil && 0 <= i && i < len(v) {
				value = v[i]
			}
		case map[string]any:
			path += event.PathKey(step)
			value = v[step]
		default:
			path += event.PathKey(step)
		}
	}
	return shorten(path, maxReason)
}

// shorten cuts a text to at most n bytes at the start of a rune and says so.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
