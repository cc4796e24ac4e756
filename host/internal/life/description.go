package life

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"google.golang.org/protobuf/proto"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// Description is what a plugin says about itself. Immutable.
type Description struct {
	// Name is its own name for itself; the operator's is that of the file.
	Name, Version, Summary, BuiltWith string
	// Config is nil for a plugin that takes no config.
	Config *Schema
	// Owned are its event types, as it lists them.
	Owned []Owned
	// Raw is the answer that it was read from, encoded.
	Raw []byte
}

// Owned is an event type that belongs to a plugin. Schema is nil where any data will do.
type Owned struct {
	Type   string
	Schema *Schema
}

// Schema is a compiled schema with its text.
type Schema struct {
	*unit.Schema
	Text json.RawMessage
}

func compile(text []byte) (*Schema, error) {
	if len(text) == 0 {
		return nil, nil
	}
	s, err := unit.CompileSchema(text)
	if err != nil {
		return nil, err
	}
	return &Schema{s, text}, nil
}

// Check is unit.Schema.Check; a nil schema takes everything that is JSON.
func (s *Schema) Check(value json.RawMessage) []unit.Mismatch {
	if s == nil {
		err := event.CheckLossless(value, "$")
		if err == nil {
			return nil
		}
		wrong := unit.Mismatch{Path: "$", Reason: err.Error()}
		if at := (*event.Error)(nil); errors.As(err, &at) {
			wrong.Path, wrong.Reason = at.Path, at.Reason
		}
		return []unit.Mismatch{wrong}
	}
	return s.Schema.Check(value)
}

// maxLine bounds what a plugin says about itself in one line.
const maxLine = 500

// maxOwned bounds the event types of one plugin: each append looks them up, and a description is kept for as long as the host runs.
const maxOwned = 1000

// DescriptionError is a description that cannot be used.
type DescriptionError struct{ Field, Reason string }

func (e *DescriptionError) Error() string {
	return fmt.Sprintf("its description is wrong at %s: %s", e.Field, e.Reason)
}

// DecodeDescription reads a description that was kept. The error says that it cannot be used.
func DecodeDescription(raw []byte) (*Description, error) {
	m := &pluginproto.DescribeResponse{}
	if err := proto.Unmarshal(raw, m); err != nil {
		return nil, err
	}
	return ReadDescription(m)
}

// ReadDescription reads what a plugin answered. The error is a *DescriptionError.
func ReadDescription(m *pluginproto.DescribeResponse) (*Description, error) {
	raw, err := proto.Marshal(m)
	if err != nil {
		return nil, &DescriptionError{"", err.Error()}
	}
	d := &Description{Raw: raw, Name: line(m.Name), Version: line(m.Version), Summary: line(m.Summary), BuiltWith: line(m.BuiltWith)}
	if d.Config, err = compile(m.ConfigSchema); err != nil {
		return nil, &DescriptionError{"config_schema", err.Error()}
	}
	if len(m.OwnedEvents) > maxOwned {
		return nil, &DescriptionError{"owned_events", fmt.Sprintf("has %d types; at most %d are allowed", len(m.OwnedEvents), maxOwned)}
	}
	seen := map[string]bool{}
	for i, o := range m.OwnedEvents {
		field, typ := fmt.Sprintf("owned_events[%d]", i), o.GetType()
		switch {
		case typ == "":
			return nil, &DescriptionError{field, "names no type"}
		case seen[typ]:
			return nil, &DescriptionError{field, fmt.Sprintf("names %q once more", typ)}
		case isCore(typ):
			return nil, &DescriptionError{field, fmt.Sprintf("claims %q, which belongs to the core", typ)}
		}
		seen[typ] = true
		s, err := compile(o.DataSchema)
		if err != nil {
			return nil, &DescriptionError{fmt.Sprintf("%s.data_schema, of %q", field, typ), err.Error()}
		}
		d.Owned = append(d.Owned, Owned{typ, s})
	}
	return d, nil
}

// isCore says whether a type means something to the core: nobody can own what everybody appends.
func isCore(typ string) bool {
	switch typ {
	case event.TurnStart, event.TurnEnd, event.StepStart, event.StepEnd, event.UserMessage, event.AssistantMessage, event.AssistantChunk,
		event.ToolCall, event.ToolResult, event.RequestHeader, event.RequestContext, event.EndSeed:
		return true
	}
	return false
}

// line makes one line for people of what somebody else wrote.
func line(s string) string {
	if len(s) > maxLine {
		s = strings.ToValidUTF8(s[:maxLine], "") + " …"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}
