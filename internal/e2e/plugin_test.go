package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// listed is a plugin as `plugin list --json` and its sisters print it.
type listed struct {
	Name, Path, State, Reason, Version, SHA256, Format string
	Units                                              []struct{ Key string }
	Tools                                              []struct{ Name string }
	Checks                                             []struct{ Name, State, Detail string }
	OK                                                 *bool
}

func (r run) plugin(t *testing.T) (p listed) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.stdout), &p); err != nil {
		t.Fatalf("%v in %.500s", err, r.stdout)
	}
	return p
}

func shippedPlugin(name string) string {
	return filepath.Join(os.Getenv("FOLDHOST_PLUGIN_DIR"), name)
}

func TestPluginListSaysHowEachStands(t *testing.T) {
	var all struct {
		Plugins []listed
		Passed  []struct{ Path, Rule string }
	}
	r := foldhost(t, "", "plugin", "list", "--json", "--all").want(t, 0)
	if err := json.Unmarshal([]byte(r.stdout), &all); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range all.Plugins {
		names = append(names, p.Name)
		if p.State != "ready" || len(p.Units) != 1 || len(p.SHA256) != 64 {
			t.Errorf("%+v", p)
		}
	}
	if !slices.Equal(names, []string{"imagelimits", "title", "todo", "tokenusage"}) {
		t.Errorf("plugins %v", names)
	}
	if out := foldhost(t, "", "plugin", "list").want(t, 0).stdout; !strings.Contains(out, "todo_write") {
		t.Errorf("for people:\n%s", out)
	}
}

func TestPluginListNamesWhatDoesNotLoad(t *testing.T) {
	config := write(t, "foldhost.yaml", "plugins: {imagelimits: {config: {maxImagesPerMessage: many}}, gone: {}, title: {disabled: true}}\n")
	r := foldhost(t, "", "plugin", "list", "--config", config).want(t, 1)
	for _, want := range []string{"$.allowParallelInProgress", "$.maxImagesPerMessage", "gone", "disabled"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is not in\n%s", want, r.stdout)
		}
	}
}

func TestPluginInspectShowsEverything(t *testing.T) {
	p := foldhost(t, "", "plugin", "inspect", "--json", shippedPlugin("todo")).want(t, 0).plugin(t)
	if p.Name != "todo" || p.Version == "" || p.Format == "" || len(p.Units) != 1 || len(p.Tools) != 1 {
		t.Errorf("%+v", p)
	}
	if out := foldhost(t, "", "plugin", "inspect", shippedPlugin("todo")).want(t, 0).stdout; !strings.Contains(out, "todos") || !strings.Contains(out, "todo/write") {
		t.Errorf("for people:\n%s", out)
	}
}

func TestPluginValidateJudgesFilesAndDirectories(t *testing.T) {
	foldhost(t, "", "plugin", "validate", os.Getenv("FOLDHOST_PLUGIN_DIR")).want(t, 0)
	script := write(t, "noise", "#!/bin/sh\necho hello\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path, check string
	}{
		{"no plugin", script, "start"},
		{"a text file", write(t, "notes", "text"), "file"},
		{"nothing", filepath.Join(t.TempDir(), "none"), "file"},
		{"no config where one is required", shippedPlugin("todo"), "configure"},
	} {
		args := []string{"plugin", "validate", "--json", c.path}
		if c.check == "configure" {
			args = append(args, "--config", write(t, "foldhost.yaml", ""))
		}
		p := foldhost(t, "", args...).want(t, 1).plugin(t)
		failed := ""
		for _, one := range p.Checks {
			if one.State == "failed" && failed == "" {
				failed = one.Name
			}
		}
		if failed != c.check || p.OK == nil || *p.OK {
			t.Errorf("%s: failed at %q, want %q: %+v", c.name, failed, c.check, p.Checks)
		}
	}
	foldhost(t, "", "plugin", "validate", t.TempDir()).want(t, 1)
}

func TestPluginTestHoldsALogAgainstTheLaws(t *testing.T) {
	for _, name := range []string{"todo", "title", "tokenusage", "imagelimits"} {
		p := foldhost(t, "", "plugin", "test", "--json", shippedPlugin(name), "--log", sample("dry-run.jsonl")).want(t, 0).plugin(t)
		if p.OK == nil || !*p.OK {
			t.Errorf("%s: %+v", name, p.Checks)
		}
	}
	foldhost(t, "", "plugin", "test", shippedPlugin("todo"), "--log", "none.jsonl").want(t, 1)
}

func TestAWrongConfigurationIsRefusedWithItsPlace(t *testing.T) {
	config := write(t, "foldhost.yaml", "plugins:\n  todo: {konfig: {}}\n")
	r := foldhost(t, "", "replay", "--config", config, sample("dry-run.jsonl")).want(t, 1)
	if !strings.Contains(r.stderr, config+":2:10:") {
		t.Errorf("stderr: %s", r.stderr)
	}
	foldhost(t, "", "replay", "--config", "none.yaml", sample("dry-run.jsonl")).want(t, 1)
	foldhost(t, "", "replay", "--plugins", filepath.Join(t.TempDir(), "none"), sample("dry-run.jsonl")).want(t, 1)
}

// TestAReplayGoesOnWithoutThePluginThatDoesNotStart: the JSON comes all the same, and the exit code says that something is missing.
func TestAReplayGoesOnWithoutThePluginThatDoesNotStart(t *testing.T) {
	config := write(t, "foldhost.yaml", "") // todo wants a config.
	r := foldhost(t, "", "replay", "--json", "--config", config, sample("dry-run.jsonl")).want(t, 1)
	o := r.object(t)
	if !o.Accepted || o.Values["title"] == nil || o.Values["todos"] != nil {
		t.Errorf("%v", o.Values)
	}
	if !strings.Contains(r.stderr, "todo") || !strings.Contains(r.stderr, "$.allowParallelInProgress") {
		t.Errorf("stderr: %s", r.stderr)
	}
}
