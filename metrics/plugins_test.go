package metrics_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
	"github.com/foldhost/foldhost/session"
)

// Given a plugin process that folds, that dies, that fails at an event and is killed over another: each is counted where it belongs.
func TestPluginProcessesAreCounted(t *testing.T) {
	program := filepath.Join(t.TempDir(), "wrongplugin")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", program, "github.com/foldhost/foldhost/host/internal/wrongplugin").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	w := open(t, func(o *host.Options) {
		o.Registry.ReadWait = 0
		o.Plugins = &host.PluginOptions{Dir: t.TempDir(), SocketDir: t.TempDir(), Config: &config.File{Plugins: map[string]config.Plugin{
			"wrong": {Command: program}, "off": {Command: program, Disabled: true},
		}, Presets: map[string]config.Preset{
			"a": {"wrong": json.RawMessage(`{"x":1}`), "absent": nil}, "b": {"wrong": json.RawMessage(`{"x":1}`), "absent": nil},
			"a,b": {"wrong": json.RawMessage(`{"x":2}`), "absent": nil}, `"`: {"wrong": json.RawMessage(`{"x":3}`)},
		}}}
	})
	if err := w.host.WaitPlugins(t.Context()); err != nil {
		t.Fatal(err)
	}
	state := func(plugin string, state host.PluginState) string {
		return fmt.Sprintf(`plugin_state{plugin=%q,presets="",state=%q}`, plugin, state)
	}
	f := w.look()
	for name, want := range map[string]float64{state("wrong", host.PluginReady): 1, state("wrong", host.PluginParked): 0, state("off", host.PluginDisabled): 1, state("off", host.PluginReady): 0,
		`plugin_state{plugin="absent",presets="a",state="missing"}`: 1, `plugin_state{plugin="absent",presets="b",state="missing"}`: 1, `plugin_restarts_total{plugin="wrong",presets="a,b"}`: 0,
		`plugin_restarts_total{plugin="wrong",presets="\"a,b\""}`: 0, `plugin_state{plugin="absent",presets="\"a,b\"",state="missing"}`: 1, `plugin_state{plugin="wrong",presets="\"\\\"\"",state="parked"}`: 1,
		`plugin_restarts_total{plugin="wrong",presets=""}`: 0, `plugin_deaths_total{plugin="wrong",presets=""}`: 0} {
		if got, there := f[ours+name]; !there || got != want {
			t.Errorf("%s is %v (%v), want %v", name, got, there, want)
		}
	}

	const count = `{plugin="wrong",unit="count"}`
	s := w.create("s")
	append := func(typ string, data any) {
		if _, err := s.Append(context.Background(), typ, data, session.Intent{}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 10 {
		append("step", map[string]int{"n": n})
	}
	w.comes("folded_events_total"+count, func(n float64) bool { return n == 10 })
	w.comes("unit_behind_cells"+count, zero)
	if w.before[ours+"fold_batch_events_sum"+count] != 10 || w.before[ours+"fold_batch_seconds_count"+count] < 1 || w.before[ours+"fold_batch_seconds_sum"+count] <= 0 {
		t.Errorf("%v", w.before)
	}

	for _, p := range w.host.Plugins(t.Context()) {
		if p.Pid > 0 {
			one, err := os.FindProcess(p.Pid)
			if err != nil {
				t.Fatal(err)
			}
			one.Kill()
		}
	}
	w.comes(`plugin_deaths_total{plugin="wrong",presets=""}`, func(n float64) bool { return n == 1 })
	w.comes(state("wrong", host.PluginReady), positive)
	w.comes(`plugin_restarts_total{plugin="wrong",presets=""}`, func(n float64) bool { return n == 1 })

	append("poison", map[string]string{"how": "error"})
	w.comes("unit_faults_total"+count, func(n float64) bool { return n == 1 })
	w.comes("unit_faulted_cells"+count, func(n float64) bool { return n == 1 })

	s = w.create("another")
	append("poison", map[string]string{"how": "exit"})
	w.comes("unit_faults_total"+count, func(n float64) bool { return n == 2 })
	if n := w.before[`foldhost_plugin_deaths_total{plugin="wrong",presets=""}`]; n < 2 {
		t.Errorf("it died %v times", n)
	}
	w.comes(state("wrong", host.PluginReady), positive)
	if err := w.host.StopPlugin(t.Context(), "wrong"); err != nil {
		t.Fatal(err)
	}
	w.comes(state("wrong", host.PluginStopped), positive)
}

// Looks, while everything that they look at comes and goes.
func TestLooksWhileEverythingMoves(t *testing.T) {
	w := open(t)
	rounds := 30
	if testing.Short() {
		rounds = 10
	}
	var all sync.WaitGroup
	for one := range 4 {
		all.Go(func() {
			for i := range rounds {
				s := w.create(fmt.Sprintf("s%d-%d", one, i))
				w.append(s, "step", "other", "step")
				if i%3 == 0 {
					w.append(s, "break")
				}
				w.detach(s)
				w.values(s.ID())
				if i%2 == 0 {
					if err := w.host.Sessions().Delete(context.Background(), s.ID()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Go(func() {
		for range rounds {
			reg, err := w.host.Register("more", counter("others", "step"))
			if err != nil {
				t.Error(err)
				return
			}
			reg.Release()
		}
	})
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	for moving := true; moving; {
		select {
		case <-ended:
			moving = false
		default:
		}
		w.look()
	}
	w.comes("sessions_live", zero)
	left := float64(4 * (rounds / 2))
	for name, want := range map[string]float64{"sessions_created_total": float64(4 * rounds), "appends_total": float64(4 * (3*rounds + (rounds+2)/3)), "store_logs": left,
		"unit_behind_cells" + steps: 0, "unit_faulted_cells" + steps: 0, "metrics_failures_total": 0} {
		if got := w.before[ours+name]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}
