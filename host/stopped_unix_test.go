//go:build unix

package host_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

func heap() int64 {
	for range 3 { // Pools and finalizers keep what is dead over one or two.
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestAStoppedPluginGrowsNothingAndDelaysOnlyItsKeys: what waits for it is a range of seqs and no queue.
func TestAStoppedPluginGrowsNothingAndDelaysOnlyItsKeys(t *testing.T) {
	patient := wrong(t, "prefix=slow/")
	patient.Timeouts.Batch = time.Minute
	patient.Timeouts.Health = time.Minute
	h := openHost(t, plugs{"slow": patient, "fast": wrong(t, "prefix=fast/", "owns=fast/thing")})
	const events = 20_000
	grow := func(s *session.Session) int64 {
		before := heap()
		for i := range events {
			step(t, s, i)
		}
		same(t, "the value of the plugin that runs", value(t, h, s, "fast/count"), fmt.Sprint(events+1))
		return heap() - before
	}
	running, stopped := newSession(t, h, "running"), newSession(t, h, "stopped")
	for _, s := range []*session.Session{running, stopped} {
		step(t, s, 0)
		current(t, h, s, "slow/count", "fast/count")
	}
	usual := grow(running)
	current(t, h, running, "slow/count")
	pid := plugin(t, h, "slow").Pid
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	goroutines := runtime.NumGoroutine()
	more := grow(stopped)
	if n := runtime.NumGoroutine(); n > goroutines+5 {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
	if more > usual+4<<20 {
		t.Errorf("the heap grew by %d bytes for %d events with a plugin stopped, and by %d without", more, events, usual)
	}
	block, err := h.Snapshot(context.Background(), stopped)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the key of the stopped plugin", block.Unavailable["slow/count"].Code, registry.Behind)
	same(t, "the key of the other", string(block.Values["fast/count"]), fmt.Sprint(events+1))
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	same(t, "its value once it goes on", value(t, h, stopped, "slow/count"), fmt.Sprint(events+1))
	same(t, "restarts", plugin(t, h, "slow").Restarts, 0)
}

// rounds is how many crashes a soak takes: 30, or what FOLDHOST_SOAK_ROUNDS says, such as 1000.
func rounds(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv("FOLDHOST_SOAK_ROUNDS")); err == nil {
		return n
	}
	if testing.Short() {
		t.Skip("skipped: a soak")
	}
	return 30
}

func openFiles(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("skipped: no /proc/self/fd here")
	}
	return len(entries)
}

// TestCrashesAndRestartsLeakNothing: goroutines, descriptors, processes and heap are what they were, however often a process dies.
func TestCrashesAndRestartsLeakNothing(t *testing.T) {
	n := rounds(t)
	sockets, err := os.MkdirTemp("", "fh") // Shorter than t.TempDir: paths of sockets are limited.
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(sockets)
	h := openHost(t, plugs{"wrong": wrong(t)}, func(o *host.Options) { o.Plugins.SocketDir = sockets })
	round := func(i int) {
		// A session for each: a process that is killed while it is tried with one event alone convicts that event, and rightly so.
		s := newSession(t, h, fmt.Sprint("s", i))
		defer h.Sessions().Delete(context.Background(), s.ID())
		// An explicit restart forgets the failures: what is tested is not the policy.
		p := plugin(t, h, "wrong")
		for p.Pid == 0 {
			p = plugin(t, h, "wrong")
		}
		step(t, s, i)
		kill(t, p.Pid)
		eventually(t, "its death is seen", func() bool { return plugin(t, h, "wrong").Pid != p.Pid })
		if err := h.RestartPlugin("wrong"); err != nil {
			t.Fatal(err)
		}
		current(t, h, s, "count", "sum", "last")
		eventually(t, "the dead process is reaped", func() bool { return !alive(p.Pid) })
	}
	settled := func() (goroutines, files int, bytes int64) {
		eventually(t, "it is up", func() bool { return plugin(t, h, "wrong").State == host.PluginReady })
		// What a restart may still be stopping is gone when the count stays the same for a while.
		for last, same := -1, 0; same < 20; time.Sleep(5 * time.Millisecond) {
			if now := runtime.NumGoroutine(); now == last {
				same++
			} else {
				last, same = now, 0
			}
		}
		return runtime.NumGoroutine(), openFiles(t), heap()
	}
	for i := range 5 {
		round(-1 - i)
	}
	goroutines, files, bytes := settled()
	for i := range n {
		round(i)
	}
	g, f, b := settled()
	if g > goroutines+3 || f > files+3 || b > bytes+4<<20 {
		t.Errorf("after %d rounds: %d goroutines, %d before; %d descriptors, %d before; %d bytes of heap, %d before", n, g, goroutines, f, files, b, bytes)
	}
	if left, _ := filepath.Glob(filepath.Join(sockets, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestAHostThatIsKilledLeavesNothing: its plugins go with it, and there is no file.
func TestAHostThatIsKilledLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "none"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), hostEnv+"="+wrong(t).Command, "TMPDIR="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	lines := bufio.NewScanner(out)
	for len(pids) < 2 && lines.Scan() {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(lines.Text())
		}
		pids = append(pids, pid)
	}
	if len(pids) < 2 {
		t.Fatal("the host did not come up")
	}
	cmd.Process.Kill()
	cmd.Wait()
	began := time.Now()
	for _, pid := range pids {
		eventually(t, "the plugin is gone", func() bool { return !alive(pid) })
	}
	t.Logf("the plugins were gone after %v", time.Since(began)) // The promise is two seconds; a busy machine is no reason to fail.
	if left, _ := filepath.Glob(filepath.Join(dir, "foldhost-*", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
