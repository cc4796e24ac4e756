package sdk_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host/launch"
	"github.com/foldhost/foldhost/internal/foldwire"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/unit"
)

// oddplugin builds the test plugin once.
var oddplugin = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binaries, "odd")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", path, "./internal/oddplugin").CombinedOutput()
	if err != nil {
		err = errors.New(string(out))
	}
	return path, err
})

// binaries is where it lies.
var binaries string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "sdk")
	if err != nil {
		panic(err)
	}
	binaries = dir
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

func odd(t *testing.T) string {
	t.Helper()
	path, err := oddplugin()
	if err != nil {
		t.Fatal(err)
	}
	// What go build makes under umask 002 is group-writable, which the launcher warns of.
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// hostLog is the host's log.
type hostLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *hostLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *hostLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func launcher(t *testing.T) (*launch.Launcher, *hostLog) {
	t.Helper()
	out := &hostLog{}
	l, err := launch.New(launch.Options{Logger: slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, out
}

// started launches the odd plugin and configures it.
func started(t *testing.T, config string, spec launch.Spec) (*launch.Process, *hostLog) {
	t.Helper()
	l, out := launcher(t)
	spec.Plugin, spec.Path = "odd", odd(t)
	p, err := l.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := p.Client().Configure(t.Context(), &pluginproto.ConfigureRequest{Config: []byte(config), Generation: 1})
	if err != nil || len(answer.Problems) > 0 {
		t.Fatalf("got %v, %v", answer, err)
	}
	return p, out
}

func TestAProcessSaysWhatItIs(t *testing.T) {
	for _, mtls := range []bool{false, true} {
		p, _ := started(t, "", launch.Spec{MTLS: mtls})
		d, err := p.Client().Describe(t.Context(), &pluginproto.DescribeRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if d.Name != "odd" || d.Version != "1.2.3" || d.Summary == "" || !strings.HasPrefix(d.BuiltWith, "foldhost sdk ") {
			t.Errorf("got %v", d)
		}
		if len(d.OwnedEvents) != 1 || d.OwnedEvents[0].Type != "odd/tick" || !json.Valid(d.OwnedEvents[0].DataSchema) || !json.Valid(d.ConfigSchema) {
			t.Errorf("got %v", d)
		}
		if err := p.Health(t.Context()); err != nil {
			t.Error(err)
		}
		if exit := p.Stop(t.Context()); exit.Code != 0 || !exit.Expected {
			t.Errorf("it ended so: %v", exit)
		}
	}
}

func TestPrintsReachTheHostsLogAndBreakNothing(t *testing.T) {
	p, out := started(t, `{"print":true}`, launch.Spec{})
	if _, err := p.Client().Describe(t.Context(), &pluginproto.DescribeRequest{}); err != nil {
		t.Fatalf("it does not answer: %v", err)
	}
	p.Stop(t.Context())
	for _, want := range []string{"xxxx", "to standard error", "by log", "by slog", "text on standard error", "by descriptor", "by a child with the cookie []", "configured", "printed after Serve", "the last work is done"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in the host's log", want)
		}
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if (strings.Contains(line, "by descriptor") || strings.Contains(line, "by a child")) && !strings.Contains(line, "stream=stderr") {
			t.Errorf("descriptor 1 is still the handshake's: %s", line)
		}
		if strings.Contains(line, "by slog") && !strings.Contains(line, "level=WARN") {
			t.Errorf("the level is lost: %s", line)
		}
	}
}

func TestAPrintBeforeServeIsTheClassicMistakeAndSaidSo(t *testing.T) {
	l, _ := launcher(t)
	_, err := l.Start(t.Context(), launch.Spec{Plugin: "odd", Path: odd(t), Env: []string{"ODD_EARLY=1"}})
	var failed *launch.StartError
	if !errors.As(err, &failed) || !strings.Contains(failed.Stdout, "printed before Serve") {
		t.Errorf("got %v", err)
	}
}

func TestAPluginThatIsWrongInItselfExitsAndSaysWhy(t *testing.T) {
	l, _ := launcher(t)
	_, err := l.Start(t.Context(), launch.Spec{Plugin: "odd", Path: odd(t), Env: []string{"ODD_SCHEMA=1"}})
	var failed *launch.StartError
	if !errors.As(err, &failed) || failed.Exit == nil || failed.Exit.Code != 1 || !strings.Contains(failed.Stderr, "odd/chan") {
		t.Errorf("got %v", err)
	}
}

func TestAConfigIsRefusedByPathThroughTheProcess(t *testing.T) {
	for config, path := range map[string]string{`{"prince":true}`: "$.prince", `{"print":"yes"}`: "$.print", `{"refuse":true}`: "$.refuse"} {
		l, _ := launcher(t)
		p, err := l.Start(t.Context(), launch.Spec{Plugin: "odd", Path: odd(t)})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := p.Client().Configure(t.Context(), &pluginproto.ConfigureRequest{Config: []byte(config)})
		if err != nil || len(answer.Problems) != 1 || answer.Problems[0].Path != path {
			t.Errorf("%s: got %v, %v", config, answer, err)
		}
	}
}

// folded sends batches and gives their answers, each in one message.
func folded(t *testing.T, p *launch.Process, batches ...unit.Batch) []*pluginproto.FoldReply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := p.Client().Fold(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var out []*pluginproto.FoldReply
	for i := range batches {
		if err := stream.Send(foldwire.Batch(&batches[i], uint64(i), 1)); err != nil {
			t.Fatal(err)
		}
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	stream.CloseSend()
	if _, err := stream.Recv(); err != io.EOF {
		t.Errorf("the stream ended with %v", err)
	}
	return out
}

func tickAt(seq int64, data string) event.Event {
	return event.Event{Type: "odd/tick", Seq: seq, Data: json.RawMessage(data)}
}

func TestAPanicOfAFoldIsAFaultOfThatCellAlone(t *testing.T) {
	p, out := started(t, "", launch.Spec{})
	open := func(id unit.CellID) unit.Open { return unit.Open{Cell: id, Key: "ticks", Seq: -1} }
	replies := folded(t, p,
		unit.Batch{Open: []unit.Open{open(1)}, Cells: []unit.CellID{1}, Events: []event.Event{tickAt(0, `{"n":2}`), tickAt(1, `{"n":-1}`)}, Through: 1},
		unit.Batch{Open: []unit.Open{open(2)}, Cells: []unit.CellID{2}, Events: []event.Event{tickAt(0, `{"n":3}`), tickAt(1, `{"n":-2}`)}, Through: 1})
	if f := replies[0].Faults; len(f) != 1 || f[0].Seq != 1 || len(f[0].Message) > 200 || !strings.Contains(f[0].Message, "a tick of minus one") {
		t.Errorf("got %v", f)
	}
	if v := replies[1].Values; len(v) != 3 || string(v[2].View) != "1" {
		t.Errorf("the other cell: %v", replies[1])
	}
	p.Stop(t.Context())
	if !strings.Contains(p.Tail(), "oddplugin/main.go") {
		t.Error("the stack is not in the log")
	}
	if !strings.Contains(out.String(), "a tick of minus two") {
		t.Error("what a fold prints is not in the log")
	}
}

func TestToolsThroughTheProcess(t *testing.T) {
	p, _ := started(t, "", launch.Spec{})
	call := func(tool, args string) (*pluginproto.CallToolResponse, error) {
		return p.Client().CallTool(t.Context(), &pluginproto.CallToolRequest{Tool: tool, Session: "s", Arguments: []byte(args), Seq: 3, Values: []*pluginproto.UnitValue{{Key: "ticks", View: []byte("41")}}})
	}
	a, err := call("tick", `{"text":"x"}`)
	if s := a.GetSuccess(); err != nil || s.GetText() != "41 ticks so far" || string(s.Value) != `{"text":"x"}` || len(s.Events) != 1 || string(s.Events[0].Data) != `{"n":1}` {
		t.Errorf("got %v, %v", a, err)
	}
	for _, refused := range [][2]string{{"tick", `{"text":1}`}, {"panic", `{"text":""}`}, {"none", `{}`}} {
		if a, err := call(refused[0], refused[1]); err != nil || a.GetFailure().GetMessage() == "" || strings.Contains(a.GetFailure().GetMessage(), "goroutine") {
			t.Errorf("%v: got %v, %v", refused, a, err)
		}
	}

	stream, err := p.Client().Registrations(t.Context(), &pluginproto.RegistrationsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"ticks"}, {"ticks", "extra"}, {"ticks"}} {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, u := range m.Units {
			got = append(got, u.Key)
		}
		if !slices.Equal(got, want) || len(m.Tools) != 4 {
			t.Errorf("got %v and %d tools, want %v", got, len(m.Tools), want)
		}
		if _, err := call("toggle", `{"text":""}`); err != nil {
			t.Fatal(err)
		}
	}

	// A panic on a goroutine of the author's ends the process, and its stack is what is left.
	if _, err := call("crash", `{"text":""}`); err == nil {
		t.Error("the call survived the process")
	}
	if exit := p.Exit(); exit.Code != 2 || !strings.Contains(p.Tail(), "a goroutine that panics") {
		t.Errorf("it ended so: %v", exit)
	}
}

// The host dies without a word: its end of the lifeline is closed by the kernel.
func TestAProcessEndsWithItsHostAndRemovesItsSocket(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no unix sockets to look at")
	}
	dir, err := os.MkdirTemp("/tmp", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socketDir := filepath.Join(dir, "p")
	if err := os.Mkdir(socketDir, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), odd(t))
	cmd.Env = append(os.Environ(), pluginproto.CookieKey+"="+pluginproto.CookieValue, pluginproto.LifelineEnv+"="+pluginproto.LifelineStdin,
		pluginproto.SocketDirEnv+"="+socketDir, pluginproto.VersionsEnv+"=1")
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(line, "|")
	if len(parts) < 5 || filepath.Dir(parts[3]) != socketDir {
		t.Fatalf("the handshake is %q", line)
	}
	if _, err := os.Stat(parts[3]); err != nil {
		t.Fatal(err)
	}
	lifeline.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if _, err := os.Stat(socketDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory of its socket is still there: %v", err)
	}
}

func TestByHandAPluginSaysWhatItIs(t *testing.T) {
	run := func(args ...string) (code int, stdout, stderr string) {
		cmd := exec.CommandContext(t.Context(), odd(t), args...)
		cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, pluginproto.CookieKey) })
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				t.Fatal(err)
			}
			code = exit.ExitCode()
		}
		return code, out.String(), errs.String()
	}
	if code, out, _ := run("--version"); code != 0 || !strings.HasPrefix(out, "odd 1.2.3 ") {
		t.Errorf("--version: %d, %q", code, out)
	}
	code, out, _ := run("describe", "--json")
	var d sdk.Description
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != 0 {
		t.Fatalf("describe: %d, %v", code, err)
	}
	if d.Name != "odd" || len(d.Units) != 1 || d.Units[0].Key != "ticks" || len(d.Tools) != 4 || len(d.OwnedEvents) != 1 || d.NeedsConfig != nil {
		t.Errorf("got %+v", d)
	}
	for _, arg := range []string{"--help", "-h", "help"} {
		if code, out, errs := run(arg); code != 0 || !strings.Contains(out, "describe --json") || errs != "" {
			t.Errorf("%s: %d, %q, %q", arg, code, out, errs)
		}
	}
	for _, args := range [][]string{nil, {"--help", "x"}, {"describe"}, {"--version", "x"}} {
		if code, out, errs := run(args...); code != 1 || out != "" || !strings.Contains(errs, "does what it should not") || !strings.Contains(errs, "foldhost replay") {
			t.Errorf("%v: %d, %q, %q", args, code, out, errs)
		}
	}
}
