//go:build unix

package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foldhost/foldhost/pluginproto"
)

func TestWhateverIsOnStderrHostAndPluginGoOn(t *testing.T) {
	r := newRig(t)
	p := r.start(t, spec(""))
	for _, junk := range []string{
		`{"@message":5}`, `{"@level":[],"@message":{}}`, `{"@timestamp":7,"@message":"x"}`, `{`, "null", "\x00\xff\x1b[31m",
		strings.Repeat("long", 1<<18), strings.Repeat("\n", 100),
	} {
		call(t, p, "stderr", []byte(junk+"\n"))
	}
	for level, line := range map[slog.Level]string{
		slog.LevelWarn:  `{"@level":"warn","@message":"from hclog","@module":"m","@timestamp":"2026-01-02T03:04:05.000000Z"}`,
		slog.LevelError: `{"time":"2026-01-02T03:04:05Z","level":"ERROR","msg":"from slog","n":1}`,
		slog.LevelDebug: `{"level":"debug","ts":1.5,"msg":"from zap"}`,
		levelTrace:      `{"level":"trace","time":"x","msg":"from logrus"}`,
		slog.LevelInfo:  `plain text`,
	} {
		call(t, p, "stderr", []byte(line+"\n"))
		text := line
		if _, after, ok := strings.Cut(line, "from "); ok {
			text, _, _ = strings.Cut("from "+after, `"`)
		}
		if rec := r.log.findLine(t, text); rec.Level != level || attr(rec, "stream") != "stderr" {
			t.Errorf("%s: level %v on %s, want %v", line, rec.Level, attr(rec, "stream"), level)
		}
	}
	healthy(t, p)
	if tail := p.Tail(); len(tail) > 3*tailBytes || !strings.Contains(tail, "plain text") || strings.Contains(tail, "\x1b") {
		t.Errorf("the tail has %d bytes", len(tail))
	}
}

func TestWhateverIsOnStdoutAfterTheHandshakeIsReadAndLogged(t *testing.T) {
	r := newRig(t)
	p := r.start(t, spec(""))
	for _, size := range []int{70 << 10, 70 << 10, 300 << 10, 3 << 20} {
		call(t, p, "stdout", append(bytes.Repeat([]byte("x"), size), '\n'))
	}
	call(t, p, "stdout", []byte("on descriptor 1\n"))
	if rec := r.log.findLine(t, "on descriptor 1"); attr(rec, "stream") != "stdout" {
		t.Errorf("logged as %s", attr(rec, "stream"))
	}
	r.log.findLine(t, "bytes left out")
	// Through go-plugin's stream, more than the pipe in the plugin holds.
	call(t, p, "print", append(bytes.Repeat([]byte("y"), 1<<20), []byte("\nprinted\n")...))
	r.log.findLine(t, "printed")
	healthy(t, p)
}

func TestAPluginThatWritesWithoutEndFillsNoLog(t *testing.T) {
	r := newRig(t)
	p := r.start(t, spec(""))
	const lines = 200_000
	call(t, p, "stderr-flood "+strconv.Itoa(lines), nil)
	p.Stop(t.Context())
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	if n := len(r.log.records); n > lines/2 {
		t.Errorf("%d lines of %d were logged", n, lines)
	}
	if !slices.ContainsFunc(r.log.records, func(r slog.Record) bool { return strings.Contains(r.Message, "left out of the log") }) {
		t.Error("the log does not say that lines were left out")
	}
}

func TestAProcessThatEndsSaysHow(t *testing.T) {
	for _, tt := range []struct {
		do   string
		want Exit
		tail string
	}{
		{"exit 5", Exit{Code: 5}, ""},
		{"exit 0", Exit{Code: 0}, ""},
		{"panic", Exit{Code: 2}, "in a call"},
		{"panic-elsewhere", Exit{Code: 2}, "in a goroutine"},
		{"signal KILL", Exit{Code: -1, Signal: "SIGKILL"}, ""},
		{"signal TERM", Exit{Code: -1, Signal: "SIGTERM"}, ""},
	} {
		t.Run(tt.do, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := r.start(t, spec(""))
			_, err := p.Client().CallTool(t.Context(), &pluginproto.CallToolRequest{Tool: tt.do})
			if status.Code(err) != codes.Unavailable {
				t.Errorf("the call in flight gave %v, want Unavailable", err)
			}
			if got := exitOf(t, p); got != tt.want {
				t.Errorf("exit %+v, want %+v", got, tt.want)
			}
			if !strings.Contains(p.Tail(), tt.tail) {
				t.Errorf("last words %q lack %q", p.Tail(), tt.tail)
			}
			if err := p.Health(t.Context()); err == nil {
				t.Error("a process that is gone is healthy")
			}
			if got := p.Stop(t.Context()); got != tt.want {
				t.Errorf("stopped again: %+v, want %+v", got, tt.want)
			}
			e := p.Fail(PhaseDescribe, err)
			if e.Exit == nil || *e.Exit != tt.want || e.Phase != PhaseDescribe {
				t.Errorf("the error of a later phase: %+v", e)
			}
		})
	}
}

