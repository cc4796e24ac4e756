package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tokens writes a token file.
func tokens(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Given a server with tokens, reached by others or not, when commands are run, then those that have a token with the scope work, and no token stands in what anybody printed.
func TestCommandsAndTokens(t *testing.T) {
	file := tokens(t, "first-token read,append,admin\nsecond-token read\n")
	weak := tokens(t, "second-token read\n")
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		t.Run(listen, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			s := serve(t, data, "--token-file", file, "--listen", listen)
			if status, text := s.do("POST", "/v1/sessions", `{"id":"s"}`); status != 401 || !strings.Contains(text, `"unauthenticated"`) {
				t.Errorf("without a token: %d %s", status, text)
			}
			said := ""
			run := func(code int, args ...string) string {
				t.Helper()
				r := foldhost(t, t.TempDir(), append(args, "--data", data)...).want(t, code)
				said += r.stdout + r.stderr
				return r.stdout + r.stderr
			}
			run(0, "session", "create", "s", "--token-file", file)
			run(0, "session", "show", "s", "--token-file", weak)
			run(0, "store", "check", "--token-file", file)
			if out := run(1, "session", "delete", "s", "--token-file", weak, "--json"); !strings.Contains(out, `"forbidden"`) {
				t.Errorf("with another token: %s", out)
			}
			if out := run(1, "session", "list"); !strings.Contains(out, "--token-file") {
				t.Errorf("without a token: %s", out)
			}
			config := filepath.Join(t.TempDir(), "foldhost.yaml")
			if err := os.WriteFile(config, []byte("tokenFile: "+file+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			run(0, "session", "list", "--config", config)
			s.kill()
			if said += s.stderr.String(); strings.Contains(said, "first-token") || strings.Contains(said, "second-token") {
				t.Errorf("a token was printed: %s", said)
			}
		})
	}
}

// A token file that others can read is refused before anything is made.
func TestATokenFileThatOthersCanRead(t *testing.T) {
	file := tokens(t, "s3cret read\n")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if r := foldhost(t, dir, "serve", "--token-file", file, "--listen", "127.0.0.1:0").want(t, 1); !strings.Contains(r.stderr, "chmod 600 "+file) || strings.Contains(r.stderr, "s3cret") {
		t.Errorf("it says %s", r.stderr)
	}
	onlyFiles(t, dir)
}
