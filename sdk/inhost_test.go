package sdk_test

import (
	"encoding/json"
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
	for _, def := range running.Units() {
		if _, err := h.Register(greeter.Name, def); err != nil {
			t.Fatal(err)
		}
	}
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
}
