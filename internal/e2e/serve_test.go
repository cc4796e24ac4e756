package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// serving is a server in a process of its own.
type serving struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string
	stderr *bytes.Buffer
	ended  chan struct{}
}

// serve starts a server in a data directory and waits until its plugins are up.
func serve(t *testing.T, data string, args ...string) *serving {
	t.Helper()
	return serveBy(t, func(ctx context.Context) *exec.Cmd { return command(ctx, serveArgs(data, args...)...) })
}

func serveArgs(data string, args ...string) []string {
	return append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, args...)
}

// serveBy is serve by a command that becomes the server.
func serveBy(t *testing.T, by func(context.Context) *exec.Cmd) *serving {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := by(ctx)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s := &serving{t: t, cmd: cmd, stderr: &bytes.Buffer{}, ended: make(chan struct{})}
	cmd.Stderr = s.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	go func() {
		defer close(s.ended)
		io.Copy(io.Discard, lines)
		cmd.Wait()
	}()
	t.Cleanup(func() { cancel(); <-s.ended })
	if _, err2 := fmt.Sscanf(first, "serving %s", &s.url); err != nil || err2 != nil {
		cancel()
		<-s.ended
		t.Fatalf("it says %q, %v: %s", first, err, s.stderr)
	}
	s.url = strings.TrimSuffix(s.url, ",")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if status, _ := s.do("GET", "/readyz", ""); status == http.StatusOK {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatal("it never became ready")
		}
	}
}

func (s *serving) do(method, path, body string, headers ...string) (status int, text string) {
	s.t.Helper()
	status, text, err := s.try(method, path, body, headers...)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return status, text
}

// try is do for a server that may be gone.
func (s *serving) try(method, path, body string, headers ...string) (status int, text string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // for what must come
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	return res.StatusCode, string(all), err
}

// kill ends it as nothing else does.
func (s *serving) kill() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Error(err)
	}
	<-s.ended
	http.DefaultClient.CloseIdleConnections()
}

const todoOf = `{"type":"todo/write","data":{"todos":[{"content":%q,"status":"pending"}]}}`

// Given a server with the plugins that ship, when it is killed while many append, then after the next start everything that was acknowledged is there, values are those of
// the log, and a retry with its key appends nothing.
func TestWhatWasAcknowledgedSurvivesAKill(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	const appenders = 4
	acknowledged := make([]int64, appenders) // how many events, by session
	for round := range 3 {
		s := serve(t, data)
		for i := range appenders {
			path := fmt.Sprintf("/v1/sessions/s%d", i)
			if round == 0 {
				if status, text := s.do("POST", "/v1/sessions", fmt.Sprintf(`{"id":"s%d"}`, i)); status != 201 {
					t.Fatal(status, text)
				}
			}
			s.checkLog(path, acknowledged[i])
			if n := acknowledged[i]; n > 0 {
				// The last that was acknowledged, once more.
				body := fmt.Sprintf(todoOf, fmt.Sprintf("todo %d", n-1))
				status, text := s.do("POST", path+"/events", body, fmt.Sprintf("Idempotency-Key: k%d", n-1))
				if status != 200 || !strings.HasPrefix(text, fmt.Sprintf(`{"seq":%d,`, n)) {
					t.Errorf("the retry gives %d %s", status, text)
				}
				s.checkLog(path, n)
			}
		}
		var all sync.WaitGroup
		enough := make(chan struct{}, appenders)
		for i := range appenders {
			all.Go(func() {
				path := fmt.Sprintf("/v1/sessions/s%d/events", i)
				for n := s.length(fmt.Sprintf("/v1/sessions/s%d", i)); ; n++ {
					status, text, err := s.try("POST", path, fmt.Sprintf(todoOf, fmt.Sprintf("todo %d", n)), fmt.Sprintf("Idempotency-Key: k%d", n))
					if err != nil {
						return // it was killed
					}
					if status != 200 {
						t.Errorf("%d %s", status, text)
						return
					}
					acknowledged[i] = n + 1
					if n%20 == 19 {
						select {
						case enough <- struct{}{}:
						default:
						}
					}
				}
			})
		}
		for range appenders {
			<-enough
		}
		s.kill()
		all.Wait()
	}
	s := serve(t, data)
	for i := range appenders {
		s.checkLog(fmt.Sprintf("/v1/sessions/s%d", i), acknowledged[i])
	}
}

// length is that of a log.
func (s *serving) length(path string) int64 {
	s.t.Helper()
	var info struct{ Seq int64 }
	status, text := s.do("GET", path, "")
	if err := json.Unmarshal([]byte(text), &info); err != nil || status != 200 {
		s.t.Fatalf("%d %s", status, text)
	}
	return info.Seq
}

