package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/sqlite"
)

// call runs a command line in this process.
func call(t *testing.T, args ...string) (stdout string, err error) {
	t.Helper()
	var out bytes.Buffer
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// What something else than a willing server answers is told by a code, and with the way out where there is one.
func TestServersThatRefuse(t *testing.T) {
	for name, c := range map[string]struct {
		status     int
		kind, body string
		code, way  string
	}{
		"one that asks for a token": {401, "application/problem+json", `{"status":401,"code":"unauthenticated","detail":"a token is needed"}`, "unauthenticated", "token"},
		"one that forbids":          {403, "application/problem+json", `{"status":403,"code":"forbidden","detail":"no"}`, "forbidden", ""},
		"another program":           {404, "text/html", "<h1>no", "status-404", ""},
		"another that is happy":     {200, "text/html", "<h1>yes", "answer-invalid", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(c.status)
				w.Write([]byte(c.body))
			}))
			defer s.Close()
			out, err := call(t, "session", "list", "--url", s.URL, "--json")
			var got struct{ Error failure }
			if json.Unmarshal([]byte(out), &got) != nil || got.Error.Code != c.code || exitCode(err) != exitFailure || !isReported(err) {
				t.Errorf("%s %v", out, err)
			}
			if (c.way != "") != (got.Error.Remedy != "") || !strings.Contains(got.Error.Remedy, c.way) {
				t.Errorf("the way out is %q", got.Error.Remedy)
			}
		})
	}
}

// Errors that people meet by a slip say what to do about it.
func TestTheWayOut(t *testing.T) {
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	if err := guide(&client.NetworkError{Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}); !strings.Contains(err.Error(), "--url") {
		t.Errorf("where nobody listens: %v", err)
	}
	data := filepath.Join(t.TempDir(), "data")
	call(t, "session", "create", "here", "--data", data)
	for name, c := range map[string]struct {
		args []string
		way  string
	}{
		"a stranger's certificate": {[]string{"session", "list", "--url", secure.URL}, "SSL_CERT_FILE"},
		"no such session":          {[]string{"session", "show", "gone", "--data", data}, "session list"},
		"a log's id that is taken": {[]string{"import", logFile(t, "here"), "--data", data}, "--id"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := call(t, append(c.args, "--json")...)
			var got struct{ Error failure }
			if json.Unmarshal([]byte(out), &got) != nil || !strings.Contains(got.Error.Remedy, c.way) {
				t.Errorf("%s %v", out, err)
			}
		})
	}
}

