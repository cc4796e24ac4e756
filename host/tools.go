package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/unit"
)

// tools says which tool of which plugin serves under a name. Immutable.
type tools struct{ byName map[string]*servedTool }

// servedTool is a tool with its plugin, and what decides whether its values were overtaken.
type servedTool struct {
	*life.Tool
	plugin string
	state  func() PluginState
	// folds are the event types that units of the plugin fold; nil is every type.
	folds []string
}

// newTools gives each name to the first plugin that offers it.
func newTools(all []serving) *tools {
	t := &tools{byName: map[string]*servedTool{}}
	for _, s := range all {
		folds := []string{}
		for _, u := range s.Units {
			if u.Events == nil {
				folds = nil
				break
			}
			folds = append(folds, u.Events...)
		}
		for j := range s.Tools {
			tool := &s.Tools[j]
			if t.byName[tool.Name] == nil {
				t.byName[tool.Name] = &servedTool{tool, s.Name, s.now, folds}
			}
		}
	}
	return t
}

func (t *tools) find(name string) *servedTool { return t.byName[name] }

// ToolResult is what a call of a tool gave.
type ToolResult struct {
	// Text is what to show; for an error result, what went wrong.
	Text string
	// Value is JSON true to the tool's result schema, without white space; nil where the tool has none, and in an error result.
	Value json.RawMessage
	// IsError says that the tool did not do what it was asked for, or that it is not known whether it did. Nothing was appended then.
	IsError bool
	// Events are what was appended, as logged.
	Events []event.Event
}

// UnknownToolError: no plugin of the session's set offers a tool of this name. Preset is empty for the default set.
type UnknownToolError struct{ Name, Preset string }

func (e *UnknownToolError) Error() string {
	if e.Preset != "" {
		return fmt.Sprintf("no plugin of preset %q offers a tool %q", e.Preset, e.Name)
	}
	return fmt.Sprintf("no plugin offers a tool %q", e.Name)
}

// PluginUnavailableError: the plugin cannot be asked now. Nothing was appended.
type PluginUnavailableError struct {
	Plugin string
	State  PluginState
	Err    error
}

func (e *PluginUnavailableError) Error() string {
	return fmt.Sprintf("plugin %q does not answer (%s): %v", e.Plugin, e.State, e.Err)
}
func (e *PluginUnavailableError) Unwrap() error { return e.Err }

// ToolBrokenError: a tool gave back what it must not give. Nothing was appended.
type ToolBrokenError struct{ Plugin, Tool, Reason string }

func (e *ToolBrokenError) Error() string {
	return fmt.Sprintf("tool %q of plugin %q broke its contract: %s", e.Tool, e.Plugin, e.Reason)
}

// maxAsks is how often a tool is asked when its values were overtaken. Three: who loses three times in a row is in a race that a fourth time does
// not end.
const maxAsks = 3

// CallTool runs a tool for a session: it sees the values of its plugin's units as of one cut, and the events that it gives back are appended
// together, unless an event that its plugin's units fold came in between. Then it is asked again with newer values.
//
// What a caller can put right is no error but a result with IsError: wrong arguments, a tool that refuses, values that are overtaken again and
// again. Errors: *UnknownToolError, *PluginUnavailableError, *ToolBrokenError, those of Snapshot and of session.AppendBatch, ctx's.
func (h *Host) CallTool(ctx context.Context, s *session.Session, name string, arguments json.RawMessage) (ToolResult, error) {
	result, _, err := h.callTool(ctx, s, name, arguments, session.Once{})
	return result, err
}

