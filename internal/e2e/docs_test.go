package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every command in an sh block of a document works as it stands there, in the order of the document. What make runs is checked to be a target,
// because CI runs it for itself.
func TestTheCommandsOfTheDocumentsWork(t *testing.T) {
	docs, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, doc := range append(docs, more...) {
		commands := blockCommands(read(t, doc), "sh")
		found += len(commands)
		t.Run(filepath.Base(doc), func(t *testing.T) {
			dir := built(t)
			for _, c := range commands {
				t.Run(c, func(t *testing.T) { try(t, dir, quoted(c)) })
			}
		})
	}
	if found < 10 {
		t.Errorf("only %d commands found: has the form of the documents changed?", found)
	}
}

// built is a directory that looks like a checkout after make, as far as the binary can see: the examples, and the plugins in bin/plugins.
func built(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(root, "examples"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.Getenv("FOLDHOST_PLUGIN_DIR"), filepath.Join(dir, "bin", "plugins")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// try runs one command of a document: the binary in a directory that has the samples, the rest at the root.
func try(t *testing.T, dir string, words []string) {
	switch words[0] {
	case "bin/foldhost":
		foldhost(t, dir, words[1:]...).want(t, 0)
	case "make":
		if out, err := inRoot(append([]string{"make", "--dry-run"}, words[1:]...)).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	case "go":
		switch words[1] {
		case "test":
			words = []string{"go", "vet", words[len(words)-1]} // It is there and compiles; it runs elsewhere.
		case "tool":
			words = []string{"go", "list", words[2], "tool"} // It is in the module file; building it takes a minute.
		}
		if out, err := inRoot(words).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	default:
		t.Errorf("a document shows a command that this test can not run: %q", words)
	}
}

func inRoot(words []string) *exec.Cmd {
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = root
	return cmd
}

// What a document shows of the server, with curl in its console blocks, is answered well by a server that has nothing in it, in the order of the document. A stream is
// left once it has said its baseline.
func TestTheRequestsOfTheDocumentsWork(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("skipped: curl is not here")
	}
	found := 0
	for _, doc := range []string{"README.md", filepath.Join("docs", "events.md"), filepath.Join("docs", "server.md"), filepath.Join("docs", "operations.md")} {
		t.Run(filepath.Base(doc), func(t *testing.T) {
			s := serve(t, filepath.Join(t.TempDir(), "data"))
			for _, line := range blockCommands(read(t, filepath.Join(root, doc)), "console") {
				found++
				words := quoted(strings.ReplaceAll(line, "http://127.0.0.1:7420", s.url))
				if words[0] != "curl" {
					t.Fatalf("a document shows a command that this test can not run: %q", line)
				}
				cmd := inRoot(append([]string{curl, "--silent", "--show-error", "--fail-with-body"}, words[1:]...))
				if words[1] != "-N" {
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Errorf("%s: %v: %s", line, err, out)
					}
					continue
				}
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				said := bufio.NewScanner(out)
				for said.Scan() && !strings.Contains(said.Text(), "session/baseline") {
				}
				if !strings.Contains(said.Text(), "session/baseline") {
					t.Errorf("%s: it ended without a baseline: %v", line, said.Err())
				}
				cmd.Process.Kill()
				cmd.Wait()
			}
		})
	}
	if found < 8 {
		t.Errorf("only %d requests found: has the form of the documents changed?", found)
	}
}

// quoted are the words of a command line whose only quotes are single ones.
func quoted(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// blockCommands are the lines of the blocks of a language in a document.
func blockCommands(doc, language string) []string {
	var commands []string
	inside := false
	for line := range strings.Lines(doc) {
		line = strings.TrimSpace(line)
		switch {
		case line == "```"+language:
			inside = true
		case strings.HasPrefix(line, "```"):
			inside = false
		case inside && line != "" && !strings.HasPrefix(line, "#"):
			commands = append(commands, line)
		}
	}
	return commands
}
