package unit

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/foldhost/foldhost/event"
)

// MaxKeyBytes is the longest key: keys stand in URLs, file names and tables.
const MaxKeyBytes = 64

// Compiled is a valid definition with its schemas compiled: what a registry works with. Immutable, safe for concurrent use.
// Its Inline is guarded: a panic of the fold comes back as a *PanicError.
type Compiled struct {
	Definition
	// Digest covers the schemas, the event types and, where config-bound, the config's digest: the def of a row. The order
	// of event types and of keys within a schema does not change it.
	Digest string

	state *schema
	// view is nil for a host-only unit.
	view *schema
	// folds is nil when every type is folded.
	folds map[string]struct{}
}

// Compile checks a definition and compiles its schemas once. The error is a *DefinitionError and names the first wrong field in the
// order of Definition. A schema is at most MaxSchemaBytes, refers to nothing outside itself, and is simple enough to be checked in a
// time that its values are worth: no $dynamicRef, no number of more than 1,000 characters, no pattern that repeats without measure.
// $schema may name any published draft.
func Compile(d Definition) (*Compiled, error) {
	refuse := func(rule, format string, args ...any) (*Compiled, error) {
		return nil, &DefinitionError{Key: d.Key, Rule: rule, Reason: fmt.Sprintf(format, args...)}
	}
	if reason := wrongKey(d.Key); reason != "" {
		return refuse("key", "%s", reason)
	}
	if d.StateVersion < 0 || d.StateVersion > event.MaxInteger {
		return refuse("state-version", "stateVersion is %d; it must be from 0 to %d", d.StateVersion, int64(event.MaxInteger))
	}
	if d.StateSchema == nil {
		return refuse("state-schema", "there is none; a stored state must be checked before it is used")
	}
	state, err := compileSchema(d.StateSchema)
	if err != nil {
		return refuse("state-schema", "%v", err)
	}
	var view *schema
	if d.ViewSchema != nil {
		if view, err = compileSchema(d.ViewSchema); err != nil {
			return refuse("view-schema", "%v", err)
		}
	}
	if reason := wrongEvents(d.Events); reason != "" {
		return refuse("events", "%s", reason)
	}
	if d.ConfigBound && d.ConfigDigest == "" {
		return refuse("config", "the fold depends on the config and there is no digest of it; rows could not be told apart")
	}
	switch {
	case d.Inline == nil && d.Instance == nil:
		return refuse("fold", "neither Inline nor Instance is set; nothing could fold")
	case d.Inline != nil && d.Instance != nil:
		return refuse("fold", "Inline and Instance are both set; one of them must fold")
	}

	c := &Compiled{Definition: d, state: state, view: view}
	c.StateSchema, c.ViewSchema = state.text, nil
	if view != nil {
		c.ViewSchema = view.text
	}
	c.Events = slices.Clone(d.Events)
	if d.Events != nil {
		c.folds = make(map[string]struct{}, len(d.Events))
		for _, typ := range d.Events {
			c.folds[typ] = struct{}{}
		}
	}
	if d.Inline != nil {
		c.Inline = Guard(d.Inline)
	}
	c.Digest = digest(c)
	return c, nil
}

// Folds says whether the unit folds events of the type. It allocates nothing.
func (c *Compiled) Folds(typ string) bool {
	if c.folds == nil {
		return true
	}
	_, ok := c.folds[typ]
	return ok
}

// HostOnly says that the unit has no view: it is checkpointed and never served.
func (c *Compiled) HostOnly() bool { return c.view == nil }

func wrongKey(key string) string {
	if key == "" {
		return "the key is empty; it must be 1 to 64 characters out of [A-Za-z0-9._/-]"
	}
	if len(key) > MaxKeyBytes {
		return fmt.Sprintf("the key is %d bytes long; at most %d are allowed", len(key), MaxKeyBytes)
	}
	for i, r := range key {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		case r == '.', r == '_', r == '/', r == '-':
		default:
			return fmt.Sprintf("the key has %q at byte %d; only [A-Za-z0-9._/-] are allowed", r, i)
		}
	}
	return ""
}

// wrongEvents also refuses the empty type: no plugin can mean it, and a list with a hole in it is a mistake.
func wrongEvents(types []string) string {
	seen := make(map[string]int, len(types))
	for i, typ := range types {
		if typ == "" {
			return fmt.Sprintf("events[%d] is empty; name a type, or leave the list out to fold every type", i)
		}
		if !utf8.ValidString(typ) {
			return fmt.Sprintf("events[%d] is not valid UTF-8; no event has such a type", i)
		}
		if first, ok := seen[typ]; ok {
			return fmt.Sprintf("events[%d] names %q, as events[%d] does; name each type once", i, typ, first)
		}
		seen[typ] = i
	}
	return ""
}

// DefinitionError is one reason why a definition is refused.
type DefinitionError struct {
	Key string
	// Rule names the reason: "key", "state-version", "state-schema", "view-schema", "events", "fold", "config".
	Rule   string
	Reason string
}

func (e *DefinitionError) Error() string {
	return fmt.Sprintf("unit %q refused (%s): %s", e.Key, e.Rule, e.Reason)
}