// checkLog wants at least n events, dense, each as it was sent, and the value of the last.
func (s *serving) checkLog(path string, n int64) {
	s.t.Helper()
	status, text, err := s.try("GET", path+"/events", "", "Accept: application/x-ndjson")
	if err != nil || status != 200 {
		s.t.Fatalf("%d %s %v", status, text, err)
	}
	type todos struct {
		Todos []struct{ Content string }
	}
	count := int64(0)
	for line := range strings.Lines(text) {
		var ev struct {
			Seq  int64
			Data todos
		}
		if err := json.Unmarshal([]byte(line), &ev); err != nil || ev.Seq != count || len(ev.Data.Todos) != 1 || ev.Data.Todos[0].Content != fmt.Sprintf("todo %d", count) {
			s.t.Fatalf("event %d is %s, %v", count, line, err)
		}
		count++
	}
	if count < n || count > n+1 { // One more may be in the log than was heard of.
		s.t.Errorf("%s has %d events, and %d were acknowledged", path, count, n)
	}
	if count == 0 {
		return
	}
	var block struct {
		AsOfSeq int64
		Values  struct {
			Todos []struct{ Content string }
		}
	}
	if _, text = s.do("GET", path+"/projections?keys=todos", ""); json.Unmarshal([]byte(text), &block) != nil || block.AsOfSeq != count-1 || len(block.Values.Todos) != 1 ||
		block.Values.Todos[0].Content != fmt.Sprintf("todo %d", count-1) {
		s.t.Errorf("after %d events the values are %s", count, text)
	}
}

func TestTheOwnerOfADirectoryIsNamed(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := serve(t, data)
	r := foldhost(t, t.TempDir(), "serve", "--data", data, "--listen", "127.0.0.1:0").want(t, 1)
	for _, part := range []string{data, fmt.Sprint(s.cmd.Process.Pid), s.url} {
		if !strings.Contains(r.stderr, part) {
			t.Errorf("it does not name %s: %s", part, r.stderr)
		}
	}
	lock := read(t, filepath.Join(data, "foldhost.lock"))
	same(t, "the lock file", lock, fmt.Sprintf("%d\n%s\n", s.cmd.Process.Pid, s.url))
	if status, _ := s.do("GET", "/healthz", ""); status != 200 {
		t.Error("the owner was disturbed")
	}
}

func TestWhatServeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		yaml string
		code int
		says string
	}{
		"every address":                {args: []string{"--listen", ":0"}, code: 1, says: "loopback"},
		"an address of others":         {args: []string{"--listen", "0.0.0.0:0"}, code: 1, says: "loopback"},
		"one from the file":            {yaml: "listen: 0.0.0.0:7420\n", code: 1, says: "loopback"},
		"a port that is none":          {args: []string{"--listen", "127.0.0.1:99999"}, code: 2, says: "from 1 to 65535"},
		"one of the file that is none": {yaml: "listen: 127.0.0.1:seven\n", code: 2, says: "from 1 to 65535"},
		"no port":                      {args: []string{"--listen", "127.0.0.1"}, code: 2, says: "host:port"},
		"a durability that is none":    {args: []string{"--durability", "some"}, code: 2, says: "relaxed"},
		"an argument":                  {args: []string{"here"}, code: 2},
		"tokens that are not there":    {yaml: "tokenFile: tokens\n", code: 1, says: "tokens"},
		"plugins that are not there":   {args: []string{"--plugins", "nowhere", "--listen", "127.0.0.1:0"}, code: 1, says: "nowhere"},
		"a file for a directory":       {args: []string{"--data", "foldhost.yaml", "--listen", "127.0.0.1:0"}, code: 1, says: "not-a-directory"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "foldhost.yaml")
			if err := os.WriteFile(file, []byte(c.yaml), 0o600); err != nil {
				t.Fatal(err)
			}
			r := foldhost(t, dir, append([]string{"serve", "--config", file}, c.args...)...).want(t, c.code)
			if !strings.Contains(r.stderr, c.says) {
				t.Errorf("it says %s", r.stderr)
			}
			if strings.Contains(name, "plugins") {
				return // The directory was there before they were looked for.
			}
			if _, err := os.Stat(filepath.Join(dir, "foldhost-data")); !errors.Is(err, os.ErrNotExist) {
				t.Error("it made a data directory")
			}
		})
	}
}

// What plugins own is checked at the door, and their values come over HTTP as they are.
func TestServeWithPlugins(t *testing.T) {
	s := serve(t, filepath.Join(t.TempDir(), "data"), "--durability", "relaxed")
	if _, text := s.do("GET", "/readyz", ""); text != "{\"ready\":true,\"missing\":[]}\n" {
		t.Errorf("ready is %s", text)
	}
	s.do("POST", "/v1/sessions", `{"id":"s"}`)
	status, text := s.do("POST", "/v1/sessions/s/events", `{"type":"todo/write","data":{"todos":[{"content":"x","status":"doing"}]}}`)
	if status != 422 || !strings.Contains(text, `"code":"event-invalid"`) || !strings.Contains(text, `"reason":"event-schema"`) || !strings.Contains(text, `"path":"$.data.todos[0].status"`) {
		t.Errorf("%d %s", status, text)
	}
	status, text = s.do("POST", "/v1/sessions/s/events?projections=title,todos", `{"events":[{"type":"session/title","data":{"title":"<t>"}},`+fmt.Sprintf(todoOf, "a")+`]}`)
	if status != 200 || !strings.Contains(text, `"values":{"title":"<t>","todos":[{"content":"a","status":"pending"}]}`) {
		t.Errorf("%d %s", status, text)
	}
}
