package sdk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// None is the config of a plugin that takes none, and the result of a tool that gives none.
type None = struct{}

// Configuration is how a plugin takes its config. Configured and ConfiguredFrom make it.
type Configuration struct {
	// schema is nil where no config is taken.
	schema   json.RawMessage
	doc      map[string]any
	compiled *unit.Schema
	// start is nil for the zero Configuration. config has its defaults and is true to the schema.
	start func(r *Registrar, config json.RawMessage) error
	err   error
}

// Configured takes the config as a C, and calls f with it once, when the plugin starts. f registers what depends on the config, and
// whatever comes and goes while the plugin runs. An error of f refuses the config; it may be a *ConfigError that says where.
//
// The schema of the config is made of C. A field is required unless it has omitempty or omitzero, or a default in its jsonschema tag,
// which is filled in. Unknown keys are refused.
func Configured[C any](f func(r *Registrar, config C) error) Configuration {
	return configured(nil, f)
}

// ConfiguredFrom is Configured with a default for every field: a config says what differs from defaults. Objects are filled in field
// by field; lists and everything else are replaced as a whole. Operators see the defaults in the schema.
func ConfiguredFrom[C any](defaults C, f func(r *Registrar, config C) error) Configuration {
	return configured(&defaults, f)
}

func configured[C any](defaults *C, f func(*Registrar, C) error) Configuration {
	c := Configuration{start: func(r *Registrar, raw json.RawMessage) error {
		var config C
		if path, reason := decodeAt("$", raw, &config); reason != "" {
			return &ConfigError{Problems: []ConfigProblem{{path, reason}}}
		}
		return f(r, config)
	}}
	if reflect.TypeFor[C]() == reflect.TypeFor[None]() {
		return c
	}
	raw, err := schemaOf[C]("", "config")
	if err == nil {
		err = decodeNumbers(raw, &c.doc)
	}
	if err == nil && (c.doc["type"] != "object" || reflect.TypeFor[C]().Kind() == reflect.Pointer) {
		err = &SchemaError{Role: "config", Type: reflect.TypeFor[C]().String(), Err: errors.New("a config is an object: use a struct")}
	}
	if err == nil {
		relax(c.doc)
		if defaults != nil {
			err = addDefaults(c.doc, *defaults)
		}
	}
	if err == nil {
		c.schema, err = json.Marshal(c.doc)
	}
	if err == nil {
		c.compiled, err = unit.CompileSchema(c.schema)
	}
	c.err = err
	return c
}

// accept fills the defaults in and holds the config against the schema. The digest tells configs apart that mean different things.
func (c *Configuration) accept(raw json.RawMessage) (full json.RawMessage, digest string, err error) {
	if c.schema == nil {
		if text := string(bytes.TrimSpace(raw)); text != "" && text != "{}" && text != "null" {
			return nil, "", &ConfigError{Problems: []ConfigProblem{{"$", "the plugin takes no config; leave it out"}}}
		}
		return json.RawMessage("{}"), digestOf([]byte("{}")), nil
	}
	if text := bytes.TrimSpace(raw); len(text) == 0 || string(text) == "null" {
		raw = json.RawMessage("{}")
	}
	if _, err := event.Compact(raw, "$"); err != nil {
		return nil, "", &ConfigError{Problems: mismatchProblems(c.compiled.Check(raw))}
	}
	full, err = fill(c.doc, c.doc, raw)
	if err != nil {
		return nil, "", fmt.Errorf("fill the defaults of the config in: %w", err)
	}
	if wrong := c.compiled.Check(full); len(wrong) > 0 {
		return nil, "", &ConfigError{Problems: mismatchProblems(wrong)}
	}
	return full, digestOf(full), nil
}

func digestOf(config []byte) string {
	// The order of keys means nothing.
	var v any
	if decodeNumbers(config, &v) == nil {
		if sorted, err := json.Marshal(v); err == nil {
			config = sorted
		}
	}
	sum := sha256.Sum256(config)
	return hex.EncodeToString(sum[:16])
}

func mismatchProblems(wrong []unit.Mismatch) []ConfigProblem {
	out := make([]ConfigProblem, len(wrong))
	for i, m := range wrong {
		out[i] = ConfigProblem{m.Path, m.Reason}
	}
	return out
}

// decodeNumbers decodes without rounding a number.
func decodeNumbers(raw []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(into)
}

// decodeAt decodes what a schema has passed. An empty reason is success. What fails here fits the schema and not the Go type, such as
// 1e30 for an int. Keys that the schema lets through and the type does not know are ignored.
func decodeAt(place string, raw json.RawMessage, into any) (path, reason string) {
	err := decode(raw, into)
	if t := (*jsonv1.UnmarshalTypeError)(nil); errors.As(err, &t) {
		return pathIn(raw, t.Field, place), misfit(t)
	}
	if err != nil {
		return place, err.Error()
	}
	return "", ""
}

// ConfigProblem is one thing that is wrong with a config.
type ConfigProblem struct {
	// Path is the place in the config, such as "$.limits.maxImages"; "$" is the whole.
	Path    string `json:"path"`
	Message string `json:"message"`
}

// ConfigError refuses a config.
type ConfigError struct{ Problems []ConfigProblem }

func (e *ConfigError) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.Path + ": " + p.Message
	}
	return "the config is refused: " + strings.Join(parts, "; ")
}

// BadConfig refuses a config for one reason, at a path such as "$.limits.maxImages".
func BadConfig(path, format string, args ...any) error {
	return &ConfigError{Problems: []ConfigProblem{{path, fmt.Sprintf(format, args...)}}}
}
