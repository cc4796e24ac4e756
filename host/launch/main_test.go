//go:build unix

package launch

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"context"

	"go.uber.org/goleak"

	"github.com/foldhost/foldhost/pluginproto"
)

// bad and bad2 are two builds of the misbehaving plugin.
var bad, bad2 string

func TestMain(m *testing.M) {
	if os.Getenv("LAUNCH_TEST_HOST") != "" {
		beHost()
		return
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "badplugin")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		os.Chmod(dir, 0o755)
		bad, bad2 = filepath.Join(dir, "bad"), filepath.Join(dir, "bad2")
		for path, version := range map[string]string{bad: "first", bad2: "second"} {
			cmd := exec.Command("go", "build", "-ldflags=-X main.version="+version, "-o", path, "./internal/badplugin")
			if out, err := cmd.CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "build the bad plugin: %v\n%s", err, out)
				return 1
			}
			os.Chmod(path, 0o755)
		}
		code := m.Run()
		if code == 0 {
			if err := goleak.Find(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
		return code
	}())
}

// patient is for what must come: long enough for a busy machine, and never waited out by a test that passes.
const patient = 30 * time.Second

// rig is a launcher with its log and its socket directory.
type rig struct {
	*Launcher
	log *logged
	dir string
}

func newRig(t testing.TB) *rig {
	t.Helper()
	// Short, as t.TempDir with the names of tests is not.
	dir, err := os.MkdirTemp("/tmp", "fh")
	if err != nil {
		t.Fatal(err)
	}
	log := &logged{arrived: make(chan struct{}, 1)}
	l, err := New(Options{SocketDir: dir, Logger: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{l, log, dir}
	t.Cleanup(func() {
		l.Close()
		if left := r.files(t); len(left) > 0 {
			t.Errorf("files are left: %v", left)
		}
		os.RemoveAll(dir)
	})
	return r
}

// files are the names of all that lies in the socket directory.
func (r *rig) files(t testing.TB) (names []string) {
	filepath.WalkDir(r.dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			t.Error(err)
		} else if path != r.dir {
			names = append(names, path)
		}
		return nil
	})
	return names
}

func spec(mode string) Spec {
	return Spec{Plugin: "bad", Path: bad, Env: []string{"BADPLUGIN=" + mode}}
}

func (r *rig) start(t testing.TB, s Spec) *Process {
	t.Helper()
	s.Timeouts.Start = patient
	p, err := r.Start(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// call has the plugin do something.
func call(t testing.TB, p *Process, tool string, args []byte) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	r, err := p.Client().CallTool(ctx, &pluginproto.CallToolRequest{Tool: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r.GetSuccess().GetText()
}

func healthy(t testing.TB, p *Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	if err := p.Health(ctx); err != nil {
		t.Errorf("the plugin is not healthy: %v", err)
	}
}

func exitOf(t testing.TB, p *Process) Exit {
	t.Helper()
	select {
	case <-p.Exited():
		return p.Exit()
	case <-time.After(patient):
		t.Fatal("the process did not end")
		panic("unreachable")
	}
}

// logged is a slog.Handler that keeps what it is given.
type logged struct {
	mu      sync.Mutex
	records []slog.Record
	arrived chan struct{}
}

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }
func (l *logged) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logged) WithGroup(string) slog.Handler            { return l }
func (l *logged) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	l.records = append(l.records, r)
	l.mu.Unlock()
	select {
	case l.arrived <- struct{}{}:
	default:
	}
	return nil
}

// find waits for a record.
func (l *logged) find(t testing.TB, what string, is func(slog.Record) bool) slog.Record {
	t.Helper()
	timeout := time.After(patient)
	for {
		l.mu.Lock()
		i := slices.IndexFunc(l.records, is)
		var r slog.Record
		if i >= 0 {
			r = l.records[i]
		}
		l.mu.Unlock()
		if i >= 0 {
			return r
		}
		select {
		case <-l.arrived:
		case <-timeout:
			t.Fatalf("nothing in the log: %s", what)
		}
	}
}

func (l *logged) findLine(t testing.TB, part string) slog.Record {
	t.Helper()
	return l.find(t, part, func(r slog.Record) bool { return strings.Contains(r.Message, part) })
}

func attr(r slog.Record, key string) string {
	value := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == key {
			value = a.Value.String()
		}
		return true
	})
	return value
}
