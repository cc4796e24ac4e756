package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/eventlog/sqlite"
)

// places are where session and store commands find what they work on: each gives the flags that name it.
var places = map[string]func(t *testing.T) (flags []string){
	"a free directory": func(t *testing.T) []string { return []string{"--data", filepath.Join(t.TempDir(), "data")} },
	"a running server": func(t *testing.T) []string {
		data := filepath.Join(t.TempDir(), "data")
		serve(t, data)
		return []string{"--data", data}
	},
	"a URL": func(t *testing.T) []string {
		return []string{"--url", serve(t, filepath.Join(t.TempDir(), "data")).url}
	},
}

// at runs a command in a place.
func at(t *testing.T, flags []string, stdin string, args ...string) run {
	t.Helper()
	return pipe(t, "", stdin, append(args, flags...)...)
}

// into reads what a --json run printed: one object.
func into[T any](t *testing.T, r run) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
		t.Fatalf("%v in %.1000s\n%s", err, r.stdout, r.stderr)
	}
	return v
}

const (
	titleOf      = `{"type":"session/title","data":{"title":"A title"}}`
	turnStart    = `{"type":"turn/start","data":{"turn":1}}`
	userHello    = `{"type":"user/message","data":{"id":"u1","role":"user","source":{"kind":"user"},"content":[{"type":"text","text":"hello"}]},"surfaceOp":"append"}`
	shortMessage = `{"id":"c","role":"user","source":{"kind":"compaction"},"content":[{"type":"text","text":"short"}]}`
	turnEnd      = `{"type":"turn/end","data":{"turn":1,"reason":{"kind":"completed"}}}`
)

// Each session command does the same wherever the sessions are, and finds the next time what it did the last.
func TestSessionCommands(t *testing.T) {
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			flags := place(t)
			do := func(args ...string) run { t.Helper(); return at(t, flags, "", args...).want(t, 0) }
			read := func(args ...string) run { t.Helper(); return do(append(args, "--json")...) }

			if s := into[client.Session](t, read("session", "create", "a", "--cwd", "/work")); s.Header.ID != "a" || s.Header.CWD != "/work" || s.Seq != 0 {
				t.Errorf("created %+v", s)
			}
			do("session", "create", "a")
			a := into[client.Appended](t, at(t, flags, turnStart+"\n"+userHello+"\n"+titleOf, "session", "append", "a", "--keys", "title", "--expected-seq", "0", "--json").want(t, 0))
			if a.Seq != 3 || len(a.Events) != 3 || string(a.Projections.Values["title"]) != `"A title"` {
				t.Errorf("appended %+v", a)
			}
			for range 2 { // With its key it is done once.
				if a = into[client.Appended](t, read("session", "append", "a", turnEnd, "--key", "k1")); a.Seq != 4 {
					t.Errorf("appended %+v", a)
				}
			}
			if r := do("session", "append", "a", turnStart); !strings.Contains(r.stdout, "event 4") {
				t.Errorf("people hear %q", r.stdout)
			}
			shown := into[struct {
				Session     client.Session
				Projections client.Block
				Surface     client.Surface
			}](t, read("session", "show", "a"))
			if shown.Session.Seq != 5 || shown.Projections.AsOfSeq != 4 || string(shown.Projections.Values["title"]) != `"A title"` || len(shown.Surface.Nodes) != 1 {
				t.Errorf("%+v", shown)
			}
			if r := do("session", "show", "a"); !strings.Contains(r.stdout, "A title") || !strings.Contains(r.stdout, "5 events") {
				t.Errorf("people see %s", r.stdout)
			}
			if r := read("session", "show", "a", "--at", "1", "--keys", "title"); !strings.Contains(r.stdout, `"title":null`) || strings.Contains(r.stdout, "surface") {
				t.Errorf("at 1 %s", r.stdout)
			}
			if s := into[client.Session](t, read("session", "list", "--keys", "title")); s.Header.ID != "a" || string(s.Projections.Values["title"]) != `"A title"` {
				t.Errorf("listed %+v", s)
			}
			if r := do("session", "list", "--keys", "title"); !strings.Contains(r.stdout, "A title") {
				t.Errorf("people see %s", r.stdout)
			}

			r := read("session", "tail", "a", "--no-follow", "-n", "2", "--keys", "title")
			lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
			if len(lines) != 3 || !strings.Contains(lines[0], `"seq":3`) || !strings.Contains(lines[1], `"seq":4`) || !strings.Contains(lines[2], `"session/baseline"`) {
				t.Errorf("the tail is %q", lines)
			}
			// With both, the last so many of those from the seq on.
			for args, want := range map[string]int{"--from 1 -n 2": 3, "--from 4 -n 2": 4} {
				lines := strings.Split(strings.TrimSpace(read(append([]string{"session", "tail", "a", "--no-follow"}, strings.Fields(args)...)...).stdout), "\n")
				if len(lines) != 5-want || !strings.Contains(lines[0], fmt.Sprintf(`"seq":%d,`, want)) {
					t.Errorf("tail %s prints %q, want what begins with event %d", args, lines, want)
				}
			}
			if r := do("session", "tail", "a", "--no-follow", "--from", "0", "--types", "user/message"); !strings.Contains(r.stdout, "hello") || strings.Contains(r.stdout, "turn ends") {
				t.Errorf("people see %s", r.stdout)
			}

			if child := into[client.Session](t, read("session", "fork", "a", "--at", "2", "--id", "b")); child.Header.ID != "b" || child.Header.ParentSession != "a" || child.FirstLiveSeq != 4 {
				t.Errorf("forked %+v", child)
			}
			if a = into[client.Appended](t, at(t, flags, shortMessage, "session", "compact", "b", "1", "1", "--json").want(t, 0)); len(a.Events) != 1 {
				t.Errorf("compacted by %+v", a)
			}
			if a = into[client.Appended](t, read("session", "recover", "a")); len(a.Events) != 1 || a.Seq != 6 {
				t.Errorf("recovered by %+v", a)
			}
			if a = into[client.Appended](t, read("session", "recover", "a")); len(a.Events) != 0 || a.Seq != 6 {
				t.Errorf("recovered again by %+v", a)
			}
			if b := into[client.Block](t, read("session", "retry", "a", "--keys", "title")); string(b.Values["title"]) != `"A title"` || len(b.Values) != 1 {
				t.Errorf("retried %+v", b)
			}
			if v := into[client.Verification](t, read("session", "verify", "a")); !v.OK || v.Seq != 6 || len(v.Keys) != 4 {
				t.Errorf("verified %+v", v)
			}
			if r := do("session", "verify", "a"); !strings.Contains(r.stdout, "title") {
				t.Errorf("people hear %q", r.stdout)
			}
			do("session", "delete", "b")
			read("session", "delete", "a")
			if r := read("session", "list"); r.stdout != "" {
				t.Errorf("left are %s", r.stdout)
			}
			at(t, flags, "", "session", "create").want(t, 0) // with an id that is made up
		})
	}
}

