package supervise_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/host/internal/life/lifetest"
	"github.com/foldhost/foldhost/host/internal/supervise"
	"github.com/foldhost/foldhost/pluginproto"
)

// written is a log that is kept.
type written struct {
	mu   sync.Mutex
	text strings.Builder
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

// errors are the lines of errors so far.
func (w *written) errors() (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(w.text.String()) {
		if strings.Contains(line, "level=ERROR") {
			lines = append(lines, line)
		}
	}
	return lines
}

// to makes a plugin log there.
func (w *written) to(_ *life.Spec, d *supervise.Deps) {
	d.Logger = slog.New(slog.NewTextHandler(w, nil))
}

// A start that fails is one record of the log, whatever it leads to.
func TestAStartThatFailsIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log written
		refused := lifetest.Plugin{Problems: []*pluginproto.ConfigProblem{{Path: "$.limit", Message: "is low"}}}
		r := started(t, always(refused), log.to)
		r.is(supervise.Parked, "with a config that it refuses")
		if lines := log.errors(); len(lines) != 1 || !strings.Contains(lines[0], "$.limit: is low") || !strings.Contains(lines[0], "plugin=p") || !strings.Contains(lines[0], "correct plugins.p.config in") {
			t.Errorf("the log has %q", lines)
		}
		r.Restart()
		synctest.Wait()
		r.is(supervise.Parked, "when somebody asked")
		if lines := log.errors(); len(lines) != 2 {
			t.Errorf("once it was asked for the log has %q", lines)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		var log written
		r := started(t, func(int) (*lifetest.Plugin, error) { return nil, errors.New("no room") }, log.to)
		time.Sleep(time.Hour)
		r.is(supervise.Parked, "after five starts that failed")
		lines := log.errors()
		if len(lines) != 5 || !strings.Contains(lines[4], "is parked") || !strings.Contains(lines[4], "5 failures") {
			t.Errorf("the log has %q", lines)
		}
		for _, line := range lines {
			if strings.Count(line, "no room") != 1 {
				t.Errorf("it says %s", line)
			}
		}
	})
}
