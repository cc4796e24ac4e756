//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestPluginListShowsWhatItRefuses: given a file that would be a plugin and cannot be one, plugin list names it, asked for or not, and fails; what is
// simply something else it names when it is asked, and does not fail.
func TestPluginListShowsWhatItRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		make    func(path string) error
		config  string
		refused bool
		code    int
	}{
		"a file that all can write": {func(p string) error { return mode(p, 0o777) }, "", true, 1},
		"a link to nothing":         {func(p string) error { return os.Symlink(p+"-gone", p) }, "", true, 1},
		"an empty file":             {func(p string) error { return os.WriteFile(p, nil, 0o755) }, "", true, 1},
		"one that is switched off":  {func(p string) error { return mode(p, 0o777) }, "plugins: {it: {disabled: true}}\n", true, 0},
		"an empty text":             {func(p string) error { return os.WriteFile(p, nil, 0o644) }, "", false, 0},
		"a text":                    {func(p string) error { return mode(p, 0o644) }, "", false, 0},
		"a directory":               {func(p string) error { return os.Mkdir(p, 0o755) }, "", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			config := filepath.Join(t.TempDir(), "foldhost.yaml")
			if err := os.WriteFile(config, []byte(c.config), 0o600); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "it")
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			for _, all := range []bool{false, true} {
				args := []string{"plugin", "list", "--json", "--config", config, "--plugins", dir}
				if all {
					args = append(args, "--all")
				}
				var out bytes.Buffer
				cmd := root()
				cmd.SetArgs(args)
				cmd.SetOut(&out)
				cmd.SetErr(&out)
				if code := exitCode(cmd.ExecuteContext(t.Context())); code != c.code {
					t.Errorf("exit code %d, want %d", code, c.code)
				}
				var got struct {
					Passed []struct {
						Path, Reason string
						Refused      bool
					}
				}
				if err := json.Unmarshal(out.Bytes(), &got); err != nil {
					t.Fatalf("%v in %s", err, &out)
				}
				shown := len(got.Passed) == 1 && got.Passed[0].Path == path && got.Passed[0].Reason != "" && got.Passed[0].Refused == c.refused
				if want := all || c.refused; shown != want || len(got.Passed) > 1 {
					t.Errorf("with all %v it names %v", all, got.Passed)
				}
			}
		})
	}
}

// mode writes a script of a mode, whatever the umask.
func mode(path string, m os.FileMode) error {
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o600); err != nil {
		return err
	}
	return os.Chmod(path, m)
}

func TestWrongNumbersOfArgumentsAreUsage(t *testing.T) {
	for _, args := range [][]string{{"plugin", "inspect"}, {"plugin", "inspect", "a", "b"}, {"plugin", "validate"}, {"plugin", "test"}} {
		cmd := root()
		cmd.SetArgs(args)
		var out bytes.Buffer
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		if code := exitCode(cmd.ExecuteContext(t.Context())); code != exitUsage {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}
