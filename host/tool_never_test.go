package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/unit"
)

// never is a goal plugin whose tool must not run twice, counts its runs, and then does what it is told.
func never(runs *int, run func(context.Context) (unit.ToolResult, error)) host.Resident {
	p := goal("goal")
	p.Tools[0].Retry = unit.RetryNever
	p.Tools[0].Call = func(ctx context.Context, _ unit.ToolCall) (unit.ToolResult, error) {
		*runs++
		return run(ctx)
	}
	return p
}

// Given a tool that must not run twice, whatever became of the call that it was asked for, then the same request does not ask it again, and another one does.
func TestAToolThatMustNotRunTwice(t *testing.T) {
	fails := func(err error) func(context.Context) (unit.ToolResult, error) {
		return func(context.Context) (unit.ToolResult, error) { return unit.ToolResult{}, err }
	}
	for name, c := range map[string]struct {
		run  func(context.Context) (unit.ToolResult, error)
		says string
	}{
		"its plugin ended": {fails(&unit.GoneError{Reason: "secret"}), "ended while it ran"},
		"it was late":      {fails(&unit.DeadlineError{Reason: "secret"}), "in time"},
		"it panicked":      {func(context.Context) (unit.ToolResult, error) { panic("secret") }, "broke its contract"},
		"it gave what it lacks": {func(context.Context) (unit.ToolResult, error) {
			return unit.ToolResult{Value: json.RawMessage("1")}, nil
		}, "broke its contract"},
		"it refused": {fails(errors.New("not today")), "not today"},
		"it gave an event too large": {func(context.Context) (unit.ToolResult, error) {
			return unit.ToolResult{Events: []unit.ToolEvent{{Type: "goal/set", Data: json.RawMessage(`{"goal":"` + strings.Repeat("x", 5<<20) + `"}`)}}}, nil
		}, "broke its contract"},
	} {
		t.Run(name, func(t *testing.T) {
			h := host.New(host.Options{})
			defer h.Close()
			runs := 0
			if _, err := h.Add(never(&runs, c.run)); err != nil {
				t.Fatal(err)
			}
			s := newSession(t, h, "s")
			for i, key := range []string{"k", "k", "other"} {
				r, err := h.CallToolOnce(t.Context(), s, "set_goal", nil, session.Once{Key: key, Digest: "d"})
				if err != nil || !r.IsError || !strings.Contains(r.Text, c.says) || strings.Contains(r.Text, "secret") || len(r.Events) > 0 {
					t.Errorf("%d: %+v, %v", i, r, err)
				}
			}
			same(t, "runs of two requests", runs, 2)
			// Without a key there is no other way to say it than before.
			if _, err := h.CallTool(t.Context(), s, "set_goal", nil); (err == nil) != (name == "it refused") {
				t.Errorf("without a key: %v", err)
			}
		})
	}
}

// Given a call of which nothing was kept but that the tool was asked, since its caller left, then no repeat asks it, with the host that had it or the next one; and the key is taken.
func TestACallOfWhichNothingIsKnown(t *testing.T) {
	store := memory.New()
	defer store.Close()
	runs := 0
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	once := session.Once{Key: "k", Digest: "d"}
	var s *session.Session
	for _, which := range []string{"the first host", "the next host"} {
		h := host.New(host.Options{Store: store})
		if _, err := h.Add(never(&runs, func(context.Context) (unit.ToolResult, error) {
			leave()
			return unit.ToolResult{}, ctx.Err()
		})); err != nil {
			t.Fatal(err)
		}
		if s == nil {
			s = newSession(t, h, "s")
			if r, err := h.CallToolOnce(ctx, s, "set_goal", nil, once); !errors.Is(err, context.Canceled) {
				t.Fatalf("%+v, %v", r, err)
			}
		}
		s, err := h.Sessions().Open(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			r, err := h.CallToolOnce(t.Context(), s, "set_goal", nil, once)
			if err != nil || !r.IsError || !strings.Contains(r.Text, "not known") {
				t.Errorf("%s: %+v, %v", which, r, err)
			}
		}
		var reused *eventlog.KeyReusedError
		if _, err := h.CallToolOnce(t.Context(), s, "set_goal", nil, session.Once{Key: "k", Digest: "another"}); !errors.As(err, &reused) || reused.Key != "k" {
			t.Errorf("%s, another request: %v", which, err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	same(t, "runs", runs, 1)
}

// Given a plugin that ends in its tool, then that is what the call came to; given one that is down, then nothing is kept, and the same call goes well once it is up.
func TestTheProcessOfAToolThatMustNotRunTwice(t *testing.T) {
	ends := openHost(t, plugs{"wrong": wrong(t, "never", "exit-tool")})
	s := newSession(t, ends, "s")
	for range 2 {
		r, err := ends.CallToolOnce(t.Context(), s, "add", json.RawMessage(`{"n":1}`), session.Once{Key: "k", Digest: "d"})
		if err != nil || !r.IsError || !strings.Contains(r.Text, "ended while it ran") {
			t.Errorf("%+v, %v", r, err)
		}
	}

	config := wrong(t, "never")
	path := filepath.Join(t.TempDir(), filepath.Base(config.Command))
	text, err := os.ReadFile(config.Command)
	if err == nil {
		err = os.WriteFile(path, text, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	config.Command = path
	h := openHost(t, plugs{"wrong": config})
	s = newSession(t, h, "s")
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(plugin(t, h, "wrong").Pid)
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is down", func() bool { return plugin(t, h, "wrong").State != host.PluginReady })
	var down *host.PluginUnavailableError
	if r, err := h.CallToolOnce(t.Context(), s, "add", json.RawMessage(`{"n":1}`), session.Once{Key: "k", Digest: "d"}); !errors.As(err, &down) {
		t.Errorf("%+v, %v", r, err)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if err := h.RestartPlugin("wrong"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is up again", func() bool { return plugin(t, h, "wrong").State == host.PluginReady })
	r, err := h.CallToolOnce(t.Context(), s, "add", json.RawMessage(`{"n":1}`), session.Once{Key: "k", Digest: "d"})
	if err != nil || r.IsError || len(r.Events) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
