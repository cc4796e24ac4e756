//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"
)

// evilNames are names that steer a terminal when they reach it: its title, screen and colours, the direction of text, another line.
var evilNames = []string{"ev\x1b]0;owned\ail", "ev\x1b[2Jil", "c1\u009b31m", "raw\x9b31m", "bad\xff\xfe", "del\x7f", "bidi\u202e", "two\nlines", "back\rover", "tab\tbed"}

// TestNothingSteersATerminal: given a directory in which names of files are evil, and plugins that say evil things, no command lets any of it
// through; what it prints for programs is JSON.
func TestNothingSteersATerminal(t *testing.T) {
	wrong := filepath.Join(t.TempDir(), "wrongplugin")
	cmd := exec.Command("go", "build", "-o", wrong, "./host/internal/wrongplugin")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// A plugin of each mode; YAML writes names of any kind in double quotes.
	var yaml strings.Builder
	yaml.WriteString("plugins:\n")
	for i, mode := range []string{"evil", "evil-describe", "evil-problem", "evil-greeting"} {
		fmt.Fprintf(&yaml, "  %s: {command: %s, args: [%s, prefix=p%d/]}\n", quoteYAML("plugin\x1b[2J\n"+mode), wrong, mode, i)
	}
	fmt.Fprintf(&yaml, "  wrongplugin: {args: [evil], disabled: true}\n  %s: {}\n", quoteYAML("gone\x1b[2J"))
	config := write(t, "evil\x1b[31m.yaml", yaml.String())
	broken := write(t, "broken\x1b[31m.yaml", fmt.Sprintf("plugins:\n  %s: {unknown: 1}\n%s: 2\n", quoteYAML("a\x1b[2J\nb"), quoteYAML("\u009b31m")))
	noYAML := write(t, "no\x1byaml", "a: [\x1b[2J")

	dir, logs := t.TempDir(), t.TempDir()
	var files []string
	for i, name := range evilNames {
		path := filepath.Join(dir, name)
		var err error
		switch i % 5 {
		case 0: // Refused for its mode.
			if err = os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err == nil {
				err = os.Chmod(path, 0o777)
			}
		case 1: // Refused as it leads nowhere.
			err = os.Symlink("nowhere\x1b[2J", path)
		case 2: // Fails with evil words.
			err = os.WriteFile(path, []byte("#!/bin/sh\nprintf 'greeting\\033[2J\\n'\nprintf 'last\\033[31m words\\2331\\n' >&2\nexit 3\n"), 0o700)
		case 3: // Simply something else.
			err = os.WriteFile(path, []byte("text"), 0o600)
		case 4: // Interpreter with an evil name.
			err = os.WriteFile(path, []byte("#!/no/\x1b[2Jsuch\n"), 0o700)
		}
		log := filepath.Join(logs, name)
		if err == nil {
			err = os.WriteFile(log, []byte(header+note(0, "a\x1b[2J")+`{"type":"poison","seq":1,"time":1,"data":{"how":"evil"}}`+"\n"+`{"ty`), 0o600)
		}
		if errors.Is(err, syscall.EILSEQ) {
			continue // A file system that takes only UTF-8.
		}
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	calls := [][]string{
		{"plugin", "list"}, {"plugin", "list", "--all"}, {"plugin", "validate", dir}, {"plugin", "inspect", wrong, "--config", write(t, "c.yaml", "plugins: {wrongplugin: {args: [evil]}}")},
		{"plugin", "validate", wrong, "--config", write(t, "c.yaml", "plugins: {wrongplugin: {args: [evil]}}")},
		{"plugin", "list", "--plugins", dir + "\x1b[2J"}, {"plugin", "list", "--config", broken}, {"plugin", "list", "--config", noYAML}, {"plugin", "list", "--config", "no\x1b[2J"},
		{"plugin", "\x1b[2J"}, {"\x1b[2J"}, {"replay", "--\x1b[2J"}, {"replay", "--at", "\x1b[2J", "x"}, {"plugin", "test", wrong, "--log", "no\x1b[2J"},
		{"export", "--compress", "\x1b[2J", "in", "out"}, {"help", "\x1b[2J"}, {"version"}, {"plugin", "list", "-v"},
	}
	for i, name := range files {
		log := filepath.Join(logs, name)
		calls = append(calls, []string{"plugin", "inspect", filepath.Join(dir, name)}, []string{"plugin", "validate", filepath.Join(dir, name)},
			[]string{"import", log, log + ".out"}, []string{"import", log, log + ".out"}, []string{"export", log, filepath.Join(logs, "no", name)}, []string{"import", "--strict", log + "-gone", "x"})
		if i < 2 { // Each starts all plugins.
			calls = append(calls, []string{"replay", log}, []string{"replay", log + "-gone", log}, []string{"plugin", "test", filepath.Join(dir, name), "--log", log})
		}
	}
	for _, call := range calls {
		for _, asJSON := range []bool{false, true} {
			args := slices.Clone(call)
			if asJSON {
				args = append(args, "--json")
			}
			t.Run(strconv.Quote(strings.Join(args, " ")), func(t *testing.T) {
				t.Parallel()
				if call[0] == "plugin" || call[0] == "replay" {
					args = withDefault(args, "--config", config)
					args = withDefault(args, "--plugins", dir)
				}
				r := foldhost(t, t.TempDir(), args...)
				steers(t, "stderr", r.stderr)
				if !asJSON || r.code == 2 || call[0] == "help" {
					steers(t, "stdout", r.stdout)
					return
				}
				for line := range strings.Lines(r.stdout) {
					if !json.Valid([]byte(line)) || !utf8.ValidString(line) {
						t.Errorf("no JSON: %q", line)
					}
				}
			})
		}
	}
}

// withDefault adds a flag unless it is there.
func withDefault(args []string, flag, value string) []string {
	if slices.Contains(args, flag) {
		return args
	}
	return append(args, flag, value)
}

// steers fails where a text holds what a terminal does not simply show.
func steers(t *testing.T, what, text string) {
	t.Helper()
	for i, r := range text {
		_, size := utf8.DecodeRuneInString(text[i:])
		if r == '\n' || r == '\t' || unicode.IsPrint(r) && !(r == utf8.RuneError && size == 1) {
			continue
		}
		t.Errorf("%q reaches %s: …%q", r, what, text[max(0, i-60):min(len(text), i+20)])
		return
	}
}

// quoteYAML writes a text as YAML's double quotes have it.
func quoteYAML(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r < ' ' || r == '"' || r == '\\' || r > '~' {
			fmt.Fprintf(&b, `\U%08x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
