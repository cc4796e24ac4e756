package discover_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/foldhost/foldhost/host/discover"
	"github.com/foldhost/foldhost/host/launch"
)

func write(t *testing.T, path, text string, mode fs.FileMode) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // Whatever the umask.
		t.Fatal(err)
	}
	return path
}

func TestTheDirectoryRule(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("skipped: there are no modes of files here")
	}
	dir := t.TempDir()
	script := "#!/bin/sh\n"
	write(t, filepath.Join(dir, "todo"), script, 0o755)
	write(t, filepath.Join(dir, "todo.exe"), script, 0o755)
	write(t, filepath.Join(dir, "tool.EXE"), script, 0o700)
	write(t, filepath.Join(dir, "by-group"), script, 0o775)
	write(t, filepath.Join(dir, "notes.txt"), "text", 0o644)
	write(t, filepath.Join(dir, ".hidden"), script, 0o755)
	write(t, filepath.Join(dir, "open-to-all"), script, 0o757)
	write(t, filepath.Join(dir, "empty"), "", 0o755)
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"linked": "todo", "dangling": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	plugins, passed, err := discover.Dir(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range plugins {
		names = append(names, p.Name)
		if p.Path == "" || !filepath.IsAbs(p.Path) || (len(p.Warnings) > 0) != (p.Name == "by-group") {
			t.Errorf("%+v", p)
		}
	}
	if len(names) != 4 || names[0] != "by-group" || names[1] != "linked" || names[2] != "todo" || names[3] != "tool" {
		t.Errorf("plugins %v", names)
	}
	type verdict struct {
		rule    string
		refused bool
	}
	want := map[string]verdict{
		"todo.exe":    {discover.RuleNameTaken, true},
		"notes.txt":   {launch.FileNotExecutable, false},
		".hidden":     {discover.RuleHidden, false},
		"open-to-all": {launch.FileWorldWritable, true},
		"empty":       {launch.FileEmpty, true},
		"sub":         {launch.FileDirectory, false},
		"dangling":    {launch.FileDanglingLink, true},
	}
	for _, p := range passed {
		name := filepath.Base(p.Path)
		if got := (verdict{p.Rule, p.Refused}); got != want[name] || p.Reason == "" {
			t.Errorf("%s: %+v, want %+v", name, p, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("passed over in silence: %v", want)
	}
}

func TestADirectoryThatIsNotThereIsAnErrorOnlyWhenNamed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	if plugins, passed, err := discover.Dir(missing, false); err != nil || len(plugins)+len(passed) > 0 {
		t.Errorf("the default one: %v", err)
	}
	var e *discover.Error
	if _, _, err := discover.Dir(missing, true); !errors.As(err, &e) || !errors.Is(err, fs.ErrNotExist) || e.Dir != missing {
		t.Errorf("a named one: %v", err)
	}
	file := write(t, filepath.Join(t.TempDir(), "file"), "text", 0o644)
	if _, _, err := discover.Dir(file, false); !errors.As(err, &e) {
		t.Errorf("a file: %v", err)
	}
}

func TestNames(t *testing.T) {
	for file, want := range map[string]string{"todo": "todo", "todo.exe": "todo", "a/b/todo.EXE": "todo", "todo.sh": "todo.sh", ".exe": ".exe", "x.exe.exe": "x.exe"} {
		if got := discover.Name(file); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
}