// made is a directory that has a store with the session "a" of one event, and no owner.
func made(t *testing.T) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	log := write(t, "a.jsonl", strings.Replace(header, `"id":"s"`, `"id":"a"`, 1)+strings.TrimSuffix(titleOf, "}")+`,"seq":0,"time":1}`+"\n")
	foldhost(t, "", "import", log, "--data", data).want(t, 0)
	return data
}

// contents are all files below a directory, but for those that every start writes: the lock, the room for a start on a full disk, and what the engine keeps beside a database that it has looked at and that holds nothing.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "foldhost.lock" || d.Name() == "foldhost.reserve" {
			return err
		}
		text, err := os.ReadFile(path)
		if !strings.HasSuffix(path, "-shm") && len(text) > 0 {
			fmt.Fprintf(&all, "%s %x\n", path, text)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return all.String()
}

// patch overwrites a part of a file.
func patch(t *testing.T, path string, offset int64, text []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(text, offset); err != nil {
		t.Fatal(err)
	}
}

// Where a store cannot be used, each command says so by a code and to people with the way out, and changes nothing.
func TestStoresThatCannotBeUsed(t *testing.T) {
	for name, c := range map[string]struct {
		// spoil makes the directory, and gives it.
		spoil func(t *testing.T) string
		code  string
		says  []string
	}{
		"a directory that is not there": {func(t *testing.T) string { return filepath.Join(t.TempDir(), "data") }, "no-store", []string{"--data", "foldhost serve"}},
		"an empty directory":            {func(t *testing.T) string { return t.TempDir() }, "no-store", []string{"--data"}},
		"a file":                        {func(t *testing.T) string { return write(t, "data", "text") }, "directory-not-a-directory", nil},
		"a directory that is read-only": {func(t *testing.T) string {
			if os.Geteuid() == 0 {
				t.Skip("skipped: root writes everywhere")
			}
			data := made(t)
			if err := os.Chmod(data, 0o500); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Chmod(data, 0o700) })
			return data
		}, "directory-read-only", nil},
		"one in use by a process that does not serve": {func(t *testing.T) string {
			data := made(t)
			store, err := sqlite.Open(context.Background(), data, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() })
			return data
		}, "locked", []string{fmt.Sprint(os.Getpid()), "wait"}},
		"a newer version": {func(t *testing.T) string {
			data := made(t)
			patch(t, filepath.Join(data, "foldhost.db"), 60, []byte{0, 0, 3, 231})
			return data
		}, "format-newer", []string{"999"}},
		"another file": {func(t *testing.T) string {
			data := made(t)
			patch(t, filepath.Join(data, "foldhost.db"), 0, make([]byte, 200))
			return data
		}, "not-a-store", []string{"backup"}},
		"a damaged database": {func(t *testing.T) string {
			data := made(t)
			patch(t, filepath.Join(data, "foldhost.db"), 100, bytes.Repeat([]byte{0xa5}, 12<<10))
			return data
		}, "damaged", []string{"salvage"}},
	} {
		t.Run(name, func(t *testing.T) {
			data := c.spoil(t)
			before := contents(t, filepath.Dir(data))
			for _, args := range [][]string{
				{"session", "list"}, {"session", "append", "a", titleOf}, {"session", "verify", "a"}, {"session", "delete", "a"},
			} {
				if c.code == "locked" && args[1] != "list" {
					continue // Each waits for the owner first.
				}
				args = append(args, "--data", data)
				got := into[failed](t, foldhost(t, "", append(args, "--json")...).want(t, 1))
				if got.Error.Code != c.code || got.Error.Message == "" || (c.code == "no-store" || c.code == "locked") && got.Error.Remedy == "" {
					t.Errorf("%q: %+v", args[:2], got)
				}
				if args[1] != "list" {
					continue
				}
				r := foldhost(t, "", args...).want(t, 1)
				for _, part := range append(c.says, filepath.Base(data)) {
					if !strings.Contains(r.stderr, part) {
						t.Errorf("%q: people do not hear of %q: %s", args[:2], part, r.stderr)
					}
				}
			}
			if after := contents(t, filepath.Dir(data)); after != before {
				t.Error("something changed")
			}
		})
	}
}

