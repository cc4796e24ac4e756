package api

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
)

// callTool runs a tool. What its caller, a model, can put right is a result and no problem.
func (c *call) callTool() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	o, err := c.object(true, "arguments")
	if err != nil {
		return err
	}
	once, err := c.once(o.raw)
	if err != nil {
		return err
	}
	s, err := c.api.sessions.Open(c.r.Context(), c.r.PathValue("id"))
	if err != nil {
		return err
	}
	result, err := c.api.host.CallToolOnce(c.r.Context(), s, c.r.PathValue("name"), o.fields["arguments"], once)
	if err != nil {
		return err
	}
	var f fields
	f.raw("content", append(event.AppendString([]byte(`[{"type":"text","text":`), result.Text), "}]"...))
	if !result.IsError {
		f.raw("value", result.Value)
	}
	f.raw("isError", strconv.AppendBool(nil, result.IsError))
	f.raw("events", array(result.Events, func(dst []byte, ev event.Event) []byte {
		dst = strconv.AppendInt(append(dst, `{"seq":`...), ev.Seq, 10)
		return append(strconv.AppendInt(append(dst, `,"time":`...), ev.Time, 10), '}')
	}))
	return c.json(http.StatusOK, f.end())
}

// toolProblem is a tool that could not be called; nil for other errors.
func toolProblem(err error) *Problem {
	if e, ok := errors.AsType[*host.UnknownToolError](err); ok {
		return &Problem{Status: http.StatusNotFound, Code: CodeToolNotFound, Detail: e.Error()}
	}
	if e, ok := errors.AsType[*host.PluginUnavailableError](err); ok {
		return &Problem{Status: http.StatusServiceUnavailable, Code: CodePluginUnavailable, Detail: e.Error()}
	}
	if e, ok := errors.AsType[*host.ToolBrokenError](err); ok { // Whatever rule it broke, its caller did not.
		return &Problem{Status: http.StatusInternalServerError, Code: CodeInternal, Detail: e.Error()}
	}
	return nil
}
