package sdk_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/host/config"
)

// block is one fenced block of a document.
var block = regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```")

// What docs/plugin-authors.md tells an author to do works, from nothing to a plugin that the host takes.
func TestTheGuideForAuthorsWorks(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a module and the host")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile(filepath.Join(root, "docs", "plugin-authors.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, text []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	commands := ""
	for _, m := range block.FindAllSubmatch(guide, -1) {
		kind, text := string(m[1]), m[2]
		switch kind {
		case "go":
			name, _, _ := bytes.Cut(text, []byte("\n"))
			write(strings.TrimPrefix(string(name), "// "), text)
		case "jsonl":
			write("session.jsonl", text)
		case "yaml":
			write(config.DefaultName, text)
		case "console":
			commands += string(text)
		default:
			t.Errorf("nobody tries a block of %s", kind)
		}
	}

	// The module as go get would leave it, with this checkout in place of a release.
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	own := bytes.Replace(mod, []byte("module github.com/foldhost/foldhost\n"), []byte("module example.com/goal\n"), 1)
	write("go.mod", append(own, []byte("\nrequire github.com/foldhost/foldhost v0.0.0\n\nreplace github.com/foldhost/foldhost => "+root+"\n")...))
	write("go.sum", sum)

	foldhost := filepath.Join(t.TempDir(), "foldhost")
	run(t, "..", "go", "build", "-o", foldhost, "./cmd/host")
	tried := 0
	for line := range strings.Lines(commands) {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if !ok || strings.Contains(command, "go mod init") || strings.Contains(command, "go get") || strings.HasPrefix(command, "mkdir goal") {
			continue
		}
		for part := range strings.SplitSeq(command, " && ") {
			words := strings.Fields(part)
			if before, quoted, is := strings.Cut(part, "'"); is {
				quoted, after, _ := strings.Cut(quoted, "'")
				words = append(append(strings.Fields(before), quoted), strings.Fields(after)...)
			}
			if words[0] == "curl" || strings.HasPrefix(part, "foldhost plugin restart") {
				continue // It needs a server.
			}
			if words[0] == "foldhost" {
				words[0] = foldhost
			}
			if words[0] == "plugins/goal" {
				words[0] = filepath.Join(dir, "plugins", "goal")
				if err := os.Chmod(filepath.Join(dir, "plugins"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(words[0], 0o755); err != nil {
					t.Fatal(err)
				}
			}
			out := run(t, dir, words...)
			tried++
			if (strings.Contains(part, "replay") || strings.Contains(part, "show")) && !strings.Contains(out, "write a plugin") {
				t.Errorf("the value is not shown:\n%s", out)
			}
		}
	}
	if tried < 10 {
		t.Errorf("only %d commands were found", tried)
	}
}

func run(t *testing.T, dir string, words ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir = dir
	if dir != ".." {
		// The module of the guide may be completed; this one may not.
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off")
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return string(out)
}
