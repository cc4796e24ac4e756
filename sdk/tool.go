package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// AnyTool is a tool that a plugin offers: a Tool, or a RawTool.
type AnyTool interface {
	// Definition checks the tool and returns it as the host takes it.
	Definition() (unit.Tool, error)
}

// RawTool is a tool that was written against the host's own contract, without the SDK.
type RawTool unit.Tool

// Definition checks the tool and returns it as it is.
func (t RawTool) Definition() (unit.Tool, error) {
	d := unit.Tool(t)
	if d.Call == nil {
		return d, &unit.ToolError{Name: d.Name, Rule: "call", Reason: "there is no Call; nothing would run"}
	}
	return d, unit.CheckTool(&d)
}

// When the log grows under a tool, by an event that a unit of its plugin folds, the host calls it again with newer values, or gives an
// error result. With RetryNever it also calls it once at most for a request with a key, whatever became of that.
const (
	RetryAuto  = unit.RetryAuto
	RetryNever = unit.RetryNever
)

// Tool is what a model can call on behalf of one session. Args is a struct; Result is the structured value, None where there is none.
//
// A tool reads nothing of the session but the values in Reads, and changes nothing of it but by events of types that its plugin owns.
type Tool[Args, Result any] struct {
	// Name is 1 to 64 characters out of [A-Za-z0-9_-].
	Name string
	// Description is for the model. It may depend on the config: make the tool in Configure then.
	Description string
	// Reads are keys of the plugin's own units whose values Call.Value gives.
	Reads []string
	// Retry is RetryAuto unless it is said to be RetryNever.
	Retry unit.Retry
	// Call runs the tool. The context ends when the caller gives up. An error is what the model is told, and nothing is appended then:
	// say what is wrong with the arguments and what would be right. It may be called concurrently, and more than once for one wish of
	// the model. A panic is an error result, with the stack in the log.
	Call func(ctx context.Context, call *Call, args Args) (Result, error)
	// ArgumentSchema and ResultSchema are JSON Schemas (2020-12) written by hand; nil makes them of the Go types. Those refuse unknown
	// keys.
	ArgumentSchema, ResultSchema json.RawMessage
}

// Definition checks the tool and returns it as the host takes it. Errors: *SchemaError, *unit.ToolError.
func (t Tool[Args, Result]) Definition() (unit.Tool, error) {
	def := unit.Tool{
		Name: t.Name, Description: t.Description, Reads: t.Reads, Retry: t.Retry,
		ArgumentSchema: t.ArgumentSchema, ResultSchema: t.ResultSchema,
	}
	if t.Call == nil {
		return def, &unit.ToolError{Name: t.Name, Rule: "call", Reason: "there is no Call; nothing would run"}
	}
	var err error
	if def.ArgumentSchema == nil {
		if def.ArgumentSchema, err = argumentSchema[Args](t.Name); err != nil {
			return def, err
		}
	}
	gives := reflect.TypeFor[Result]() != reflect.TypeFor[None]()
	if def.ResultSchema == nil && gives {
		if def.ResultSchema, err = schemaOf[Result]("", "result of tool "+t.Name); err != nil {
			return def, err
		}
	}
	call := t.Call
	def.Call = func(ctx context.Context, in unit.ToolCall) (unit.ToolResult, error) {
		var args Args
		if path, reason := decodeAt("$", in.Arguments, &args); reason != "" {
			return unit.ToolResult{}, &ArgumentError{Mismatches: []unit.Mismatch{{Path: path, Reason: reason}}}
		}
		c := &Call{in: in}
		result, err := call(ctx, c, args)
		switch {
		case err != nil:
			return unit.ToolResult{}, err
		case c.err != nil:
			return unit.ToolResult{}, c.err
		}
		out := unit.ToolResult{Text: c.text, Events: c.events}
		if gives {
			if out.Value, err = event.Encode(result); err != nil {
				return unit.ToolResult{}, fmt.Errorf("the tool's result: %w", err)
			}
			if out.Text == "" {
				out.Text = string(out.Value)
			}
		}
		return out, nil
	}
	return def, unit.CheckTool(&def)
}

// argumentSchema is that of a struct: models call tools with an object.
func argumentSchema[Args any](tool string) (json.RawMessage, error) {
	raw, err := schemaOf[Args]("", "arguments of tool "+tool)
	if err != nil {
		return nil, err
	}
	if t := reflect.TypeFor[Args](); t.Kind() != reflect.Struct || string(Lookup(raw, "type")) != `"object"` {
		return nil, &unit.ToolError{Name: tool, Rule: "argument-schema", Reason: fmt.Sprintf("the arguments are a %s; models call tools with an object: use a struct", t)}
	}
	return raw, nil
}

// Call is one call of a tool: the session as the tool sees it, and what it wants done. It belongs to the call and ends with it.
type Call struct {
	in     unit.ToolCall
	text   string
	events []unit.ToolEvent
	err    error
}

// Session is the session's id.
func (c *Call) Session() string { return c.in.Session }

// Seq is the head of the log at the cut that the tool sees; −1 on an empty log.
func (c *Call) Seq() int64 { return c.in.Seq }

// Value decodes the value of a unit that the tool Reads, as of Seq. It says false where the unit has none: it is not read, faulted,
// or not there yet.
func (c *Call) Value(key string, into any) (bool, error) {
	raw, ok := c.in.Values[key]
	if !ok {
		return false, nil
	}
	if err := decode(raw, into); err != nil {
		return false, fmt.Errorf("decode the value of %q: %w", key, err)
	}
	return true, nil
}

// Say is the text to show for the call. The last one counts; without one it is the result as JSON.
func (c *Call) Say(format string, args ...any) { c.text = fmt.Sprintf(format, args...) }

// Append adds an event, of a type that the plugin owns, to those that are appended when the call succeeds: all of them together or
// none, in this order. An event that is not so makes the call an error result; nothing need be checked here.
func (c *Call) Append(typ string, data any) {
	raw, err := event.Encode(data)
	if err != nil {
		c.err = errors.Join(c.err, fmt.Errorf("the event %s: %w", typ, err))
		return
	}
	c.events = append(c.events, unit.ToolEvent{Type: typ, Data: raw})
}
