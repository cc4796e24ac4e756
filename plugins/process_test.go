package plugins_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
	"github.com/foldhost/foldhost/internal/corpus"
	"github.com/foldhost/foldhost/plugins/imagelimits/limitsunit"
	"github.com/foldhost/foldhost/plugins/todo/todounit"
	"github.com/foldhost/foldhost/sdk/plugintest"
	"github.com/foldhost/foldhost/unit"
)

// bin is where the plugins lie.
var bin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "plugins")
	if err != nil {
		panic(err)
	}
	bin = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// executable builds a plugin that ships, once.
func executable(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(bin, name)
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if out, err := exec.Command("go", "build", "-o", path, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", name, err, out)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

var configs = map[string]string{"todo": `{"allowParallelInProgress":false}`}

func TestTheShippedPluginsAsProcesses(t *testing.T) {
	todo := plugintest.Process(t, executable(t, "todo"), plugintest.JSON(configs["todo"]))
	write := func(content string) plugintest.Input {
		return plugintest.Event("todo/write", todounit.Write{Todos: todounit.Todos{{Content: content, Status: todounit.Pending}}})
	}
	todo.Unit("todos").Given().Then(nil)
	todo.Unit("todos").Given(write("a"), write("b"), plugintest.Event("turn/end", nil)).Then(todounit.Todos{{Content: "b", Status: todounit.Pending}})
	todo.Unit("todos").Given(write("a"), plugintest.Event("turn/start", nil)).Then(nil)
	todo.Tool("todo_write").Called(write(" a ").Data, nil).ThenText("Updated todo list: 1 pending, 0 in progress, 0 completed.").ThenAppends(write("a"))
	todo.Tool("todo_write").Called(plugintest.JSON(`{"todos":[{"content":"a","status":"in_progress"},{"content":"b","status":"in_progress"}]}`), nil).ThenRefused()

	title := plugintest.Process(t, executable(t, "title"), nil)
	title.Unit("title").Given(plugintest.Event("session/title", map[string]string{"title": "t"})).ThenSent("t")

	limits := limitsunit.Default()
	limits.MaxImagesPerMessage = 3
	images := plugintest.Process(t, executable(t, "imagelimits"), plugintest.JSON(`{"maxImagesPerMessage":3}`))
	images.Unit("imageLimits").Given(plugintest.Event("turn/start", nil)).Then(limits).ThenState(nil).ThenSent()

	usage := plugintest.Process(t, executable(t, "tokenusage"), nil)
	usage.Unit("tokenUsage").Given(plugintest.Event("assistant/message", plugintest.JSON(`{"turn":1,"step":1,"usage":{"inputTokens":5}}`))).
		Then(plugintest.JSON(`{"uncachedInputTokens":5,"outputTokens":0,"cacheReadTokens":0,"cacheWriteTokens":0}`))
}

// maxLogs is how many logs are folded through processes: each is folded some twenty times, and the host's own tests fold them all once.
const maxLogs = 12

// A unit gives the same bytes in this process and in one of its own.
func TestAProcessGivesTheBytesOfTheSameUnitHere(t *testing.T) {
	logs := corpus.Logs(t)
	units := map[string]*unit.Compiled{}
	for _, u := range shipped(t) {
		units[u.Key] = u
	}
	for name, key := range map[string]string{"todo": "todos", "title": "title", "imagelimits": "imageLimits", "tokenusage": "tokenUsage"} {
		t.Run(name, func(t *testing.T) {
			c := config.Plugin{}
			if text := configs[name]; text != "" {
				c.Config = json.RawMessage(text)
			}
			trial, err := host.Try(context.Background(), executable(t, name), host.InspectOptions{Config: &config.File{Plugins: map[string]config.Plugin{name: c}}})
			if err != nil {
				t.Fatal(err)
			}
			defer trial.Close()
			for i := 0; i < len(logs); i += max(1, len(logs)/maxLogs) {
				events := decoded(t, logs[i])
				here := plugintest.Check(units[key].Definition, events)
				there, err := trial.Fold(t.Context(), key, events)
				if err != nil {
					t.Fatal(err)
				}
				if len(there.Broken) > 0 || !here.OK() {
					t.Errorf("%s: broken laws: %v; here %v", logs[i].Name, there.Broken, here)
				}
				var want []plugintest.Step
				for _, s := range here.Steps {
					if s.Seq < 0 || s.Sent {
						want = append(want, s)
					}
				}
				if len(there.Values) != len(want) {
					t.Fatalf("%s: %d values, want %d", logs[i].Name, len(there.Values), len(want))
				}
				for j, v := range there.Values {
					if v.Seq != want[j].Seq || !bytes.Equal(v.View, want[j].View) {
						t.Fatalf("%s: value %d is %s at %d, want %s at %d", logs[i].Name, j, v.View, v.Seq, want[j].View, want[j].Seq)
					}
				}
				if last := here.Steps[len(here.Steps)-1].State; !bytes.Equal(there.State, last) {
					t.Errorf("%s: the state is %s, want %s", logs[i].Name, there.State, last)
				}
			}
		})
	}
}

func decoded(t *testing.T, log corpus.Log) []event.Event {
	t.Helper()
	events := make([]event.Event, len(log.Events))
	for i, line := range log.Events {
		d, err := event.DecodeDraft(line, 0)
		if err != nil {
			t.Fatal(err)
		}
		events[i] = d.Event
	}
	return events
}
