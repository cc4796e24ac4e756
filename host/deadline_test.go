package host_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/session"
)

// TestAProcessThatMissesTheRegistrysDeadlineIsEnded: given a plugin that may take an hour for a batch and a registry that gives it half a second, a
// process that takes batches, answers none and is healthy otherwise is killed, counted and started again, and the next one gives the values.
func TestAProcessThatMissesTheRegistrysDeadlineIsEnded(t *testing.T) {
	for name, read := range map[string]func(*testing.T, *host.Host, *session.Session) string{
		"a live session": func(t *testing.T, h *host.Host, s *session.Session) string { return value(t, h, s, "sum") },
		"a look at the past": func(t *testing.T, h *host.Host, s *session.Session) (sum string) {
			eventually(t, "the value of the past", func() bool {
				block, err := h.SnapshotAt(context.Background(), s, 2)
				if err != nil {
					t.Fatal(err)
				}
				sum = string(block.Values["sum"])
				return sum != ""
			})
			return sum
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patient := wrong(t, "mute-once="+filepath.Join(t.TempDir(), "mute"))
			patient.Timeouts.Batch = time.Hour
			h := openHost(t, plugs{"wrong": patient}, func(o *host.Options) { o.Registry.BatchDeadline = 500 * time.Millisecond })
			first := plugin(t, h, "wrong").Pid
			s := imported(t, h, "s", 3, 1)
			same(t, "the sum", read(t, h, s), "3")
			eventually(t, "it is ready", func() bool { return plugin(t, h, "wrong").State == host.PluginReady })
			p := plugin(t, h, "wrong")
			if p.Pid == first || alive(first) || p.Restarts != 1 || !strings.Contains(p.LastError, "answer") {
				t.Errorf("pid %d after %d, %d restarts, last error %q", p.Pid, first, p.Restarts, p.LastError)
			}
		})
	}
}

// TestAProcessThatIsBusyIsNotEnded: given a registry that gives a batch three seconds and a plugin that folds one batch after the other, each well
// within them, sessions that wait for others longer than that get their values, live or past, and no process is ended.
func TestAProcessThatIsBusyIsNotEnded(t *testing.T) {
	t.Parallel()
	h := openHost(t, plugs{"wrong": wrong(t, "slow-fold")}, func(o *host.Options) { o.Registry.BatchDeadline = 3 * time.Second })
	var all sync.WaitGroup
	for i := range 16 {
		s := imported(t, h, fmt.Sprint("s", i), 3, 1)
		all.Go(func() {
			if i%4 != 0 {
				same(t, "a sum", value(t, h, s, "sum"), "3")
				return
			}
			block, err := h.SnapshotAt(context.Background(), s, 1)
			if err != nil || string(block.Values["sum"]) != "1" {
				t.Errorf("%+v, %v", block, err)
			}
		})
	}
	all.Wait()
	p := plugin(t, h, "wrong")
	same(t, "restarts", fmt.Sprintf("%d %s", p.Restarts, p.LastError), "0 ")
}