// failed is what is printed of a command that fails.
type failed struct {
	Error struct {
		Code, Message, Remedy, Reason, Path string
		Seq, Index                          *int64
	}
}

// A lock file of an owner that is dead keeps nobody out, whatever stands in it.
func TestALockOfADeadOwner(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := serve(t, data)
	foldhost(t, "", "session", "create", "a", "--data", data).want(t, 0)
	s.kill()
	if lock := read(t, filepath.Join(data, "foldhost.lock")); !strings.Contains(lock, s.url) {
		t.Fatalf("the lock file is %q", lock)
	}
	if got := into[client.Session](t, foldhost(t, "", "session", "list", "--data", data, "--json").want(t, 0)); got.Header.ID != "a" {
		t.Errorf("%+v", got)
	}
}

// What a server refuses is heard with its code and its place, and changes nothing.
func TestWhatSessionCommandsRefuse(t *testing.T) {
	data := made(t)
	serve(t, data)
	before := foldhost(t, "", "session", "tail", "a", "--from", "0", "--no-follow", "--json", "--data", data).want(t, 0).stdout
	zero, one := int64(0), int64(1)
	for _, c := range []struct {
		args  []string
		stdin string
		code  string
		index *int64
		seq   *int64
	}{
		{args: []string{"show", "b"}, code: "session-not-found"},
		{args: []string{"tail", "b"}, code: "session-not-found"},
		{args: []string{"append", "b", titleOf}, code: "session-not-found"},
		{args: []string{"delete", "b"}, code: "session-not-found"},
		{args: []string{"verify", "b"}, code: "session-not-found"},
		{args: []string{"retry", "b"}, code: "session-not-found"},
		{args: []string{"recover", "b"}, code: "session-not-found"},
		{args: []string{"fork", "b"}, code: "session-not-found"},
		{args: []string{"show", ".."}, code: "header-invalid"},
		{args: []string{"create", "a", "--cwd", "/other"}, code: "session-conflict"},
		{args: []string{"create", "a/b"}, code: "id-invalid"},
		{args: []string{"fork", "a"}, code: "fork-unavailable"},
		{args: []string{"compact", "a", "0", "0", shortMessage}, code: "surface-range-invalid"},
		{args: []string{"append", "a", titleOf, "--expected-seq", "7"}, code: "seq-conflict", seq: &one},
		{args: []string{"append", "a", titleOf, `{"type":"todo/write","data":{"todos":5}}`}, code: "event-invalid", index: &one},
		{args: []string{"append", "a", `{"type":"x","data":1,"seq":0}`}, code: "body-invalid"},
		{args: []string{"append", "a"}, stdin: `{"type":"user/message","data":{}}`, code: "event-invalid", index: &zero},
		{args: []string{"show", "a", "--at", "5"}, code: "not-reached", seq: &one},
	} {
		args := append(append([]string{"session"}, c.args...), "--data", data, "--json")
		got := into[failed](t, pipe(t, "", c.stdin, args...).want(t, 1))
		if got.Error.Code != c.code || index(got.Error.Index) != index(c.index) || index(got.Error.Seq) != index(c.seq) {
			t.Errorf("%q: %+v", c.args, got.Error)
		}
	}
	if after := foldhost(t, "", "session", "tail", "a", "--from", "0", "--no-follow", "--json", "--data", data).want(t, 0).stdout; after != before {
		t.Errorf("the log is %s", after)
	}
}

