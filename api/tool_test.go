package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/unit"
)

// An event that a plugin owns has to be what its schema says when it is appended, and one that is not refuses those beside it.
func TestOwnedEventsAreChecked(t *testing.T) {
	s := serve(t)
	s.add(goals("goal"))
	s.create("s")
	s.post("/v1/sessions/s/events", `{"events":[{"type":"step","data":1},{"type":"goal/set","data":1}]}`).problem(422, "event-invalid", `"index":1`, `"reason":"event-schema"`, `"path":"$.data"`)
	s.post("/v1/sessions/s/events", `{"type":"goal/set","data":{}}`).want(200)
	if got := len(s.seqs("s")); got != 1 {
		t.Errorf("%d events are in the log", got)
	}
}

// goals is a plugin of this process: a unit that counts, and tools that set a goal.
func goals(name string, change ...func(*host.Resident)) host.Resident {
	r := host.Resident{
		Name:   name,
		Events: []host.OwnedEvent{{Type: "goal/set", Schema: json.RawMessage(`{"type":"object"}`)}},
		Units:  []unit.Definition{counter("goals", "goal/set")},
		Tools: []unit.Tool{{Name: "set_goal", Description: "sets a goal", ArgumentSchema: json.RawMessage(`{"type":"object","required":["goal"]}`),
			ResultSchema: json.RawMessage(`{"type":"integer"}`), Reads: []string{"goals"},
			Call: func(_ context.Context, c unit.ToolCall) (unit.ToolResult, error) {
				switch goal := event.Lookup(c.Arguments, "goal"); string(goal) {
				case `"refuse"`:
					return unit.ToolResult{}, errors.New("no such <goal>")
				case `"gone"`:
					return unit.ToolResult{}, &unit.GoneError{}
				case `"break"`:
					return unit.ToolResult{Text: "x", Value: json.RawMessage(`"no number"`)}, nil
				default:
					return unit.ToolResult{Text: "goals so far: " + string(c.Values["goals"]), Value: json.RawMessage(` 7 `),
						Events: []unit.ToolEvent{{Type: "goal/set", Data: fmt.Appendf(nil, `{"goal":%s}`, goal)}}}, nil
				}
			}}},
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func (s *server) add(r host.Resident) {
	s.t.Helper()
	remove, err := s.host.Add(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(remove)
}

func TestToolCall(t *testing.T) {
	s := serve(t)
	s.add(goals("goal"))
	s.create("s")
	const path = "/v1/sessions/s/tools/set_goal"
	for i := range 2 {
		s.post(path, `{"arguments":{"goal":1.0}}`).want(200).same(fmt.Sprintf(
			`{"content":[{"type":"text","text":"goals so far: %d"}],"value":7,"isError":false,"events":[{"seq":%d,"time":"*"}]}`, i, i))
	}
	if text := s.get("/v1/sessions/s/events").want(200).body; !strings.Contains(text, `"data":{"goal":1.0}`) {
		t.Errorf("the event is not what the tool gave: %s", text)
	}
	// What a model can put right is a result.
	const wrong = `{"content":[{"type":"text","text":"*"}],"isError":true,"events":[]}`
	for _, body := range []string{`{"arguments":{}}`, `{"arguments":7}`, `{"arguments":"{}"}`, `{}`, ``, `{"arguments":null}`} {
		s.post(path, body).want(200).same(wrong)
	}
	s.post(path, `{"arguments":{"goal":"refuse"}}`).want(200).same(`{"content":[{"type":"text","text":"no such <goal>"}],"isError":true,"events":[]}`)
	// What it cannot is a problem.
	s.post(path, `{"arguments":{"goal":"gone"}}`).problem(503, "plugin-unavailable")
	s.post(path, `{"arguments":{"goal":"break"}}`).problem(500, "internal")
	s.post(path, `{"arguments":{"goal":-0}}`).problem(422, "arguments-invalid", `"path":"$.arguments.goal"`)
	s.post(path, `{"arguments":{"goal":1e999}}`).problem(422, "arguments-invalid", `"path":"$.arguments.goal"`)
	s.post(path, `{"arguments":{"a":1,"a":1}}`).problem(400, "body-invalid", `"path":"$.arguments.a"`)
	s.post(path, `{"args":{}}`).problem(400, "body-invalid", `"path":"$.args"`)
	s.post(path+"?keys=a", `{}`).problem(400, "body-invalid")
	s.post(path, `{"arguments":{"goal":1}}`, "Idempotency-Key: a b").problem(400, "body-invalid")
	s.post("/v1/sessions/s/tools/none", `{}`).problem(404, "tool-not-found")
	s.post("/v1/sessions/nobody/tools/set_goal", `{"arguments":{"goal":1}}`).problem(404, "session-not-found")
	s.get(path).problem(405, "method-not-allowed")
	if got := len(s.seqs("s")); got != 2 {
		t.Errorf("%d events", got)
	}
}

// A key is for what came to an end: what failed is tried again, and what was done is told again when its plugin has gone.
func TestAToolThatWasCalledBefore(t *testing.T) {
	s := serve(t)
	calls, fail := 0, true
	remove, err := s.host.Add(goals("goal", func(r *host.Resident) {
		call := r.Tools[0].Call
		r.Tools[0].Call = func(ctx context.Context, c unit.ToolCall) (unit.ToolResult, error) {
			if calls++; fail {
				return unit.ToolResult{}, &unit.GoneError{}
			}
			return call(ctx, c)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	s.create("s")
	const path, key = "/v1/sessions/s/tools/set_goal", "Idempotency-Key: k"
	s.post(path, `{"arguments":{"goal":1}}`, key).problem(503, "plugin-unavailable")
	fail = false
	first := s.post(path, `{"arguments":{"goal":1}}`, key).want(200)
	refusal := s.post(path, `{"arguments":{"goal":"refuse"}}`, "Idempotency-Key: other").want(200)
	remove()
	s.post(path, `{"arguments":{"goal":1}}`, "Idempotency-Key: new").problem(404, "tool-not-found")
	for range 2 {
		if again := s.post(path, `{"arguments":{"goal":1}}`, key).want(200); again.body != first.body {
			t.Errorf("%s, the first was %s", again.body, first.body)
		}
		if again := s.post(path, `{"arguments":{"goal":"refuse"}}`, "Idempotency-Key: other").want(200); again.body != refusal.body {
			t.Errorf("%s, the first was %s", again.body, refusal.body)
		}
	}
	s.post(path, `{"arguments":{"goal":2}}`, key).problem(422, "idempotency-key-reused")
	if calls != 3 || len(s.seqs("s")) != 1 {
		t.Errorf("%d calls, %d events", calls, len(s.seqs("s")))
	}
}

// A call that the session outran has appended nothing, and the same request may go well later, unless the tool must not run twice.
func TestAToolThatTheSessionOutran(t *testing.T) {
	for retry, later := range map[unit.Retry]string{
		unit.RetryAuto:  `{"content":[{"type":"text","text":"goals so far: 3"}],"value":7,"isError":false,"events":[{"seq":3,"time":"*"}]}`,
		unit.RetryNever: `{"content":[{"type":"text","text":"The session changed while the tool ran, and nothing was appended. Look at the new state and decide again."}],"isError":true,"events":[]}`,
	} {
		t.Run(fmt.Sprint(retry), func(t *testing.T) { outrun(t, retry, later) })
	}
}

func outrun(t *testing.T, retry unit.Retry, later string) {
	s := serve(t)
	outrun := true
	s.add(goals("goal", func(r *host.Resident) {
		call := r.Tools[0].Call
		r.Tools[0].Retry = retry
		r.Tools[0].Call = func(ctx context.Context, c unit.ToolCall) (unit.ToolResult, error) {
			if outrun {
				s.post("/v1/sessions/s/events", `{"type":"goal/set","data":{}}`).want(200)
			}
			return call(ctx, c)
		}
	}))
	s.create("s")
	const path, key = "/v1/sessions/s/tools/set_goal", "Idempotency-Key: k"
	s.post(path, `{"arguments":{"goal":1}}`, key).want(200).same(`{"content":[{"type":"text","text":"*"}],"isError":true,"events":[]}`)
	outrun = false
	for range 2 {
		s.post(path, `{"arguments":{"goal":1}}`, key).want(200).same(later)
	}
}

func TestCatalogue(t *testing.T) {
	s := serve(t)
	s.get("/v1/tools").want(200).same(`{"tools":[]}`)
	s.get("/v1/plugins").want(200).same(`{"plugins":[]}`)
	s.add(goals("goal"))
	s.add(goals("b-other", func(r *host.Resident) {
		r.Events = nil
		r.Units = []unit.Definition{counter("hidden", "x")}
		r.Units[0].ViewSchema = nil
		r.Units[0].Inline = hidden{counting{}}
		again := r.Tools[0]
		again.Reads = nil
		again.Name = "a_tool"
		again.ResultSchema = nil
		r.Tools = []unit.Tool{again}
	}))
	s.get("/v1/tools").want(200).same(`{"tools":[
		{"name":"a_tool","plugin":"b-other","description":"sets a goal","argumentSchema":{"type":"object","required":["goal"]}},
		{"name":"set_goal","plugin":"goal","description":"sets a goal","reads":["goals"],"argumentSchema":{"type":"object","required":["goal"]},"resultSchema":{"type":"integer"}}]}`)
	s.get("/v1/projections?preset=").want(200).same(`{"projections":[
		{"key":"goals","plugin":"goal","stateVersion":1,"events":["goal/set","break"],"viewSchema":{"type":"integer"}},
		{"key":"steps","plugin":"test","stateVersion":1,"events":["step","break"],"viewSchema":{"type":"integer"}}]}`)
	s.get("/v1/plugins").want(200).same(`{"plugins":[
		{"name":"b-other","state":"ready","since":"*","restarts":0,"units":[{"key":"hidden","stateVersion":1,"events":["x","break"],"hostOnly":true}],"tools":[{"name":"a_tool"}]},
		{"name":"goal","state":"ready","since":"*","restarts":0,"ownedEvents":[{"type":"goal/set","schema":{"type":"object"}}],
		 "units":[{"key":"goals","stateVersion":1,"events":["goal/set","break"]}],"tools":[{"name":"set_goal"}]}]}`)
	for _, path := range []string{"/v1/tools", "/v1/projections", "/v1/plugins"} {
		s.get(path+"?preset=x").problem(422, "preset-unknown")
		s.get(path+"?keys=x").problem(400, "body-invalid")
	}
	// One of this process cannot be started again.
	s.post("/v1/plugins/goal/restart", "").problem(404, "not-found")
	s.post("/v1/plugins/none/restart", "{}").problem(404, "not-found")
	s.post("/v1/plugins/none/restart", `{"x":1}`).problem(400, "body-invalid", `"path":"$.x"`)
	s.post("/v1/plugins/none/restart?x", "").problem(400, "body-invalid")
}

// hidden counts for the host alone.
type hidden struct{ counting }
