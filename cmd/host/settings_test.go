package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// printed is what serve --print-config says, by name: the value and where it comes from.
func printed(t *testing.T, args ...string) map[string][2]string {
	t.Helper()
	out, err := call(t, append([]string{"serve", "--print-config"}, args...)...)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	line := regexp.MustCompile(`^(\S+) +(.*?) +\(([^()]*)\)$`)
	all := map[string][2]string{}
	for text := range strings.Lines(out) {
		m := line.FindStringSubmatch(strings.TrimSuffix(text, "\n"))
		if m == nil {
			t.Fatalf("a line is %q", text)
		}
		all[m[1]] = [2]string{m[2], m[3]}
	}
	return all
}

// Flags win, then the environment, then the file. Relative paths count from the file's directory in the file, and from where the command runs elsewhere.
func TestWhatHoldsAndWhereItComesFrom(t *testing.T) {
	for _, name := range []string{"FOLDHOST_CONFIG", "FOLDHOST_DATA", "FOLDHOST_LISTEN", "FOLDHOST_PLUGIN_DIR", "FOLDHOST_TOKEN_FILE", "FOLDHOST_DURABILITY", "FOLDHOST_LOG_FORMAT", "FOLDHOST_LOG_LEVEL"} {
		t.Setenv(name, "")
	}
	dir, etc := t.TempDir(), t.TempDir()
	t.Chdir(dir)
	here, err := os.Getwd() // A temporary directory may be a link.
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(here, name) }
	want := map[string][2]string{
		"config": {"none", "default"}, "data": {at("foldhost-data"), "default"}, "listen": {"127.0.0.1:7420", "default"}, "pluginDir": {at("plugins"), "default"}, "tokenFile": {"none", "default"},
		"durability": {"full", "default"}, "logFormat": {"auto", "default"}, "logLevel": {"warn", "default"}, "tls-cert": {"none", "default"}, "tls-key": {"none", "default"}, "allowedOrigins": {"none", "default"},
	}
	if diff := cmp.Diff(want, printed(t)); diff != "" {
		t.Errorf("nothing is said (-want +got):\n%s", diff)
	}

	file := filepath.Join(etc, "host.yaml")
	if err := os.WriteFile(file, []byte(`
data: d
listen: 127.0.0.1:1
pluginDir: ../p
tokenFile: /run/tokens
durability: relaxed
logFormat: json
logLevel: info
allowedOrigins: [https://a.example, "http://b.example:8080"]
plugins:
  todo: {config: {key: s3cret}, env: {TOKEN: s3cret}, args: [s3cret], memoryLimit: 1KiB, mtls: true, timeouts: {start: 3s}}
  title: {disabled: true, command: bin/title}
presets:
  single: {todo: {config: {key: s3cret}}, title: {}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	from := "file " + file
	want = map[string][2]string{
		"config": {file, "flag --config"}, "data": {filepath.Join(etc, "d"), from}, "listen": {"127.0.0.1:1", from}, "pluginDir": {filepath.Join(filepath.Dir(etc), "p"), from},
		"tokenFile": {"/run/tokens", from}, "durability": {"relaxed", from}, "logFormat": {"json", from}, "logLevel": {"info", from}, "tls-cert": {"none", "default"}, "tls-key": {"none", "default"},
		"allowedOrigins": {"https://a.example, http://b.example:8080", from}, "plugins.todo.config": {"***", from}, "plugins.todo.env.TOKEN": {"***", from}, "plugins.todo.args": {"***", from},
		"plugins.todo.memoryLimit": {"1024 bytes", from}, "plugins.todo.mtls": {"true", from}, "plugins.title.disabled": {"true", from},
		"presets.single.todo.config": {"***", from}, "presets.single.title.config": {"none", from},
		"plugins.title.command": {filepath.Join(etc, "bin", "title"), from},
	}
	got := printed(t, "--config", file)
	if timeouts := got["plugins.todo.timeouts"][0]; !strings.Contains(timeouts, "Start:3s") {
		t.Errorf("timeouts are %s", timeouts)
	}
	delete(got, "plugins.todo.timeouts")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the file says it (-want +got):\n%s", diff)
	}

	for name, value := range map[string]string{"CONFIG": file, "DATA": "d2", "LISTEN": "127.0.0.1:2", "PLUGIN_DIR": "p2", "TOKEN_FILE": "t2", "DURABILITY": "full", "LOG_FORMAT": "text", "LOG_LEVEL": "error"} {
		t.Setenv("FOLDHOST_"+name, value)
	}
	all := func(got map[string][2]string, want map[string][2]string) {
		t.Helper()
		for name, w := range want {
			if got[name] != w {
				t.Errorf("%s is %q, want %q", name, got[name], w)
			}
		}
	}
	all(printed(t), map[string][2]string{
		"config": {file, "environment FOLDHOST_CONFIG"}, "data": {at("d2"), "environment FOLDHOST_DATA"}, "listen": {"127.0.0.1:2", "environment FOLDHOST_LISTEN"},
		"pluginDir": {at("p2"), "environment FOLDHOST_PLUGIN_DIR"}, "tokenFile": {at("t2"), "environment FOLDHOST_TOKEN_FILE"}, "durability": {"full", "environment FOLDHOST_DURABILITY"},
		"logFormat": {"text", "environment FOLDHOST_LOG_FORMAT"}, "logLevel": {"error", "environment FOLDHOST_LOG_LEVEL"},
	})
	all(printed(t, "--data", "d3", "--listen", "127.0.0.1:3", "--plugins", "p3", "--token-file", "t3", "--durability", "relaxed", "--tls-cert", "c", "--tls-key", "k", "--log-format", "json", "--log-level", "trace", "-v"), map[string][2]string{
		"data": {at("d3"), "flag --data"}, "listen": {"127.0.0.1:3", "flag --listen"}, "pluginDir": {at("p3"), "flag --plugins"}, "tokenFile": {at("t3"), "flag --token-file"},
		"durability": {"relaxed", "flag --durability"}, "logFormat": {"json", "flag --log-format"}, "logLevel": {"trace", "flag --log-level"}, "tls-cert": {at("c"), "flag --tls-cert"}, "tls-key": {at("k"), "flag --tls-key"},
	})
	all(printed(t, "-v"), map[string][2]string{"logLevel": {"debug", "flag --verbose"}})
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("it made %v, %v", entries, err)
	}
}

// A format or a level that there is not is no server, wherever it comes from.
func TestALogThatThereIsNot(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	for _, args := range [][]string{{"--log-format", "xml"}, {"--log-level", "loud"}} {
		if out, err := call(t, append([]string{"serve", "--data", data}, args...)...); exitCode(err) != exitUsage || !strings.Contains(err.Error(), args[1]) {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
	t.Setenv("FOLDHOST_LOG_LEVEL", "loud")
	if _, err := call(t, "serve", "--data", data); exitCode(err) != exitUsage {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("a data directory was made: %v", err)
	}
}

// A certificate without its key, or one that is none, is no server without TLS.
func TestACertificateAndItsKey(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	for _, args := range [][]string{{"--tls-cert", "c"}, {"--tls-key", "k"}} {
		if _, err := call(t, append([]string{"serve", "--data", data}, args...)...); exitCode(err) != exitUsage {
			t.Errorf("%q: %v", args, err)
		}
	}
	if _, err := call(t, "serve", "--data", data, "--tls-cert", "settings.go", "--tls-key", "settings.go"); exitCode(err) != exitFailure {
		t.Errorf("what is no certificate: %v", err)
	}
	if _, err := os.Stat(data); !os.IsNotExist(err) {
		t.Errorf("a data directory was made: %v", err)
	}
}
