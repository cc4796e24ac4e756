package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/client"
)

// presetConfig writes a configuration with a preset in which two shipped plugins have other configs, and one that has not what its plugin wants.
func presetConfig(t *testing.T, more string) string {
	t.Helper()
	return write(t, "foldhost.yaml", `
plugins:
  todo: {config: {allowParallelInProgress: true}}
  imagelimits: {config: {maxImagesPerMessage: 20}}
presets:
  single: {todo: {config: {allowParallelInProgress: false}}, imagelimits: {config: {maxImagesPerMessage: 3}}}
`+more)
}

// Given a server with a preset, then sessions of it and of the default set have their own values and tools at the same time, also in lists, and after a new start; a log of it is
// replayed by the preset.
func TestPresets(t *testing.T) {
	config, data := presetConfig(t, ""), filepath.Join(t.TempDir(), "data")
	s := serve(t, data, "--config", config)
	do := func(args ...string) run {
		t.Helper()
		return foldhost(t, "", append(args, "--data", data, "--config", config)...)
	}
	ask := func(method, path, body string, want int) string {
		t.Helper()
		status, text := s.do(method, path, body)
		if status != want {
			t.Fatalf("%s %s: %d %s", method, path, status, text)
		}
		return text
	}
	if one := into[client.Session](t, do("session", "create", "one", "--preset", "single", "--json").want(t, 0)); one.Header.AgentPreset == nil || *one.Header.AgentPreset != "single" {
		t.Errorf("created %+v", one)
	}
	do("session", "create", "all").want(t, 0)
	if r := do("session", "create", "--preset", "none", "--json").want(t, 1); !strings.Contains(r.stdout, `"preset-unknown"`) {
		t.Errorf("an unknown preset: %s", r.stdout)
	}
	const both = `{"arguments":{"todos":[{"content":"a","status":"in_progress"},{"content":"b","status":"in_progress"}]}}`
	for id, isError := range map[string]string{"one": `"isError":true`, "all": `"isError":false`} {
		if text := ask("POST", "/v1/sessions/"+id+"/tools/todo_write", both, 200); !strings.Contains(text, isError) {
			t.Errorf("%s: %s", id, text)
		}
	}
	ask("POST", "/v1/sessions/one/events", titleOf, 200)
	images := func() {
		t.Helper()
		for id, n := range map[string]string{"one": `"maxImagesPerMessage":3`, "all": `"maxImagesPerMessage":20`} {
			if text := ask("GET", "/v1/sessions/"+id+"/projections", "", 200); !strings.Contains(text, n) || strings.Contains(text, `"title"`) != (id == "all") {
				t.Errorf("%s: %s", id, text)
			}
		}
	}
	images()
	if text := ask("GET", "/v1/plugins?preset=single", "", 200); strings.Count(text, `"presets":["single"],"presetOnly":true`) != 2 {
		t.Errorf("the plugins of the preset: %s", text)
	}
	if text := ask("GET", "/readyz", "", 200); !strings.Contains(text, `"missing":[]`) {
		t.Errorf("missing: %s", text)
	}
	s.kill()
	s = serve(t, data, "--config", config)
	images()
	if r := do("session", "show", "one").want(t, 0); !strings.Contains(r.stdout, "preset single") || r.stderr != "" {
		t.Errorf("people see %s%s", r.stdout, r.stderr)
	}
	log := filepath.Join(t.TempDir(), "one.jsonl")
	do("export", "--session", "one", log).want(t, 0)
	s.kill()

	if got := string(foldhost(t, "", "replay", "--json", "--config", config, log).want(t, 0).object(t).Values["imageLimits"]); !strings.Contains(got, `"maxImagesPerMessage":3`) {
		t.Errorf("replayed: %s", got)
	}
	// Without the preset the default set serves, and says so.
	if err := os.WriteFile(config, []byte(strings.SplitN(read(t, config), "presets:", 2)[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	r := foldhost(t, "", "replay", "--json", "--config", config, log).want(t, 0)
	if got := string(r.object(t).Values["imageLimits"]); !strings.Contains(got, `"maxImagesPerMessage":20`) || !strings.Contains(r.stderr, `the preset "single"`) {
		t.Errorf("replayed without it: %s\n%s", got, r.stderr)
	}
	if r := do("session", "show", "one", "--keys", "imageLimits").want(t, 0); !strings.Contains(r.stdout, "20") || !strings.Contains(r.stderr, `the preset "single"`) {
		t.Errorf("people see %s%s", r.stdout, r.stderr)
	}
}

// Given a preset with a config that its plugin does not take, then the commands that look at plugins name the place, and the rest serves.
func TestAWrongConfigOfAPresetIsNamedWithItsPlace(t *testing.T) {
	config := presetConfig(t, "  wrong: {todo: {config: {allowParallelInProgress: 1}}, title: {}}\n  empty: {}\n")
	const place = "presets.wrong.todo.config.allowParallelInProgress"
	r := foldhost(t, "", "plugin", "list", "--config", config).want(t, 1)
	if !strings.Contains(r.stdout, place) || !strings.Contains(r.stdout, "(default), wrong") || !regexp.MustCompile(`^NAME .* TOOLS +SETS\n`).MatchString(r.stdout) || !strings.Contains(r.stdout, "todo of preset wrong (parked)") {
		t.Errorf("the list is %s", r.stdout)
	}
	foldhost(t, "", "plugin", "list", "--config", config, "--preset", "single").want(t, 0)
	if r := foldhost(t, "", "plugin", "list", "--config", config, "--preset", "none").want(t, 1); !strings.Contains(r.stderr, "empty, single, wrong") {
		t.Errorf("an unknown preset: %s", r.stderr)
	}
	if r := foldhost(t, "", "plugin", "inspect", "--config", config, "--preset", "wrong", shippedPlugin("todo")).want(t, 1); !strings.Contains(r.stderr, place) {
		t.Errorf("inspected: %s", r.stderr)
	}
	foldhost(t, "", "plugin", "validate", "--config", config, "--preset", "single", os.Getenv("FOLDHOST_PLUGIN_DIR")).want(t, 0)
	if r := foldhost(t, "", "plugin", "validate", "--config", config, "--preset", "empty", os.Getenv("FOLDHOST_PLUGIN_DIR")).want(t, 1); !strings.Contains(r.stderr, `preset "empty" names none of the plugins in`) {
		t.Errorf("a preset that names no plugin: %s%s", r.stdout, r.stderr)
	}
	if r := foldhost(t, "", "plugin", "validate", "--config", config, "--preset", "single", shippedPlugin("title")).want(t, 1); !strings.Contains(r.stderr, "does not name") {
		t.Errorf("a plugin that the preset does not name: %s%s", r.stdout, r.stderr)
	}
	s := serve(t, filepath.Join(t.TempDir(), "data"), "--config", config)
	s.do("POST", "/v1/sessions", `{"id":"s","preset":"wrong"}`)
	if status, text := s.do("GET", "/v1/sessions/s/projections", ""); status != 200 || !strings.Contains(text, `"title"`) {
		t.Errorf("%d %s", status, text)
	}
}