// callTool is CallTool for a request that may have a key. outrun says that the values of the tool were overtaken each time, so that the same call may go well another time.
func (h *Host) callTool(ctx context.Context, s *session.Session, name string, arguments json.RawMessage, once session.Once) (result ToolResult, outrun bool, err error) {
	tool := h.plugins.tableOf(s).tools.find(name)
	if tool == nil {
		return ToolResult{}, false, &UnknownToolError{name, h.plugins.set(setOf(s.Header()))}
	}
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	if wrong := tool.Arguments.Check(arguments); len(wrong) > 0 {
		return ToolResult{IsError: true, Text: "The arguments are wrong: " + mismatches(wrong)}, false, nil
	}
	c := toolCall{host: h, session: s, tool: tool, arguments: arguments, once: once}
	for asked := 1; ; asked++ {
		result, overtaken, err := c.ask(ctx)
		switch {
		case err != nil && c.marked:
			result, err := c.lost(ctx, err)
			return result, false, err
		case err != nil || !overtaken:
			return result, false, err
		case tool.Retry == unit.RetryNever:
			// It has run, and does not run again: this is what the call came to.
			return ToolResult{IsError: true, Text: "The session changed while the tool ran, and nothing was appended. Look at the new state and decide again."}, false, nil
		case asked == maxAsks:
			return ToolResult{IsError: true, Text: "The session changes faster than the tool can answer, and nothing was done. Try again."}, true, nil
		}
	}
}

// toolCall is one call under way.
type toolCall struct {
	host      *Host
	session   *session.Session
	tool      *servedTool
	arguments json.RawMessage
	// once is the key under which the result is kept; empty is none.
	once session.Once
	// marked says that the log's store knows that the tool was asked.
	marked bool
}

// ask asks the tool once. overtaken says that nothing was appended because its values are old.
func (c *toolCall) ask(ctx context.Context) (result ToolResult, overtaken bool, err error) {
	call := unit.ToolCall{Session: c.session.ID(), Arguments: c.arguments, Values: map[string]json.RawMessage{}}
	if call.Seq, err = c.cut(ctx, call.Values); err != nil {
		return ToolResult{}, false, err
	}
	if err := c.mark(ctx); err != nil {
		return ToolResult{}, false, err
	}
	said, err := c.tool.Call(ctx, call)
	if err != nil {
		result, err := c.failed(ctx, err)
		return result, false, err
	}
	if err := c.check(&said); err != nil {
		return ToolResult{}, false, err
	}
	result = ToolResult{Text: said.Text, Value: said.Value}
	if len(said.Events) > 0 {
		overtaken, err = c.append(ctx, call.Seq, said.Events, &result)
	}
	if err != nil {
		return ToolResult{}, false, err
	}
	return result, overtaken, nil
}

// cut fixes the seq that the tool sees, with the values of that seq.
func (c *toolCall) cut(ctx context.Context, values map[string]json.RawMessage) (int64, error) {
	if len(c.tool.Reads) == 0 {
		info, err := c.session.Info(ctx)
		return info.Seq - 1, err
	}
	block, err := c.host.Snapshot(ctx, c.session, c.tool.Reads...)
	if err != nil {
		return 0, err
	}
	for key, view := range block.Values {
		values[key] = view
	}
	return block.AsOfSeq, nil
}

// failed makes a result of an error, where it is the tool's own.
func (c *toolCall) failed(ctx context.Context, err error) (ToolResult, error) {
	var refused *life.FailureError
	var gone *unit.GoneError
	var late *unit.DeadlineError
	plugin := c.tool.plugin
	switch {
	case errors.As(err, &refused):
		return ToolResult{IsError: true, Text: refused.Message}, nil
	case ctx.Err() != nil:
		return ToolResult{}, ctx.Err()
	case errors.As(err, &gone), errors.As(err, &late):
		return ToolResult{}, &PluginUnavailableError{Plugin: plugin, State: c.tool.state(), Err: err}
	}
	return ToolResult{}, &ToolBrokenError{Plugin: plugin, Tool: c.tool.Name, Reason: err.Error()}
}