func TestAStopIsAskedForThenToldThenDone(t *testing.T) {
	stopped := Exit{Code: -1, Signal: "SIGKILL", Expected: true}
	for _, tt := range []struct {
		name, mode string
		do         []string
		want       Exit
	}{
		{"in good order", "", nil, Exit{Code: 0, Expected: true}},
		{"that does not answer Drain", "ignore-drain", nil, Exit{Code: -1, Signal: "SIGTERM", Expected: true}},
		{"that does not end after Shutdown", "ignore-shutdown", nil, Exit{Code: 0, Expected: true}}, // the lifeline ends it
		{"that ignores SIGTERM too", "ignore-drain", []string{"ignore-term"}, stopped},
		{"that left its group and does not answer", "ignore-drain", []string{"join-group", "ignore-term"}, stopped},
		{"that is stopped by SIGSTOP", "", []string{"!signal STOP"}, stopped},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			s := spec(tt.mode)
			// What the plugin does in time gets as much of it as it needs; what it never does is not waited for.
			s.Timeouts = Timeouts{Drain: patient, Exit: patient}
			if tt.mode == "ignore-drain" || tt.want == stopped {
				s.Timeouts.Drain = 200 * time.Millisecond
			}
			if tt.want == stopped {
				s.Timeouts.Exit = 200 * time.Millisecond
			}
			p := r.start(t, s)
			for _, do := range tt.do {
				if rest, ok := strings.CutPrefix(do, "!"); ok { // is not answered
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
					p.Client().CallTool(ctx, &pluginproto.CallToolRequest{Tool: rest})
					cancel()
					continue
				}
				call(t, p, do, nil)
			}
			exits := make(chan Exit, 2)
			for range 2 { // Two who stop it at once get the same.
				go func() { exits <- p.Stop(context.Background()) }()
			}
			for range 2 {
				if got := <-exits; got != tt.want {
					t.Errorf("exit %+v, want %+v", got, tt.want)
				}
			}
		})
	}
}

func TestAStopWhoseContextEndsKillsAtOnce(t *testing.T) {
	p := newRig(t).start(t, spec("ignore-drain"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := p.Stop(ctx); !got.Expected {
		t.Errorf("exit %+v", got)
	}
}

func TestAStoppedPluginDelaysOnlyWhoAsksIt(t *testing.T) {
	r := newRig(t)
	p, other := r.start(t, spec("")), r.start(t, spec(""))
	briefly := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	p.Client().CallTool(briefly(), &pluginproto.CallToolRequest{Tool: "signal STOP"})
	if err := p.Health(briefly()); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("it gave %v, want DeadlineExceeded", err)
	}
	healthy(t, other)
	p.Kill("it does not answer")
	if got := exitOf(t, p); got.KilledFor == "" || got.Expected {
		t.Errorf("exit %+v, want one with the reason", got)
	}
}

func TestACallWithoutADeadlineGetsOne(t *testing.T) {
	own, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		want time.Duration
	}{"one without": {t.Context(), time.Minute}, "one with its own": {own, time.Hour}} {
		called := false
		err := deadline(time.Minute)(c.ctx, "", nil, nil, nil, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			at, has := ctx.Deadline()
			if left := time.Until(at); !has || left > c.want || left < c.want/2 {
				t.Errorf("%s: the deadline is in %v, want %v", name, left, c.want)
			}
			called = true
			return nil
		})
		if err != nil || !called {
			t.Errorf("%s: called %v, %v", name, called, err)
		}
	}
}

func TestHealthIsServingAndNotOnlyAnswering(t *testing.T) {
	p := newRig(t).start(t, spec("not-serving"))
	var no *NotServingError
	if err := p.Health(t.Context()); !errors.As(err, &no) || no.Status != "NOT_SERVING" {
		t.Errorf("a plugin that says NOT_SERVING: %v", err)
	}
}

func TestAPluginThatBreaksItsConnectionIsEnded(t *testing.T) {
	r := newRig(t)
	s := spec("bare-and-stay")
	s.Timeouts.Exit = 200 * time.Millisecond
	p := r.start(t, s)
	p.Client().CallTool(t.Context(), &pluginproto.CallToolRequest{Tool: "stop-serving"})
	if got := exitOf(t, p); got.KilledFor == "" {
		t.Errorf("exit %+v, want one with the reason", got)
	}
}

func TestAMessageThatIsTooLargeFailsItsCallAlone(t *testing.T) {
	p := newRig(t).start(t, spec(""))
	_, err := p.Client().CallTool(t.Context(), &pluginproto.CallToolRequest{Tool: "answer 17825792"})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("an answer of 17 MiB gave %v, want ResourceExhausted", err)
	}
	_, err = p.Client().CallTool(t.Context(), &pluginproto.CallToolRequest{Arguments: make([]byte, 17<<20)})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a request of 17 MiB gave %v, want ResourceExhausted", err)
	}
	healthy(t, p)
}

