package life

import (
	"fmt"
	"slices"

	"github.com/foldhost/foldhost/internal/foldwire"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// Set is what a plugin offers at one time. Immutable.
type Set struct {
	// Units have the instance and the digest of the config set.
	Units []unit.Definition
	Tools []Tool
	// Refused are those that cannot be; the others serve.
	Refused []Refusal
}

// Tool is a tool with its schemas compiled. Its Call goes to the process.
type Tool struct {
	unit.Tool
	// Down says without asking it that the process is gone, with a *unit.GoneError; nil for a tool of this process.
	Down      func() error
	Arguments *Schema
	// Result is nil for a tool without a structured value.
	Result *Schema
}

// Refusal is something that a plugin offers and does not get.
type Refusal struct {
	// What is "unit", "tool" or "event type".
	What, Name string
	Err        error
}

func (r Refusal) String() string { return fmt.Sprintf("%s %q: %v", r.What, r.Name, r.Err) }

// maxOffers bounds the units and the tools of one plugin: each unit is a cell in every session.
const maxOffers = 1000

// readSet reads a registration set. The error is a *foldwire.ProtocolError.
func (l *Life) readSet(m *pluginproto.RegistrationSet) (*Set, error) {
	if n := max(len(m.Units), len(m.Tools)); n > maxOffers {
		return nil, &foldwire.ProtocolError{Message: "RegistrationSet", Field: "units", Reason: fmt.Sprintf("%d are offered; at most %d are allowed", n, maxOffers)}
	}
	s := &Set{}
	keys := map[string]bool{}
	for _, u := range m.Units {
		def, err := foldwire.ReadUnit(u)
		if err != nil {
			s.Refused = append(s.Refused, Refusal{"unit", u.GetKey(), err})
			continue
		}
		def.Instance = l.Instance
		if def.ConfigBound || l.spec.Config != nil {
			def.ConfigDigest = ConfigDigest(l.spec.Config)
		}
		if keys[def.Key] {
			s.Refused = append(s.Refused, Refusal{"unit", def.Key, &unit.DefinitionError{Key: def.Key, Rule: "key", Reason: "it is offered twice; the first one counts"}})
			continue
		}
		if _, err := unit.Compile(def); err != nil {
			s.Refused = append(s.Refused, Refusal{"unit", def.Key, err})
			continue
		}
		keys[def.Key] = true
		s.Units = append(s.Units, def)
	}
	names := map[string]bool{}
	for _, t := range m.Tools {
		tool, err := l.readTool(t, keys)
		if err == nil && names[tool.Name] {
			err = &unit.ToolError{Name: tool.Name, Rule: "name", Reason: "it is offered twice; the first one counts"}
		}
		if err != nil {
			s.Refused = append(s.Refused, Refusal{"tool", t.GetName(), err})
			continue
		}
		names[tool.Name] = true
		s.Tools = append(s.Tools, tool)
	}
	return s, nil
}

// readTool reads one tool. The error is a *unit.ToolError.
func (l *Life) readTool(m *pluginproto.Tool, keys map[string]bool) (Tool, error) {
	t := Tool{Tool: unit.Tool{Name: m.GetName(), Description: m.GetDescription(), ArgumentSchema: absent(m.GetArgumentSchema()),
		ResultSchema: absent(m.GetResultSchema()), Reads: m.GetReads()}}
	switch m.GetRetry() {
	case pluginproto.Retry_RETRY_AUTO:
		t.Retry = unit.RetryAuto
	case pluginproto.Retry_RETRY_NEVER:
		t.Retry = unit.RetryNever
	default:
		t.Retry = unit.RetryNever + 1 // CheckTool refuses it.
	}
	var err error
	if t, err = NewTool(t.Tool, keys); err != nil {
		return t, err
	}
	name := t.Name
	t.Call, t.Down = l.caller(name), l.down
	return t, nil
}

// NewTool compiles a tool of a plugin with these units. The error is a *unit.ToolError.
func NewTool(t unit.Tool, keys map[string]bool) (Tool, error) {
	tool := Tool{Tool: t}
	if err := unit.CheckTool(&t); err != nil {
		return tool, err
	}
	if i := slices.IndexFunc(t.Reads, func(key string) bool { return !keys[key] }); i >= 0 {
		return tool, &unit.ToolError{Name: t.Name, Rule: "reads", Reason: fmt.Sprintf("it reads %q, which is no unit of its plugin", t.Reads[i])}
	}
	tool.Arguments, _ = compile(t.ArgumentSchema) // CheckTool has compiled both.
	tool.Result, _ = compile(t.ResultSchema)
	return tool, nil
}

func absent(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
