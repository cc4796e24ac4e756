package sdk

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/foldhost/foldhost/unit"
)

// guardTool returns the same tool with its arguments, result and events checked and its panics contained. The host checks them too; here
// it is known whose mistake each is. What a model did wrong it is told in full; what the author did wrong is in the log as well.
func guardTool(t unit.Tool, owned map[string]*unit.Schema, logger hclog.Logger) (unit.Tool, error) {
	arguments, err := unit.CompileSchema(t.ArgumentSchema)
	if err != nil {
		return t, err
	}
	var result *unit.Schema
	if t.ResultSchema != nil {
		if result, err = unit.CompileSchema(t.ResultSchema); err != nil {
			return t, err
		}
	}
	call := containTool(t.Call, logger)
	t.Call = func(ctx context.Context, in unit.ToolCall) (unit.ToolResult, error) {
		if wrong := arguments.Check(in.Arguments); len(wrong) > 0 {
			return unit.ToolResult{}, &ArgumentError{Mismatches: wrong}
		}
		out, err := call(ctx, in)
		if err != nil {
			return unit.ToolResult{}, err
		}
		if err := checkResult(&out, result, owned); err != nil {
			logger.Error("the tool gave what it must not give", "reason", err.Error())
			return unit.ToolResult{}, err
		}
		return out, nil
	}
	return t, nil
}

// maxPanicText bounds what a panic says for itself: the text goes to a model.
const maxPanicText = 512

type toolFunc = func(context.Context, unit.ToolCall) (unit.ToolResult, error)

func containTool(call toolFunc, logger hclog.Logger) toolFunc {
	return func(ctx context.Context, in unit.ToolCall) (out unit.ToolResult, err error) {
		defer func() {
			if v := recover(); v != nil {
				p := &unit.PanicError{Call: "the tool", Value: fmt.Sprintf("%.*s", maxPanicText, fmt.Sprint(v)), Stack: debug.Stack()}
				logger.Error(p.Error(), "session", in.Session, "stack", string(p.Stack))
				out, err = unit.ToolResult{}, p
			}
		}()
		return call(ctx, in)
	}
}

func checkResult(out *unit.ToolResult, result *unit.Schema, owned map[string]*unit.Schema) error {
	switch {
	case len(out.Text) > unit.MaxToolText:
		return fmt.Errorf("the tool's text has %d bytes; at most %d are allowed", len(out.Text), unit.MaxToolText)
	case len(out.Events) > unit.MaxToolEvents:
		return fmt.Errorf("the tool gave %d events; at most %d are allowed in one call", len(out.Events), unit.MaxToolEvents)
	case result == nil && out.Value != nil:
		return errors.New("the tool gave a structured value and has no result schema")
	case result != nil && out.Value == nil:
		return errors.New("the tool gave no structured value")
	case result != nil:
		if wrong := result.Check(out.Value); len(wrong) > 0 {
			return fmt.Errorf("the tool's result is not what its schema says: %v", wrong[0])
		}
	}
	for i, e := range out.Events {
		schema, ok := owned[e.Type]
		if !ok {
			return fmt.Errorf("event %d has the type %q, which the plugin does not own: list it in Owns", i, e.Type)
		}
		if schema == nil {
			continue
		}
		if wrong := schema.Check(e.Data); len(wrong) > 0 {
			return fmt.Errorf("event %d, %s, is not what the plugin says it is: %v", i, e.Type, wrong[0])
		}
	}
	return nil
}

// ArgumentError refuses the arguments of a tool.
type ArgumentError struct{ Mismatches []unit.Mismatch }

func (e *ArgumentError) Error() string {
	parts := make([]string, len(e.Mismatches))
	for i, m := range e.Mismatches {
		parts[i] = m.String()
	}
	return "the arguments are wrong: " + strings.Join(parts, "; ")
}
