package life

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foldhost/foldhost/host/internal/remote"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// FailureError is a tool that could not do what it was asked for, in its own words.
type FailureError struct{ Message string }

func (e *FailureError) Error() string { return e.Message }

// caller makes the Call of a tool. Errors: *FailureError, *unit.GoneError, *unit.DeadlineError, *remote.BrokenError, that of ctx.
func (l *Life) caller(name string) func(context.Context, unit.ToolCall) (unit.ToolResult, error) {
	return func(ctx context.Context, c unit.ToolCall) (unit.ToolResult, error) {
		m := &pluginproto.CallToolRequest{Tool: name, Session: c.Session, Arguments: c.Arguments, Seq: c.Seq}
		for key, view := range c.Values {
			m.Values = append(m.Values, &pluginproto.UnitValue{Key: key, View: view})
		}
		slices.SortFunc(m.Values, func(a, b *pluginproto.UnitValue) int { return strings.Compare(a.Key, b.Key) })
		bounded, cancel := context.WithTimeout(ctx, l.limits.Tool)
		defer cancel()
		answer, err := l.client.CallTool(bounded, m)
		if err != nil {
			return unit.ToolResult{}, l.callFailed(ctx, err)
		}
		switch o := answer.Outcome.(type) {
		case *pluginproto.CallToolResponse_Success:
			return readSuccess(o.Success)
		case *pluginproto.CallToolResponse_Failure:
			message := o.Failure.GetMessage()
			if len(message) > unit.MaxToolText {
				message = strings.ToValidUTF8(message[:unit.MaxToolText], "")
			}
			return unit.ToolResult{}, &FailureError{message}
		}
		return unit.ToolResult{}, &remote.BrokenError{Reason: "a tool gave neither success nor failure"}
	}
}

func (l *Life) callFailed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch status.Code(err) {
	case codes.DeadlineExceeded:
		return &unit.DeadlineError{Reason: fmt.Sprintf("the tool did not end within %v", l.limits.Tool)}
	case codes.Unavailable, codes.Canceled:
		if why := l.obituary(true); why != "" { // For those who administer the host; others are told that it does not answer.
			return &unit.GoneError{Reason: why}
		}
		return &unit.GoneError{Reason: "the connection to it broke"}
	}
	return &remote.BrokenError{Reason: plain(err).Error(), Err: err}
}

// down says why the process cannot be asked; nil as long as nothing says that it is gone.
func (l *Life) down() error {
	select {
	case <-l.Process.Exited():
		return &unit.GoneError{Reason: l.Obituary()}
	case <-l.ctx.Done():
		return &unit.GoneError{Reason: "it has ended"}
	default:
		return nil
	}
}

func readSuccess(m *pluginproto.ToolSuccess) (unit.ToolResult, error) {
	r := unit.ToolResult{Text: m.GetText(), Value: absent(m.GetValue())}
	if len(r.Text) > unit.MaxToolText {
		return r, &remote.BrokenError{Reason: fmt.Sprintf("a tool's text has %d bytes; at most %d are allowed", len(r.Text), unit.MaxToolText)}
	}
	if n := len(m.GetEvents()); n > unit.MaxToolEvents {
		return r, &remote.BrokenError{Reason: fmt.Sprintf("a tool gave %d events; at most %d are allowed", n, unit.MaxToolEvents)}
	}
	for i, e := range m.GetEvents() {
		if e.GetType() == "" || len(e.GetData()) == 0 {
			return r, &remote.BrokenError{Reason: fmt.Sprintf("a tool's events[%d] has no type or no data", i)}
		}
		r.Events = append(r.Events, unit.ToolEvent{Type: e.Type, Data: e.Data, Ignorable: e.Ignorable})
	}
	return r, nil
}
