package plugintest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/foldhost/foldhost/sdk/plugintest"
)

var binaries string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "plugintest")
	if err != nil {
		panic(err)
	}
	binaries = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var building sync.Mutex

// build builds a program of this module, once.
func build(t *testing.T, pkg string) string {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	path := filepath.Join(binaries, filepath.Base(pkg))
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if out, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, out)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheSameCasesThroughAProcess(t *testing.T) {
	p := plugintest.Process(t, build(t, "github.com/foldhost/foldhost/sdk/internal/oddplugin"), nil)
	tick := func(n int) plugintest.Input { return plugintest.Event("odd/tick", map[string]int{"n": n}) }
	p.Unit("ticks").Given().Then(0).ThenState(0)
	p.Unit("ticks").Given(tick(2), plugintest.Event("turn/start", map[string]int{"turn": 1}), tick(0), tick(3)).ThenSent(2, 5).Then(5).ThenState(5)
	p.Unit("ticks").Given(tick(2), tick(-1), tick(3)).ThenFault(1).Then(2).ThenState(2)

	args := map[string]string{"text": "x"}
	p.Tool("tick").Called(args, map[string]any{"ticks": 7}).ThenText("7 ticks so far").ThenValue(args).ThenAppends(tick(1))
	p.Tool("panic").Called(args, nil).ThenRefused()
	p.Tool("tick").Called(plugintest.JSON(`{"text":1}`), nil).ThenRefused()
}

func TestWhatIsWrongIsReported(t *testing.T) {
	path := build(t, "github.com/foldhost/foldhost/sdk/internal/oddplugin")
	tick := plugintest.Event("odd/tick", map[string]int{"n": 1})
	for name, f := range map[string]func(plugintest.TB){
		"a file that is not there":  func(r plugintest.TB) { plugintest.Process(r, path+"-not", nil) },
		"a config that is refused":  func(r plugintest.TB) { plugintest.Process(r, path, map[string]bool{"refuse": true}) },
		"a unit that is not there":  func(r plugintest.TB) { plugintest.Process(r, path, nil).Unit("none").Given() },
		"a tool that is not there":  func(r plugintest.TB) { plugintest.Process(r, path, nil).Tool("none").Called(nil, nil).ThenRefused() },
		"another value":             func(r plugintest.TB) { plugintest.Process(r, path, nil).Unit("ticks").Given(tick).Then(2) },
		"another state":             func(r plugintest.TB) { plugintest.Process(r, path, nil).Unit("ticks").Given(tick).ThenState(2) },
		"another number of values":  func(r plugintest.TB) { plugintest.Process(r, path, nil).Unit("ticks").Given(tick).ThenSent() },
		"a fault that is not there": func(r plugintest.TB) { plugintest.Process(r, path, nil).Unit("ticks").Given(tick).ThenFault(0) },
		"a fault that nobody expects": func(r plugintest.TB) {
			plugintest.Process(r, path, nil).Unit("ticks").Given(plugintest.Event("odd/tick", "x"))
		},
		"a refusal that does not come": func(r plugintest.TB) {
			plugintest.Process(r, path, nil).Tool("tick").Called(plugintest.JSON(`{"text":""}`), nil).ThenRefused()
		},
		"a refusal that nobody expects": func(r plugintest.TB) { plugintest.Process(r, path, nil).Tool("tick").Called(nil, nil).ThenText("") },
		"another text": func(r plugintest.TB) {
			plugintest.Process(r, path, nil).Tool("tick").Called(plugintest.JSON(`{"text":""}`), nil).ThenText("x")
		},
		"another structured value": func(r plugintest.TB) {
			plugintest.Process(r, path, nil).Tool("tick").Called(plugintest.JSON(`{"text":""}`), nil).ThenValue(1)
		},
		"an event that is not appended": func(r plugintest.TB) {
			plugintest.Process(r, path, nil).Tool("tick").Called(plugintest.JSON(`{"text":""}`), nil).ThenAppends()
		},
		"an event of another type": func(r plugintest.TB) {
			plugintest.Process(r, path, nil).Tool("tick").Called(plugintest.JSON(`{"text":""}`), nil).ThenAppends(plugintest.Event("x", nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := failures(t, f); len(got) != 1 {
				t.Errorf("%d complaints, want one", len(got))
			}
		})
	}
}