// check says what a tool must not give back.
func (c *toolCall) check(r *unit.ToolResult) error {
	plugin := c.tool.plugin
	broken := func(format string, args ...any) error {
		return &ToolBrokenError{Plugin: plugin, Tool: c.tool.Name, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case c.tool.Result == nil && r.Value != nil:
		return broken("it gives a value and has no result schema")
	case c.tool.Result != nil && r.Value == nil:
		return broken("it has a result schema and gives no value")
	case c.tool.Result != nil:
		if wrong := c.tool.Result.Check(r.Value); len(wrong) > 0 {
			return broken("its value is not what its result schema says: %s", mismatches(wrong))
		}
		var err error
		if r.Value, err = event.Compact(r.Value, "$"); err != nil {
			return broken("its value: %v", err)
		}
	}
	owners := c.host.plugins.tableOf(c.session).owners
	for i, e := range r.Events {
		owner, owned := owners.byType[e.Type]
		if !owned || owner.plugin != plugin {
			return broken("events[%d] is of type %q, which its plugin does not own", i, e.Type)
		}
		if wrong := owner.schema.Check(e.Data); len(wrong) > 0 {
			return broken("events[%d], of type %q: %s", i, e.Type, mismatches(wrong))
		}
	}
	return nil
}

// append appends what the tool gave, and says in its result where that went, unless the log has grown since seq by something that its plugin folds.
func (c *toolCall) append(ctx context.Context, seq int64, events []unit.ToolEvent, result *ToolResult) (overtaken bool, err error) {
	batch := session.Batch{Items: make([]session.Item, len(events)), Alone: true} // checkCut looks at the log
	if c.once.Key != "" {
		batch.Once, batch.Answer = c.once, result.keep()
	}
	for i, e := range events {
		batch.Items[i] = session.Item{Type: e.Type, Data: e.Data, Ignorable: e.Ignorable}
	}
	commit, logged, err := c.session.AppendBatch(context.WithValue(ctx, cutKey{}, &cut{store: c.host.store, seq: seq, folds: c.tool.folds}), batch)
	var veto *session.VetoError
	var wrong *event.Error
	switch {
	case errors.Is(err, errOvertaken):
		return true, nil
	case !errors.As(err, &veto) && errors.As(err, &wrong):
		// No log takes such an event, as one that is too large.
		return false, &ToolBrokenError{Plugin: c.tool.plugin, Tool: c.tool.Name, Reason: err.Error()}
	case err == nil && commit.Repeated:
		// The same request was committed after all, since it was looked for: what the tool said now is of no account.
		a, _, err := c.session.Answered(ctx, c.once)
		*result, err = resultOf(a, err)
		return false, err
	}
	result.Events = logged
	return false, err
}

// cut goes with the append of what a tool gave, and is checked where nothing can come in between: in the hook before the commit. A condition on
// the next seq would lose against any busy session, whatever it appends.
type cut struct {
	store eventlog.Store
	seq   int64
	// folds are the event types that must not have come since; nil is every type.
	folds []string
}

type cutKey struct{}

// errOvertaken: an event that the tool's plugin folds was committed after the cut.
var errOvertaken = errors.New("the values that the tool saw were overtaken")

// checkCut is asked before each commit.
func checkCut(ctx context.Context, s *session.Session, events []event.Event) error {
	c, is := ctx.Value(cutKey{}).(*cut)
	if !is || len(events) == 0 || events[0].Seq == c.seq+1 {
		return nil
	}
	for _, err := range eventlog.Scan(ctx, c.store, eventlog.Query{Life: lifeOf(s), From: c.seq + 1, To: events[0].Seq, Types: c.folds}) {
		if err != nil {
			return err
		}
		return errOvertaken
	}
	return nil
}

func mismatches(all []unit.Mismatch) string {
	texts := make([]string, len(all))
	for i, m := range all {
		texts[i] = m.String()
	}
	return strings.Join(texts, "; ")
}

// Tools lists the tools that sessions of the default set can call, sorted by name; one that another shadows is not among them. What a preset has
// stands in PresetPlugins.
func (h *Host) Tools() []PluginTool {
	var all []PluginTool
	for _, t := range h.plugins.tables.Load().standard.tools.byName {
		all = append(all, toolOf(t.Tool))
	}
	slices.SortFunc(all, func(a, b PluginTool) int { return strings.Compare(a.Name, b.Name) })
	return all
}
