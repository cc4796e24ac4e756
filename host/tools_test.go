package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/session"
)

func call(t *testing.T, h *host.Host, s *session.Session, tool, arguments string) (host.ToolResult, error) {
	t.Helper()
	return h.CallTool(context.Background(), s, tool, json.RawMessage(arguments))
}

func TestAToolSeesItsValuesAndAppendsItsEvents(t *testing.T) {
	h := openHost(t, plugs{"wrong": wrong(t)})
	s := newSession(t, h, "s")
	for i := range 3 {
		step(t, s, i)
	}
	r, err := call(t, h, s, "add", `{"n":7}`)
	if err != nil || r.IsError {
		t.Fatalf("%+v, %v", r, err)
	}
	same(t, "text", r.Text, "done")
	same(t, "value", string(r.Value), `{"seq":2,"count":3}`)
	if len(r.Events) != 1 || r.Events[0].Seq != 3 || r.Events[0].Type != "wrong/added" || string(r.Events[0].Data) != `{"n":7}` {
		t.Errorf("events %+v", r.Events)
	}
}

func TestWhatACallerCanPutRightIsAnErrorResult(t *testing.T) {
	h := openHost(t, plugs{"wrong": wrong(t)})
	s := newSession(t, h, "s")
	for name, arguments := range map[string]string{"against the schema": `{"n":"many"}`, "no JSON": `{"n":`, "refused by the tool": `{"n":-1}`, "not an object": `3`} {
		r, err := call(t, h, s, "add", arguments)
		if err != nil || !r.IsError || r.Text == "" || len(r.Events) > 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	info, err := s.Info(t.Context())
	if err != nil || info.Seq != 0 {
		t.Errorf("the log has %d events, %v", info.Seq, err)
	}
	var unknown *host.UnknownToolError
	if _, err := call(t, h, s, "nothing", `{}`); !errors.As(err, &unknown) {
		t.Errorf("an unknown tool: %v", err)
	}
}

func TestAToolThatBreaksItsContractAppendsNothing(t *testing.T) {
	for _, mode := range []string{"tool-appends=turn/start", "tool-appends=nobody/owns", "tool-bad-data", "tool-large-data", "tool-bad-value",
		`tool-data={"n":`, "tool-data=\"\xff\"", `tool-data={"n":1,"n":2}`, "tool-data=1e999", "tool-data=" + strings.Repeat("[", 2000) + strings.Repeat("]", 2000)} {
		t.Run(mode[:min(len(mode), 30)], func(t *testing.T) {
			t.Parallel()
			args := []string{mode}
			if strings.HasPrefix(mode, "tool-data=") {
				args = append(args, "owns=any/thing", "tool-appends=any/thing") // No schema says what is wrong.
			}
			h := openHost(t, plugs{"wrong": wrong(t, args...)})
			s := newSession(t, h, "s")
			var broken *host.ToolBrokenError
			if r, err := call(t, h, s, "add", `{"n":1}`); !errors.As(err, &broken) || r.Text != "" || r.Value != nil {
				t.Errorf("%+v, %v", r, err)
			}
			if info, _ := s.Info(t.Context()); info.Seq != 0 {
				t.Errorf("the log has %d events", info.Seq)
			}
		})
	}
}

func TestAToolThatDoesNotAnswerIsUnavailable(t *testing.T) {
	for _, mode := range []string{"hang-tool", "exit-tool", "panic-tool"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			h := openHost(t, plugs{"wrong": withQuick(wrong(t, mode))})
			s := newSession(t, h, "s")
			var down *host.PluginUnavailableError
			if r, err := call(t, h, s, "add", `{"n":1}`); !errors.As(err, &down) || down.Plugin != "wrong" {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// TestAToolWhoseValuesAreOvertaken: each time that the tool is asked, somebody else appends before it has answered.
func TestAToolWhoseValuesAreOvertaken(t *testing.T) {
	for _, c := range []struct {
		name, mode, typ string
		asked           int
		isError         bool
	}{
		{"by an event that its plugin folds", "slow-tool", "step", 3, true},
		{"by an event that its plugin folds, and it does not want to be asked again", "never", "step", 1, true},
		{"by an event of no interest", "slow-tool", "other", 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := openHost(t, plugs{"wrong": wrong(t, c.mode, "slow-tool")})
			s := newSession(t, h, "s")
			step(t, s, 1)
			done := make(chan struct{})
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					select {
					case <-done:
						return
					default:
						s.Append(context.Background(), c.typ, map[string]int{"n": 1}, session.Intent{})
					}
				}
			}()
			r, err := call(t, h, s, "add", `{"n":1}`)
			close(done)
			<-stopped
			if err != nil || r.IsError != c.isError || (len(r.Events) == 0) != c.isError {
				t.Errorf("%+v, %v", r, err)
			}
			if !c.isError {
				page := []event.Event{}
				for ev, err := range s.Scan(t.Context(), 0, 0, []string{"wrong/added"}) {
					if err != nil {
						t.Fatal(err)
					}
					page = append(page, ev)
				}
				same(t, "events appended", len(page), 1)
			}
		})
	}
}

func TestTwoToolsOfOneNameTheFirstPluginServes(t *testing.T) {
	h := openHost(t, plugs{"a": wrong(t, "prefix=a/", "owns=a/thing", "tool-appends=a/thing"), "b": wrong(t, "prefix=b/")})
	for _, tool := range plugin(t, h, "b").Tools {
		same(t, "who shadows "+tool.Name, tool.ShadowedBy, "a")
	}
	for _, tool := range plugin(t, h, "a").Tools {
		same(t, "who shadows "+tool.Name, tool.ShadowedBy, "")
	}
	same(t, "tools that can be called", len(h.Tools()), 2)
	s := newSession(t, h, "s")
	r, err := call(t, h, s, "add", `{"n":1}`)
	if err != nil || len(r.Events) != 1 || r.Events[0].Type != "a/thing" {
		t.Errorf("%+v, %v", r, err)
	}
	// When the first goes, the other serves.
	if err := h.StopPlugin(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if r, err = call(t, h, s, "add", `{"n":1}`); err != nil || r.Events[0].Type != "wrong/added" {
		t.Errorf("%+v, %v", r, err)
	}
}
