package host_test

import (
	"encoding/json"
	"iter"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/internal/countunit"
	"github.com/foldhost/foldhost/unit"
)

func TestMain(m *testing.M) {
	if os.Getenv(hostEnv) != "" {
		beHost()
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		removeBuilt()
		os.Exit(code)
	}))
}

// number is a unit that counts the events "step" and fails at its own event "break" by an error or a panic.
func number(key string) unit.Definition {
	schema := json.RawMessage(`{"type":"integer"}`)
	return unit.Definition{Key: key, StateVersion: 1, StateSchema: schema, ViewSchema: schema,
		Events: []string{"step", "break " + key, "panic " + key}, Inline: counting{}}
}

type counting = countunit.Inline

// newHost is a host in memory with these units, closed with the test.
func newHost(t *testing.T, keys ...string) *host.Host {
	t.Helper()
	h := host.New(host.Options{})
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	for _, key := range keys {
		if _, err := h.Register("test", number(key)); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// log is a log of these events.
func log(types ...string) iter.Seq2[event.Draft, error] {
	return func(yield func(event.Draft, error) bool) {
		for i, typ := range types {
			d := event.Draft{Event: event.Event{Type: typ, Seq: int64(i), Time: 1, Data: json.RawMessage(`{}`)}}
			if !yield(d, nil) {
				return
			}
		}
	}
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}
