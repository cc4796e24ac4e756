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