func TestWhatAPluginStartedEndsWithIt(t *testing.T) {
	for _, how := range []string{"stop", "crash"} {
		t.Run(how, func(t *testing.T) {
			p := newRig(t).start(t, spec(""))
			pid, err := strconv.Atoi(call(t, p, "grandchild", nil))
			must(t, err)
			if how == "stop" {
				p.Stop(t.Context())
			} else {
				p.Client().CallTool(t.Context(), &pluginproto.CallToolRequest{Tool: "signal KILL"})
				exitOf(t, p)
			}
			for deadline := time.Now().Add(patient); alive(pid); {
				if time.Now().After(deadline) {
					t.Fatal("the process that the plugin started lives on")
				}
			}
		})
	}
}

func TestWhoHoldsThePipesOfAPluginIsNotWaitedFor(t *testing.T) {
	p := newRig(t).start(t, spec(""))
	pid, err := strconv.Atoi(call(t, p, "daemon", nil))
	must(t, err)
	defer syscall.Kill(pid, syscall.SIGKILL)
	p.Kill("test")
	exitOf(t, p)
	if !alive(pid) {
		t.Error("the daemon is gone, so that nothing was tested")
	}
	p.Stop(t.Context())
}

func TestAPinnedFileIsTheOneThatRuns(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	path := filepath.Join(dir, "plugin")
	copyTo(t, bad, path)
	f, err := Inspect(path)
	must(t, err)
	sum, err := f.Sum(t.Context())
	f.Close()
	must(t, err)
	r := newRig(t)
	s := Spec{Plugin: "p", Path: path, SHA256: fmt.Sprintf("%X", sum)}
	if got := call(t, r.start(t, s), "exe", nil); got != "first "+path {
		t.Errorf("%q runs", got)
	}

	copyTo(t, bad2, path)
	_, err = r.Start(t.Context(), s)
	var file *FileError
	if !errors.As(err, &file) || file.Rule != FileChecksum {
		t.Errorf("got %v, want the rule checksum", err)
	}

	// Swapped between hashing and executing.
	if runtime.GOOS != "linux" {
		return
	}
	copyTo(t, bad, path)
	f, err = Inspect(path)
	must(t, err)
	defer f.Close()
	must(t, f.verify(t.Context(), s.SHA256))
	copyTo(t, bad2, path)
	exec, byPath := f.execPath()
	p := newProcess(r.Launcher, Spec{Plugin: "p", Path: path, Timeouts: Timeouts{}.withDefaults()})
	d, err := r.sockets.newDir()
	must(t, err)
	defer d.remove()
	creds, err := p.shakeHands(t.Context(), exec, d.path)
	must(t, err)
	must(t, p.connect(t.Context(), creds))
	if !r.adopt(p) {
		t.Fatal("the launcher is closed")
	}
	go p.watch()
	if got := call(t, p, "exe", nil); got != "first "+path || byPath {
		t.Errorf("%q runs, and not what was hashed", got)
	}
}

func TestAScriptIsHashedAndRunByPathAndThisIsSaid(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	path := filepath.Join(dir, "plugin")
	write(t, path, "#!/bin/sh\nexec "+bad+"\n", 0o755)
	f, err := Inspect(path)
	must(t, err)
	sum, err := f.Sum(t.Context())
	f.Close()
	must(t, err)
	r := newRig(t)
	healthy(t, r.start(t, Spec{Plugin: "p", Path: path, SHA256: fmt.Sprintf("%x", sum)}))
	r.log.findLine(t, "executed by its path")
}

func TestTenPluginsStartAndStopTogether(t *testing.T) {
	r := newRig(t)
	before := held(r)
	begin := time.Now()
	var ps [10]*Process
	errs := make(chan error, len(ps))
	for i := range ps {
		go func() {
			var err error
			ps[i], err = r.Start(context.Background(), spec(""))
			errs <- err
		}()
	}
	for range ps {
		must(t, <-errs)
	}
	up := time.Since(begin)
	idle := held(r)
	begin = time.Now()
	done := make(chan Exit, len(ps))
	for _, p := range ps {
		go func() { done <- p.Stop(context.Background()) }()
	}
	for range ps {
		if exit := <-done; exit.Code != 0 {
			t.Errorf("exit %+v", exit)
		}
	}
	t.Logf("up in %v, stopped in %v", up, time.Since(begin))
	t.Logf("each costs the host %.1f goroutines, %.1f descriptors, %d KiB of heap",
		float64(idle.Goroutines-before.Goroutines)/10, float64(idle.Descriptors-before.Descriptors)/10, (int64(idle.Heap)-int64(before.Heap))/10/1024)
}

func BenchmarkStartAndStop(b *testing.B) {
	r := newRig(b)
	for _, mtls := range []bool{false, true} {
		b.Run(fmt.Sprintf("mtls=%v", mtls), func(b *testing.B) {
			s := spec("")
			s.MTLS = mtls
			for b.Loop() {
				r.start(b, s).Stop(context.Background())
			}
		})
	}
}

func BenchmarkCall(b *testing.B) {
	p := newRig(b).start(b, spec(""))
	req := &pluginproto.CallToolRequest{Tool: "answer 200"}
	for b.Loop() {
		if _, err := p.Client().CallTool(context.Background(), req); err != nil {
			b.Fatal(err)
		}
	}
}
