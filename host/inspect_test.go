package host_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
)

// validate validates the wrong plugin in its modes.
func validate(t *testing.T, modes ...string) *host.Report {
	t.Helper()
	c := withQuick(wrong(t, modes...))
	path := c.Command
	c.Command = ""
	var events []event.Event
	for d := range steps(100, 2) {
		d.Seq = int64(len(events))
		events = append(events, d.Event)
	}
	r, err := host.Validate(t.Context(), path, host.InspectOptions{Config: &config.File{Plugins: map[string]config.Plugin{"wrongplugin": c}}}, events)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestValidateSaysWhatAHostWouldFindOut: given a plugin with one fault, one check fails, and says which fault it is.
func TestValidateSaysWhatAHostWouldFindOut(t *testing.T) {
	for _, c := range []struct{ mode, check, want string }{
		{"", "", ""},
		{"exit-describe", "describe", "code 3"},
		{"config-problem", "configure", "$.limit"},
		{"end-register-empty", "register", "Registrations"},
		{"end-register", "register or laws", "Registrations"}, // It is found out as soon as it can be, which may be right after the start.
		{"end-register-later", "laws", "Registrations"},
		{"fail-register-later", "laws", "Registrations"},
		{"not-serving", "health", "NOT_SERVING"},
		{"no-health", "health", "grpc.health.v1.Health"},
		{"hang-health", "health", "in time"},
		{"bad-key", "offers", "no key!"},
		{"mute-openings", "laws", "no value"},
		{"mute-states", "laws", "no state"},
		{"keep-dropped", "laws", "dropped"},
		{"reply-wrong-value", "laws", "true-to-schema"},
		{"reply-refused", "laws", "not today"},
		{"reply-backwards", "laws", "batch goes from"},
		{"reply-twice", "laws", "answered"},
		{"exit-fold", "laws", "code 3"},
		{"end-fold", "register or laws", "fold stream"},
		{"hang-fold", "laws", "not answered"},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			r := validate(t, c.mode)
			failed := ""
			for _, check := range r.Checks {
				if check.State != "failed" {
					continue
				}
				if failed != "" && failed != check.Name {
					t.Errorf("%s fails as well: %s", check.Name, check.Detail)
				}
				if failed = check.Name; !strings.Contains(check.Detail, c.want) {
					t.Errorf("it says %q, without %q", check.Detail, c.want)
				}
			}
			if !slices.Contains(strings.Split(c.check, " or "), failed) {
				t.Errorf("%q fails, want %q", failed, c.check)
			}
			same(t, "the whole", r.OK(), c.check == "")
		})
	}
}

// TestAnInspectionThatIsGivenUpSaysSo: given a plugin that hangs in a step of its start, whoever gives up waiting is told of that and not of the plugin.
func TestAnInspectionThatIsGivenUpSaysSo(t *testing.T) {
	for _, mode := range []string{"hang-describe", "hang-configure", "hang-register", "hang-health"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c := wrong(t, mode)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			// What it writes before it hangs is the sign that it runs.
			log := slog.New(slog.NewTextHandler(hears{"hanging in", cancel}, &slog.HandlerOptions{Level: slog.LevelDebug}))
			_, err := host.Inspect(ctx, c.Command, host.InspectOptions{Logger: log, Config: &config.File{Plugins: map[string]config.Plugin{"wrongplugin": {Args: c.Args}}}})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want context.Canceled", err)
			}
		})
	}
}

// hears is a writer that waits for a word.
type hears struct {
	word string
	then func()
}

func (h hears) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(h.word)) {
		h.then()
	}
	return len(p), nil
}