// Wrong usage is told apart from failures.
func TestWrongUsageOfSessionAndStore(t *testing.T) {
	for _, args := range []string{
		"session", "session nothing", "session list here", "session list --limit 0", "session list --limit x", "session fork a --at -1", "session show", "session show a --at -2", "session tail a -n -1", "session create a b", "session append",
		"session append a {", "session compact a 1", "session compact a x 2 {}", "session compact a 1 2 {", "session list --url here", "session list --url http://127.0.0.1:1 --data d",
		"store", "store nothing", "store backup", "store restore", "store salvage", "store backup f --url http://127.0.0.1:1",
	} {
		dir := t.TempDir()
		r := foldhost(t, dir, strings.Fields(args)...).want(t, 2)
		if r.stderr == "" {
			t.Errorf("%s: it says nothing", args)
		}
		onlyFiles(t, dir)
	}
}

// A server that is not there is named, and nothing is waited for for long.
func TestAServerThatIsNotThere(t *testing.T) {
	r := foldhost(t, "", "session", "list", "--url", "http://127.0.0.1:1").want(t, 1)
	if !strings.Contains(r.stderr, "http://127.0.0.1:1") || !strings.Contains(r.stderr, "list sessions") {
		t.Errorf("it says %s", r.stderr)
	}
	if got := into[failed](t, foldhost(t, "", "session", "show", "a", "--url", "http://127.0.0.1:1", "--json").want(t, 1)); got.Error.Code != "unreachable" {
		t.Errorf("%+v", got)
	}
}

// What strangers wrote into a log does not steer a terminal.
func TestSessionsPrintNothingThatSteersATerminal(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	foldhost(t, "", "session", "create", "a", "--data", data).want(t, 0)
	evil := `\u001b]0;x\u0007\u202e\u009b31m`
	foldhost(t, "", "session", "append", "a", `{"type":"session/title","data":{"title":"`+evil+`"}}`, `{"type":"`+evil+`","data":"`+evil+`"}`, "--data", data).want(t, 0)
	for _, args := range [][]string{{"list", "--keys", "*"}, {"show", "a"}, {"tail", "a", "--no-follow", "--keys", "*"}} {
		r := foldhost(t, "", append(append([]string{"session"}, args...), "--data", data)...).want(t, 0)
		if strings.ContainsAny(r.stdout+r.stderr, "\x1b\x07\u202e\u009b") {
			t.Errorf("%q prints %q", args, r.stdout)
		}
	}
}

// Given a tail, when events come, it prints them; when its server is killed and started again, it prints what comes then and nothing twice.
func TestTailOutlivesItsServer(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := serve(t, data)
	foldhost(t, "", "session", "create", "a", "--data", data).want(t, 0)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cmd := command(ctx, "session", "tail", "a", "--json", "--data", data)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	frames := json.NewDecoder(out)
	next := func(want int64) {
		t.Helper()
		var f struct {
			Type  string
			Event struct{ Seq int64 }
		}
		if err := frames.Decode(&f); err != nil || f.Type != "session/event" || f.Event.Seq != want {
			t.Fatalf("%+v, %v: %s", f, err, &stderr)
		}
	}
	foldhost(t, "", "session", "append", "a", titleOf, titleOf, "--data", data).want(t, 0)
	next(0)
	next(1)
	s.kill()
	serve(t, data, "--listen", strings.TrimPrefix(s.url, "http://"))
	foldhost(t, "", "session", "append", "a", titleOf, "--data", data).want(t, 0)
	next(2)
	foldhost(t, "", "session", "delete", "a", "--data", data).want(t, 0)
	var f struct{ Type string }
	if err := frames.Decode(&f); err != nil || f.Type != "session/deleted" {
		t.Errorf("%+v, %v", f, err)
	}
	if err := frames.Decode(&f); err != io.EOF {
		t.Errorf("%+v, %v", f, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v: %s", err, &stderr)
	}
	if !strings.Contains(stderr.String(), "trying again") || !strings.Contains(stderr.String(), "is back") {
		t.Errorf("it says %s", &stderr)
	}
}
