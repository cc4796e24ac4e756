package host_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// kill ends a process from outside.
func kill(t testing.TB, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
		p.Release() // Its descriptor would be there until the next collection, and is counted by a test.
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAProcessThatDiesIsStartedAgainAndNoValueIsLost(t *testing.T) {
	h := openHost(t, plugs{"wrong": wrong(t)})
	s := newSession(t, h, "s")
	for i := range 50 {
		step(t, s, i)
	}
	value(t, h, s, "sum")
	for round := range 3 {
		first := plugin(t, h, "wrong").Pid
		kill(t, first)
		step(t, s, 1000)
		same(t, "the sum", len(value(t, h, s, "sum")) > 3, true)
		p := plugin(t, h, "wrong")
		if p.Pid == first || p.Restarts != round+1 || !strings.Contains(p.LastError, "SIGKILL") {
			t.Errorf("pid %d after %d, %d restarts, last error %q", p.Pid, first, p.Restarts, p.LastError)
		}
	}
	same(t, "the sum at the end", value(t, h, s, "sum"), "4225")
}

func TestFiveDeathsParkAPluginUntilSomebodyAsks(t *testing.T) {
	h := openHost(t, plugs{"wrong": withQuick(wrong(t))})
	s := newSession(t, h, "s")
	step(t, s, 7)
	value(t, h, s, "sum")
	if err := s.Detach(t.Context()); err != nil { // Nothing is in flight from now on: no event of a session can be to blame.
		t.Fatal(err)
	}
	for range 5 {
		pid := 0
		eventually(t, "it is up", func() bool { pid = plugin(t, h, "wrong").Pid; return pid != 0 })
		kill(t, pid)
		eventually(t, "its death is seen", func() bool { return plugin(t, h, "wrong").Pid != pid })
	}
	eventually(t, "it is parked", func() bool { return plugin(t, h, "wrong").State == host.PluginParked })
	if p := plugin(t, h, "wrong"); !strings.Contains(p.Reason, "5 failures") || !strings.Contains(p.Reason, "SIGKILL") {
		t.Errorf("the reason is %q", p.Reason)
	}
	step(t, s, 8)
	block, err := h.Snapshot(context.Background(), s, "sum")
	if err != nil || block.Unavailable["sum"].Code != registry.Parked {
		t.Errorf("%+v, %v", block, err)
	}
	if err := h.RestartPlugin("wrong"); err != nil {
		t.Fatal(err)
	}
	same(t, "the value once it is up again", value(t, h, s, "sum"), "15")
}

// TestAPluginThatDiesByItselfIsParked: whatever it folds meanwhile.
func TestAPluginThatDiesByItselfIsParked(t *testing.T) {
	h := openHost(t, plugs{"wrong": withQuick(wrong(t, "die-in=20ms")), "good": wrong(t, "prefix=good/", "owns=good/thing")})
	for i := range 3 {
		s := imported(t, h, fmt.Sprint("s", i), 1000, 1)
		same(t, "the value of another plugin", value(t, h, s, "good/count"), "1000")
	}
	eventually(t, "it is parked", func() bool { return plugin(t, h, "wrong").State == host.PluginParked })
	if p := plugin(t, h, "wrong"); !strings.Contains(p.Reason, "a panic in the background") {
		t.Errorf("the reason is %q", p.Reason)
	}
}

// TestValuesDoNotTellOfTheHost: why a plugin does not serve names its file and quotes what it wrote to stderr, for those who look at plugins; whoever reads values hears of neither.
func TestValuesDoNotTellOfTheHost(t *testing.T) {
	silent := func(t *testing.T, h *host.Host, s *session.Session, key string, code registry.UnavailableCode, never ...string) {
		t.Helper()
		eventually(t, "the value is missing", func() bool {
			block, err := h.Snapshot(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			u := block.Unavailable[key]
			for _, word := range never {
				if strings.Contains(u.Message, word) {
					t.Fatalf("whoever reads values hears %q", u.Message)
				}
			}
			return u.Code == code && u.Message != ""
		})
	}
	t.Run("its file is gone", func(t *testing.T) {
		dir := t.TempDir()
		from := wrong(t).Command
		file := filepath.Join(dir, filepath.Base(from)) // A system may know programs by their names.
		program, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(file, program, 0o700)
		}
		if err != nil {
			t.Fatal(err)
		}
		h := openHost(t, plugs{"wrong": withQuick(config.Plugin{Command: file})})
		s := newSession(t, h, "s")
		pid := plugin(t, h, "wrong").Pid
		if err := os.Remove(file); err != nil {
			t.Skipf("skipped: a file that runs cannot be removed here: %v", err)
		}
		kill(t, pid)
		eventually(t, "it is parked", func() bool { return plugin(t, h, "wrong").State == host.PluginParked })
		step(t, s, 1)
		silent(t, h, s, "sum", registry.Parked, dir, "exist")
		if reason := plugin(t, h, "wrong").Reason; !strings.Contains(reason, file) {
			t.Errorf("whoever looks at plugins hears %q", reason)
		}
	})
	t.Run("it dies of an event", func(t *testing.T) {
		h := openHost(t, plugs{"wrong": withQuick(wrong(t))})
		s := newSession(t, h, "s")
		poison(t, s, "goroutine")
		silent(t, h, s, "count", registry.Faulted, "panic", "stderr")
		if last := plugin(t, h, "wrong").LastError; !strings.Contains(last, "panic: poisoned in a goroutine") {
			t.Errorf("whoever looks at plugins hears %q", last)
		}
	})
}

func TestAUnitThatGoesIsReleased(t *testing.T) {
	h := openHost(t, plugs{"wrong": wrong(t, "shrink")})
	s := newSession(t, h, "s")
	step(t, s, 1)
	h.Snapshot(context.Background(), s)
	eventually(t, "two units are gone", func() bool {
		block, err := h.Snapshot(context.Background(), s)
		return err == nil && len(block.Values) == 1 && len(block.Unavailable) == 0 && len(plugin(t, h, "wrong").Units) == 1
	})
}

// TestARestartUnderAppendsLeavesNoGap: a process is exchanged again and again while events come; every snapshot has the key, and how long
// none was current is bounded.
func TestARestartUnderAppendsLeavesNoGap(t *testing.T) {
	h := openHost(t, plugs{"wrong": wrong(t)})
	s := newSession(t, h, "s")
	step(t, s, 1)
	value(t, h, s, "count")
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var appended atomic.Int64
	appended.Store(1)
	wg.Go(func() {
		for ctx.Err() == nil {
			if _, err := s.Append(context.Background(), "step", map[string]int{"n": 1}, session.Intent{}); err != nil {
				t.Error(err)
				return
			}
			appended.Add(1)
		}
	})
	var longest time.Duration
	wg.Go(func() {
		var gap time.Time
		for ctx.Err() == nil {
			block, err := h.Snapshot(context.Background(), s, "count")
			if err != nil {
				t.Error(err)
				return
			}
			_, there := block.Values["count"]
			_, down := block.Unavailable["count"]
			switch {
			case !there && !down:
				t.Error("the key is missing")
				return
			case down && gap.IsZero():
				gap = time.Now()
			case there && !gap.IsZero():
				longest, gap = max(longest, time.Since(gap)), time.Time{}
			}
		}
	})
	for range 5 {
		before := plugin(t, h, "wrong").Pid
		if err := h.RestartPlugin("wrong"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "another process serves", func() bool { return plugin(t, h, "wrong").Pid != before })
	}
	cancel()
	wg.Wait()
	block := current(t, h, s, "count")
	same(t, "the count", string(block.Values["count"]), itoa(appended.Load()))
	t.Logf("%d events; none was current for %v at most", appended.Load(), longest)
	// A bound that only a gap breaks, and no slow machine: two snapshots that waited in vain for 2 s each.
	if longest > 10*time.Second {
		t.Errorf("the key was unavailable for %v", longest)
	}
	if p := plugin(t, h, "wrong"); p.LastError != "" {
		t.Errorf("an exchange counts as a failure: %s", p.LastError)
	}
}

// TestATakeoverBetweenPluginsUnderAppends: when the plugin that computes a key goes, the next by name goes on from what was reached.
func TestATakeoverBetweenPluginsUnderAppends(t *testing.T) {
	h := openHost(t, plugs{"a": withQuick(wrong(t)), "b": wrong(t)})
	s := newSession(t, h, "s")
	for i := range 20 {
		step(t, s, i)
	}
	same(t, "the sum", value(t, h, s, "sum"), "190")
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	n := int64(0)
	wg.Go(func() {
		for ctx.Err() == nil {
			step(t, s, 1)
			n++
		}
	})
	if err := h.StopPlugin(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	block, err := h.Snapshot(context.Background(), s, "sum")
	if err != nil || len(block.Values)+len(block.Unavailable) != 1 {
		t.Errorf("%+v, %v", block, err)
	}
	cancel()
	wg.Wait()
	same(t, "the sum", value(t, h, s, "sum"), itoa(190+n))
}

// TestAnExchangeForAnotherVersionUnderAppends: the next process offers the unit at another state version; the key is never missing and comes to
// the same value.
func TestAnExchangeForAnotherVersionUnderAppends(t *testing.T) {
	version := filepath.Join(t.TempDir(), "version")
	write := func(v string) {
		if err := os.WriteFile(version, []byte(v), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("1")
	h := openHost(t, plugs{"wrong": wrong(t, "version-file="+version)})
	s := imported(t, h, "s", 5000, 1)
	want := int64(4999 * 5000 / 2)
	same(t, "the sum", value(t, h, s, "sum"), itoa(want))
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var n int64
	wg.Go(func() {
		for ctx.Err() == nil {
			step(t, s, 1)
			n++
		}
	})
	for _, v := range []string{"2", "3", "2"} {
		write(v)
		if err := h.RestartPlugin("wrong"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the new version is registered", func() bool {
			block, err := h.Snapshot(context.Background(), s, "sum")
			if err != nil || len(block.Values)+len(block.Unavailable) != 1 {
				t.Fatalf("%+v, %v", block, err)
			}
			units := plugin(t, h, "wrong").Units
			return len(units) == 3 && itoa(units[0].StateVersion) == v
		})
	}
	cancel()
	wg.Wait()
	same(t, "the sum", value(t, h, s, "sum"), itoa(want+n))
}

// TestAProcessThatStopsAnsweringIsFoundOut: it has nothing to fold, so that no deadline finds it.
func TestAProcessThatStopsAnsweringIsFoundOut(t *testing.T) {
	stuck := withQuick(wrong(t))
	stuck.Timeouts.Health = 300 * time.Millisecond
	h := openHost(t, plugs{"wrong": stuck}, func(o *host.Options) { o.Plugins.HealthEvery = 50 * time.Millisecond })
	pid := plugin(t, h, "wrong").Pid
	freeze(t, pid)
	eventually(t, "another process serves", func() bool { p := plugin(t, h, "wrong"); return p.Pid != 0 && p.Pid != pid })
	if p := plugin(t, h, "wrong"); !strings.Contains(p.LastError, "health") {
		t.Errorf("the last error is %q", p.LastError)
	}
}

func TestAProcessThatSaysThatItDoesNotServeIsReplaced(t *testing.T) {
	h := openHost(t, plugs{"wrong": withQuick(wrong(t, "not-serving-later"))}, func(o *host.Options) { o.Plugins.HealthEvery = 20 * time.Millisecond })
	eventually(t, "it is told", func() bool { return strings.Contains(plugin(t, h, "wrong").LastError, "NOT_SERVING") })
	eventually(t, "another process serves", func() bool { return plugin(t, h, "wrong").Restarts > 0 })
}

// TestAStopAtAnyMomentLeavesNothing: also while another process is being brought up. That no goroutine is left is checked at the end of all tests.
func TestAStopAtAnyMomentLeavesNothing(t *testing.T) {
	for i := range 12 {
		h := openHost(t, plugs{"wrong": wrong(t)})
		first := plugin(t, h, "wrong").Pid
		if err := h.RestartPlugin("wrong"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 3 * time.Millisecond) // Spread over the start of a process; any moment will do.
		if err := h.StopPlugin(t.Context(), "wrong"); err != nil {
			t.Fatal(err)
		}
		p := plugin(t, h, "wrong")
		if p.State != host.PluginStopped || p.Pid != 0 || alive(first) {
			t.Errorf("%+v", p)
		}
		h.Close()
	}
}
