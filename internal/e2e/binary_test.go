package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// binary is foldhost, root the root of the module.
var binary, root string

func TestMain(m *testing.M) {
	code, err := build(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func build(run func() int) (int, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return 0, fmt.Errorf("go env GOMOD: %w", err)
	}
	root = filepath.Dir(strings.TrimSpace(string(out)))
	dir, err := os.MkdirTemp("", "foldhost-e2e-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "foldhost")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	cmd := exec.Command("go", "build", "-o", binary, "./cmd/host")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go build ./cmd/host: %w\n%s", err, out)
	}
	// The plugins that ship, as the example configures them, fold what the tests replay.
	plugins := filepath.Join(dir, "plugins")
	if err := os.Mkdir(plugins, 0o755); err != nil {
		return 0, err
	}
	cmd = exec.Command("go", "build", "-o", plugins+string(filepath.Separator), "./plugins/...")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go build ./plugins/...: %w\n%s", err, out)
	}
	os.Setenv("FOLDHOST_PLUGIN_DIR", plugins)
	os.Setenv("FOLDHOST_CONFIG", filepath.Join(root, "examples", "foldhost.yaml"))
	return run(), nil
}

// run is one call of the binary and what came of it.
type run struct {
	stdout, stderr string
	code           int
}

// foldhost runs the binary in the test's directory, or in dir when it is not empty.
func foldhost(t *testing.T, dir string, args ...string) run {
	t.Helper()
	return pipe(t, dir, "", args...)
}

// pipe is foldhost with standard input.
func pipe(t *testing.T, dir, stdin string, args ...string) run {
	t.Helper()
	cmd := command(t.Context(), args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("foldhost %q: %v", args, err)
	}
	r := run{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
	for _, bad := range []string{"panic:", "goroutine ", "DATA RACE"} {
		if strings.Contains(r.stderr, bad) {
			t.Fatalf("foldhost %q:\n%s", args, r.stderr)
		}
	}
	return r
}

func command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, binary, args...)
}

// want fails unless the run ended with the code.
func (r run) want(t *testing.T, code int) run {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d\nstdout: %.2000s\nstderr: %.2000s", r.code, code, r.stdout, r.stderr)
	}
	return r
}

// replayed is the fixed JSON of replay.
type replayed struct {
	File     *string `json:"file"`
	Accepted bool    `json:"accepted"`
	Error    *struct {
		Index   *int64 `json:"index"`
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Events      int64           `json:"events"`
	AsOfSeq     int64           `json:"asOfSeq"`
	Surface     json.RawMessage `json:"surface"`
	Messages    json.RawMessage `json:"messages"`
	Closers     json.RawMessage `json:"closers"`
	Changes     json.RawMessage `json:"changes"`
	Values      map[string]json.RawMessage
	Unavailable map[string]struct {
		Code    string `json:"code"`
		Seq     int64  `json:"seq"`
		Message string `json:"message"`
	} `json:"unavailable"`
}

// objects reads what a --json run printed: one object a line, no other fields than the fixed ones.
func (r run) objects(t *testing.T) []replayed {
	t.Helper()
	var all []replayed
	for line := range strings.Lines(r.stdout) {
		dec := json.NewDecoder(strings.NewReader(line))
		dec.DisallowUnknownFields()
		var o replayed
		if err := dec.Decode(&o); err != nil {
			t.Fatalf("%v in %.500s", err, line)
		}
		all = append(all, o)
	}
	return all
}

// object is the one object that a --json run printed.
func (r run) object(t *testing.T) replayed {
	t.Helper()
	all := r.objects(t)
	if len(all) != 1 {
		t.Fatalf("%d objects, want one:\n%.2000s\n%s", len(all), r.stdout, r.stderr)
	}
	return all[0]
}

// sample is a session of examples/sessions.
func sample(name string) string { return filepath.Join(root, "examples", "sessions", name) }

// write makes a file in a directory of the test's own.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// read gives a file's text.
func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
