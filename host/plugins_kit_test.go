package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// built are test programs, built once for all tests and removed by TestMain.
var built struct {
	sync.Mutex
	dir   string
	paths map[string]string
}

func removeBuilt() {
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
}

// program builds a package of this module.
func program(t testing.TB, pkg string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if path := built.paths[pkg]; path != "" {
		return path
	}
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "foldhost-host-test-")
		if err != nil {
			t.Fatal(err)
		}
		built.dir, built.paths = dir, map[string]string{}
	}
	path := filepath.Join(built.dir, filepath.Base(pkg))
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if out, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, out)
	}
	built.paths[pkg] = path
	return path
}

// wrong is a configuration of one plugin, wrongplugin with arguments.
func wrong(t testing.TB, args ...string) config.Plugin {
	return config.Plugin{Command: program(t, "github.com/foldhost/foldhost/host/internal/wrongplugin"), Args: args}
}

type plugs map[string]config.Plugin

// openHost opens a host with these plugins and waits for their first starts.
func openHost(t testing.TB, p plugs, change ...func(*host.Options)) *host.Host {
	t.Helper()
	o := host.Options{
		Logger:  slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelInfo})),
		Plugins: &host.PluginOptions{Dir: t.TempDir(), Config: &config.File{Plugins: p}},
	}
	for _, c := range change {
		c(&o)
	}
	h, err := host.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("closing the host: %v", err)
		}
	})
	if err := h.WaitPlugins(context.Background()); err != nil {
		t.Fatal(err)
	}
	return h
}

// testLog is a test's log as a writer.
type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	if testing.Verbose() {
		l.t.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

func plugin(t testing.TB, h *host.Host, name string) host.Plugin {
	t.Helper()
	for _, p := range h.Plugins(context.Background()) {
		if p.Name == name {
			return p
		}
	}
	t.Fatalf("there is no plugin %q", name)
	return host.Plugin{}
}

// eventually waits until a condition holds, which it does not by itself at any known time: a process is involved.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("it never came: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func newSession(t testing.TB, h *host.Host, id string) *session.Session {
	t.Helper()
	s, err := h.Sessions().Create(context.Background(), session.New{Header: event.Header{ID: id}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// step appends a step event, poison a poisonous one.
func step(t testing.TB, s *session.Session, n int) {
	t.Helper()
	if _, err := s.Append(context.Background(), "step", map[string]int{"n": n}, session.Intent{}); err != nil {
		t.Fatal(err)
	}
}

func poison(t testing.TB, s *session.Session, how string) {
	t.Helper()
	if _, err := s.Append(context.Background(), "poison", map[string]string{"how": how}, session.Intent{}); err != nil {
		t.Fatal(err)
	}
}

// current waits until a session's block has every key, and gives it.
func current(t testing.TB, h *host.Host, s *session.Session, keys ...string) (block registry.Block) {
	t.Helper()
	defer func(before bool) {
		if t.Failed() && !before {
			t.Logf("values %q, unavailable %+v", block.Values, block.Unavailable)
			for _, p := range h.Plugins(context.Background()) {
				t.Logf("plugin %s is %s, %d restarts, last error %q", p.Name, p.State, p.Restarts, p.LastError)
			}
		}
	}(t.Failed())
	eventually(t, fmt.Sprintf("values of %v", keys), func() bool {
		var err error
		if block, err = h.Snapshot(context.Background(), s, keys...); err != nil {
			t.Fatal(err)
		}
		return len(block.Unavailable) == 0 && len(block.Values) >= len(keys)
	})
	return block
}

// value waits for the current value of a key.
func value(t testing.TB, h *host.Host, s *session.Session, key string) string {
	t.Helper()
	return string(current(t, h, s, key).Values[key])
}

type stats struct {
	Batches, Events int64
	Pid             int
}

func pluginStats(t testing.TB, h *host.Host, s *session.Session) (st stats) {
	t.Helper()
	r, err := h.CallTool(context.Background(), s, "stats", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(r.Value, &st); err != nil {
		t.Fatal(err)
	}
	return st
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// hostEnv makes this program a host that a test kills; see TestMain.
const hostEnv = "FOLDHOST_TEST_HOST"

// beHost opens a host with the plugin that the environment names, says the numbers of its processes, and waits to be killed.
func beHost() {
	h, err := host.Open(host.Options{Plugins: &host.PluginOptions{Dir: os.TempDir() + "/none", Config: &config.File{Plugins: map[string]config.Plugin{
		"a": {Command: os.Getenv(hostEnv)},
		"b": {Command: os.Getenv(hostEnv), Args: []string{"prefix=b/", "owns=b/thing"}},
	}}}})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	h.WaitPlugins(context.Background())
	for _, p := range h.Plugins(context.Background()) {
		fmt.Println(p.Pid)
	}
	select {}
}
