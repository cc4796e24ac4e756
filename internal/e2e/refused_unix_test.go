//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that would be a plugin and is not safe to run is not passed over in silence: its keys are missing, as if it had not started.
func TestReplaySaysWhichPluginFilesItRefused(t *testing.T) {
	title, err := os.ReadFile(shippedPlugin("title"))
	if err != nil {
		t.Fatal(err)
	}
	sample := filepath.Join(root, "examples", "sessions", "dry-run.jsonl")
	for name, c := range map[string]struct {
		file, dir os.FileMode
		code      int
	}{
		"a sound plugin":                {0o755, 0o755, 0},
		"a file that all can write":     {0o757, 0o755, 1},
		"a directory all can write":     {0o755, 0o777, 1},
		"a file that is not executable": {0o644, 0o755, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "title")
			if err := os.WriteFile(file, title, 0o600); err != nil {
				t.Fatal(err)
			}
			for path, mode := range map[string]os.FileMode{file: c.file, dir: c.dir} {
				if err := os.Chmod(path, mode); err != nil { // Whatever the umask.
					t.Fatal(err)
				}
			}
			config := write(t, "foldhost.yaml", "{}\n")
			r := foldhost(t, "", "replay", "--config", config, "--plugins", dir, "--json", sample).want(t, c.code)
			if refused := strings.Contains(r.stderr, file+": "); refused != (c.code == 1) {
				t.Errorf("stderr: %s", r.stderr)
			}
			if !r.objects(t)[0].Accepted {
				t.Error("the log was sound")
			}
		})
	}
}

// A server goes on without a plugin that is missing, refused, or not content with its config, and its log says of each once what is wrong; of those that serve it says nothing.
func TestServeLogsWhichPluginsItGoesOnWithout(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"title": 0o755, "todo": 0o755, "tokenusage": 0o757} {
		file, err := os.ReadFile(shippedPlugin(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), file, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	config := write(t, "foldhost.yaml", "plugins: {titel: {}, todo: {config: {allowParallel: true}}}\n")
	s := serve(t, filepath.Join(t.TempDir(), "data"), "--config", config, "--plugins", dir, "--log-format", "text")
	s.kill()
	log := s.stderr.String()
	for _, want := range []string{
		"a plugin of the configuration is missing: plugin=titel ",
		"is refused, and the host goes on without it: plugin=tokenusage ",
		"a plugin did not start and is parked; it is tried again when somebody asks for it: plugin=todo ",
	} {
		if strings.Count(log, want) != 1 {
			t.Errorf("the log does not say %q once:\n%s", want, log)
		}
	}
	// One record for each, which names the field and what to do.
	if n := strings.Count(log, "[ERROR]"); n != 1 {
		t.Errorf("the log has %d errors:\n%s", n, log)
	}
	for _, part := range []string{"$.allowParallel: ", "correct plugins.todo.config in the configuration, and start the host again"} {
		if !strings.Contains(log, part) {
			t.Errorf("the log does not say %q:\n%s", part, log)
		}
	}
	for _, never := range []string{"drain", "plugin=title "} {
		if strings.Contains(log, never) {
			t.Errorf("the log says %q:\n%s", never, log)
		}
	}
}
