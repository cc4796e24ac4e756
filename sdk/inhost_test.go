package sdk_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/session"
)

// The value that Serve serves is registered in a host program without a process.
func TestAPluginRunsInsideAHostProgram(t *testing.T) {
	running, err := greeter.Start(sdk.StartOptions{Config: json.RawMessage(`{"loud":true}`)})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Stop(t.Context())
	h := host.New(host.Options{})
	defer h.Close()
	remove, err := h.Add(host.Resident{Name: greeter.Name, Events: running.Events(), Units: running.Units(), Tools: running.Tools()})
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	s, err := h.Sessions().Create(t.Context(), session.New{Header: event.Header{ID: "s"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(t.Context(), "greeting/sent", Greeted{"Ada"}, session.Intent{}); err != nil {
		t.Fatal(err)
	}
	block, err := h.Snapshot(t.Context(), s)
	if err != nil || string(block.Values["lastGreeted"]) != `"Ada"` {
		t.Errorf("got %s, %v", block.Values, err)
	}
	// Its event types are guarded, and its tools are called, as in a process of its own.
	var rule *event.Error
	if _, err := s.Append(t.Context(), "greeting/sent", Greeted{""}, session.Intent{}); !errors.As(err, &rule) || rule.Code != host.CodeEventSchema {
		t.Errorf("an event against its schema: %v", err)
	}
	result, err := h.CallTool(t.Context(), s, "greet", json.RawMessage(`{"name":"Grace"}`))
	if err != nil || result.IsError || len(result.Events) != 1 {
		t.Errorf("%+v, %v", result, err)
	}
}