// logFile is a log of the header alone.
func logFile(t *testing.T, id string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.jsonl")
	if err := os.WriteFile(path, []byte(`{"type":"session","version":0,"id":"`+id+`","createdAt":1}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// An error names what it is about once, however many layers it came through, and says what to do about it once.
func TestNothingIsSaidTwice(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("broken.jsonl", []byte("broken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	call(t, "session", "create", "here", "--data", "data")
	for _, c := range []struct{ command, once, says string }{
		{"session show gone", "gone", "not found"},
		{"session tail gone", "gone", "not found"},
		{"session append gone {\"type\":\"x\",\"data\":1}", "gone", "not found"},
		{"session fork gone", "gone", "not found"},
		{"session recover gone", "gone", "not found"},
		{"session retry gone", "gone", "not found"},
		{"session verify gone", "gone", "not found"},
		{"session delete gone", "gone", "not found"},
		{"export --session gone", "gone", "not found"},
		{"session create here --cwd /other", "another id", "cwd"},
		{"session fork here --id here", "another id", "exists"},
		{"session show here --at 7", `"here"`, "no seq 7"},
		{"session show here --url http://127.0.0.1:1 --token-file gone", "gone", "no such file"},
		{"import " + logFile(t, "here"), "here", "exists"},
		{"import gone", "gone", "no such file"},
		{"import gone out.jsonl", "gone", "no such file"},
		{"import broken.jsonl", "broken.jsonl", "line 1"},
		{"replay gone", "gone", "no such file"},
		{"replay .", "reading", "directory"},
		{"store restore gone", "gone", "no such file"},
		{"serve --tls-cert gone --tls-key broken.jsonl", "gone", "no such file"},
	} {
		args := strings.Fields(c.command)
		if args[0] != "replay" && !strings.Contains(c.command, "--url") && !strings.Contains(c.command, "out.jsonl") {
			args = append(args, "--data", "data")
		}
		out, err := call(t, args...)
		if err == nil {
			t.Errorf("%s: %s", c.command, out)
			continue
		}
		text := out // A command that prints its error itself has done so.
		if !isReported(err) {
			text = strings.Join(describe(err), "\n")
		}
		if strings.Count(text, c.once) != 1 || !strings.Contains(text, c.says) {
			t.Errorf("%s: %s", c.command, text)
		}
	}
}

// A key that was mistyped is named, since the answer leaves it out without a word; one that is not asked for is not.
func TestAKeyThatNoUnitHasIsNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	call(t, "session", "create", "here", "--data", "data")
	for _, command := range []string{"session show here", "session show here --at -1", "session tail here --no-follow", `session append here {"type":"x","data":1}`, "session retry here"} {
		args := append(strings.Fields(command), "--data", "data", "--json")
		for keys, want := range map[string]string{"tilte": `"tilte"`, "a,b": `"b"`, "*": "", "": ""} {
			out, err := call(t, append(args, "--keys", keys)...)
			if n := strings.Count(out, "no unit has the key "+want); err != nil || want != "" && n != 1 || want == "" && n != 0 {
				t.Errorf("%s --keys %q: %v %s", command, keys, err, out)
			}
		}
		if out, err := call(t, args...); err != nil || strings.Contains(out, "no unit") {
			t.Errorf("%s: %v %s", command, err, out)
		}
	}
}

// Each error that can be met has a code of its own, however it is wrapped.
func TestFailures(t *testing.T) {
	for code, err := range map[string]error{
		"seq-conflict":        &client.Error{Code: client.CodeSeqConflict},
		"status-502":          &client.Error{Status: 502},
		"unreachable":         &client.NetworkError{Err: errors.New("x")},
		"answer-invalid":      &client.AnswerError{Err: errors.New("x")},
		"no-store":            &noStoreError{"d"},
		"locked":              &sqlite.LockedError{Dir: "d"},
		"directory-read-only": &sqlite.DirError{Problem: sqlite.ReadOnly},
		"format-newer":        &sqlite.NewerError{},
		"not-a-store":         &sqlite.NotStoreError{},
		"damaged":             &sqlite.DamagedError{},
		"token-file-invalid":  fmt.Errorf("x: %w", &api.TokenFileError{File: "f"}),
		"target-invalid":      &sqlite.TargetError{Err: errors.New("x")},
		"header-invalid":      &event.Error{Code: event.HeaderInvalid},
		"failed":              errors.New("x"),
	} {
		if got := failureOf(errors.Join(guide(fmt.Errorf("doing: %w", err)))); got.Code != code || got.Message == "" {
			t.Errorf("%s: %+v", code, got)
		}
	}
	if exitCode(fmt.Errorf("doing: %w", &client.NetworkError{Err: context.Canceled})) != exitInterrupted {
		t.Error("an interrupted call is not told from a failed one")
	}
}

// Every command and every flag stands in a document: those that work on stored sessions in docs/commands.md or docs/interchange.md.
func TestTheDocumentsHaveEveryCommandAndFlag(t *testing.T) {
	docs := map[string]string{}
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		docs[filepath.Base(f)] = string(text)
		all += string(text)
	}
	var look func(cmd *cobra.Command, path []string)
	look = func(cmd *cobra.Command, path []string) {
		for _, name := range path {
			if !strings.Contains(docs["commands.md"], name) {
				t.Errorf("docs/commands.md does not have %q", strings.Join(path, " "))
			}
		}
		where := all
		if len(path) > 0 && (path[0] == "session" || path[0] == "store" || path[0] == "import" || path[0] == "export") {
			where = docs["commands.md"] + docs["interchange.md"]
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if len(path) > 0 && f.Name != "help" && !strings.Contains(where, "--"+f.Name) && (f.Shorthand == "" || !strings.Contains(where, "-"+f.Shorthand)) {
				t.Errorf("%s: --%s stands nowhere", strings.Join(path, " "), f.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			look(sub, append(path[:len(path):len(path)], sub.Name()))
		}
	}
	look(root(), nil)
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out, err := call(t, "completion", shell); err != nil || !strings.Contains(out, "foldhost") {
			t.Errorf("%s: %v, %d bytes", shell, err, len(out))
		}
	}
	if out, err := call(t, "__complete", "session", ""); err != nil || !strings.Contains(out, "append") {
		t.Errorf("%s %v", out, err)
	}
}
