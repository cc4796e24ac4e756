package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/session"
)

// CallToolOnce is CallTool for a request with a key: a result, also one that says that the tool refuses, is kept in the log's store together with what was appended, and the same
// request gets it again, whatever has become of the plugin. Of twins that come at once one calls the tool and the other waits. After an error nothing is kept, nor of a call that the session outran. Who dies between
// the tool's answer and the commit has called it in vain; it is called again. Errors are those of CallTool and *eventlog.KeyReusedError.
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
	result, outrun, err := h.callTool(ctx, s, name, arguments, once)
	if err != nil || outrun || len(result.Events) > 0 { // which were committed with it
		return result, err
	}
	// A caller who leaves now asks again.
	return resultOf(s.Answer(context.WithoutCancel(ctx), once, result.keep()))
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
