package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/unit"
)

// CallToolOnce is CallTool for a request with a key: a result, also one that says that the tool refuses, is kept in the log's store together with what was appended, and the same
// request gets it again, whatever has become of the plugin. Of twins that come at once one calls the tool and the other waits. After an error nothing is kept, nor of a call that the session outran. Who dies between
// the tool's answer and the commit has called it in vain; it is called again.
//
// A tool with unit.RetryNever is not: that it is asked is kept before it is, in a commit of its own. Where its plugin then ends, is late or breaks its contract, the result says that it is not known whether it was done,
// and is kept; where the host ends, the caller leaves or the store fails, every repeat gets such a result. That the session changed is kept as well. Only a call that did not come to its plugin leaves nothing.
//
// Errors are those of CallTool and *eventlog.KeyReusedError.
func (h *Host) CallToolOnce(ctx context.Context, s *session.Session, name string, arguments json.RawMessage, once session.Once) (ToolResult, error) {
	if once.Key == "" {
		return h.CallTool(ctx, s, name, arguments)
	}
	leave, err := h.calls.enter(ctx, callKey{s.ID(), s.Incarnation(), once.Key})
	if err != nil {
		return ToolResult{}, err
	}
	defer leave()
	if a, known, err := s.Answered(ctx, once); known || err != nil {
		return resultOf(a, err)
	}
	if known, err := wasAsked(ctx, s, once); known || err != nil {
		return unknown("what came of it was lost as the host ended, the caller left or the store failed"), err
	}
	result, outrun, err := h.callTool(ctx, s, name, arguments, once)
	if err != nil || outrun || len(result.Events) > 0 { // which were committed with it
		return result, err
	}
	// A caller who leaves now asks again.
	return resultOf(s.Answer(context.WithoutCancel(ctx), once, result.keep()))
}

// asked is the key that says that a tool which must not run twice was asked. No request has such a key, since there are no spaces in theirs.
func asked(once session.Once) session.Once {
	return session.Once{Key: once.Key + " asked", Digest: once.Digest}
}

// wasAsked says whether a tool that must not run twice was asked for a request, which has no answer.
func wasAsked(ctx context.Context, s *session.Session, once session.Once) (known bool, err error) {
	_, known, err = s.Committed(ctx, asked(once))
	if reused, ok := errors.AsType[*eventlog.KeyReusedError](err); ok {
		err = &eventlog.KeyReusedError{ID: reused.ID, Key: once.Key}
	}
	return known, err
}

// mark keeps that the tool is asked, where it must not run twice, unless its plugin is known to be down. A plugin that ends from here on may have seen the call.
func (c *toolCall) mark(ctx context.Context) error {
	if c.once.Key == "" || c.tool.Retry != unit.RetryNever {
		return nil
	}
	if c.tool.Down != nil {
		if err := c.tool.Down(); err != nil {
			return &PluginUnavailableError{Plugin: c.tool.plugin, State: c.tool.state(), Err: err}
		}
	}
	if err := c.session.Claim(ctx, asked(c.once)); err != nil {
		return err
	}
	c.marked = true
	return nil
}

// lost makes a result of an error after which nobody knows what a tool that must not run twice has done. Other errors stay what they are, and the mark answers for them.
func (c *toolCall) lost(ctx context.Context, err error) (ToolResult, error) {
	var why string
	var late *unit.DeadlineError
	down, isDown := errors.AsType[*PluginUnavailableError](err)
	_, isBroken := errors.AsType[*ToolBrokenError](err)
	switch {
	case isDown && errors.As(down, &late):
		why = "the tool did not answer in time"
	case isDown:
		why = "the plugin of the tool ended while it ran"
	case isBroken:
		why = "the tool broke its contract"
	default:
		return ToolResult{}, err
	}
	c.host.logger.WarnContext(ctx, "it is not known what a tool has done that must not run twice", "session", c.session.ID(), "plugin", c.tool.plugin, "tool", c.tool.Name, "error", err)
	return unknown(why), nil
}

// unknown is the result of a call of which nobody knows what it came to.
func unknown(why string) ToolResult {
	return ToolResult{IsError: true, Text: fmt.Sprintf("It is not known whether this was done: %s. Nothing was appended. The tool must not run twice, and is not called again for this call. Look at the state and decide.", why)}
}

// maxKept is how long the result of a tool may be to be kept: 1 MiB. At least 1,000 of a session are, and whoever reads such a text has read it by then.
const maxKept = 1 << 20

// kept is a result as it is kept. What was appended stands in the log.
type kept struct {
	Text    string          `json:"text"`
	Value   json.RawMessage `json:"value"`
	IsError bool            `json:"isError"`
}

// keep gives what is kept of a result.
func (r *ToolResult) keep() string {
	if size := len(r.Text) + len(r.Value); size > maxKept {
		return (&ToolResult{IsError: r.IsError, Text: fmt.Sprintf("This call was carried out before. What the tool said then has %d bytes, too many to be kept.", size)}).keep()
	}
	dst := event.AppendString([]byte(`{"text":`), r.Text)
	if r.Value != nil {
		dst = append(append(dst, `,"value":`...), r.Value...)
	}
	return string(append(strconv.AppendBool(append(dst, `,"isError":`...), r.IsError), '}'))
}

// resultOf is the result that was kept.
func resultOf(a session.Answered, err error) (ToolResult, error) {
	if err != nil {
		return ToolResult{}, err
	}
	var k kept
	if err := json.Unmarshal([]byte(a.Answer), &k); err != nil {
		return ToolResult{}, fmt.Errorf("read the result that was kept of a tool's call: %w", err)
	}
	return ToolResult{Text: k.Text, Value: k.Value, IsError: k.IsError, Events: a.Events}, nil
}

// callKey is a key in one life of a session.
type callKey struct{ session, incarnation, key string }

// calls are the calls with a key that are under way. mu guards byKey, and is held for no longer than a look.
type calls struct {
	mu    sync.Mutex
	byKey map[callKey]chan struct{}
}

// enter waits until no call with the key is under way, and begins one, which leave ends.
func (c *calls) enter(ctx context.Context, key callKey) (leave func(), err error) {
	for {
		c.mu.Lock()
		other, busy := c.byKey[key]
		if !busy {
			if c.byKey == nil {
				c.byKey = map[callKey]chan struct{}{}
			}
			mine := make(chan struct{})
			c.byKey[key] = mine
			c.mu.Unlock()
			return func() {
				c.mu.Lock()
				delete(c.byKey, key)
				c.mu.Unlock()
				close(mine)
			}, nil
		}
		c.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
