//go:build unix

package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// crowd are streams of one session, each a connection of its own.
type crowd struct {
	t     *testing.T
	conns []net.Conn
	lines []*bufio.Reader
}

// come opens n streams of the session s, and reads of each until a line begins so.
func come(t *testing.T, s *serving, n int, until string) *crowd {
	t.Helper()
	c := &crowd{t, make([]net.Conn, n), make([]*bufio.Reader, n)}
	t.Cleanup(c.leave)
	address := strings.TrimPrefix(s.url, "http://")
	c.each(func(i int) (err error) {
		if c.conns[i], err = net.Dial("tcp", address); err != nil {
			return err
		}
		c.lines[i] = bufio.NewReaderSize(c.conns[i], 1<<10)
		_, err = fmt.Fprintf(c.conns[i], "GET /v1/sessions/s/stream HTTP/1.1\r\nHost: %s\r\n\r\n", address)
		return err
	})
	if until != "" {
		c.read(until)
	}
	return c
}

// each does something for every stream, some at once.
func (c *crowd) each(do func(i int) error) {
	c.t.Helper()
	var next atomic.Int64
	var working sync.WaitGroup
	errs := make([]error, 64)
	for g := range errs {
		working.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(c.conns)) && errs[g] == nil; i = next.Add(1) - 1 {
				errs[g] = do(int(i))
			}
		})
	}
	working.Wait()
	if err := errors.Join(errs...); err != nil {
		c.t.Fatal(err)
	}
}

// read reads of every stream until a line begins so.
func (c *crowd) read(until string) {
	c.t.Helper()
	c.each(func(i int) error {
		c.conns[i].SetReadDeadline(time.Now().Add(time.Minute)) // for what must come
		for {
			line, err := c.lines[i].ReadSlice('\n')
			if err != nil && err != bufio.ErrBufferFull {
				return fmt.Errorf("stream %d: %w", i, err)
			}
			if strings.HasPrefix(string(line), until) {
				return nil
			}
		}
	})
}

func (c *crowd) leave() {
	for _, conn := range c.conns {
		if conn != nil {
			conn.Close()
		}
	}
}

// begin sends a request but for its last byte; the function that it gives sends that, and reads the answer.
func (s *serving) begin(method, path, body string) (end func() (status int, text string)) {
	s.t.Helper()
	address := strings.TrimPrefix(s.url, "http://")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path, address, len(body), body[:len(body)-1]); err != nil {
		s.t.Fatal(err)
	}
	return func() (int, string) {
		s.t.Helper()
		conn.SetDeadline(time.Now().Add(time.Minute)) // for what must come
		if _, err := conn.Write([]byte(body[len(body)-1:])); err != nil {
			s.t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			s.t.Fatalf("%s %s: %v", method, path, err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			s.t.Fatalf("%s %s: %v", method, path, err)
		}
		return res.StatusCode, string(text)
	}
}

// files counts what a process has open, -1 where that cannot be seen.
func (s *serving) files() int {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	if err != nil {
		return -1
	}
	return len(list)
}

// Given 10,000 streams of one session, each has its first frames and every event, the server serves on beside them, and when they leave nothing of them stays open.
func TestTenThousandStreams(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 1000
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if most := (int64(limit.Max) - 500) * 4 / 5; limit.Max < 1<<31 && most < int64(n) { // The server holds a quarter less than it may have open, and this test as many as it.
		if n = int(most); n < 50 {
			t.Fatalf("a process may have %d files open here: too few for any crowd (ulimit -Hn)", limit.Max)
		}
		t.Logf("%d streams, as the system lets a process have no more files: %d (ulimit -Hn)", n, limit.Max)
	}
	if limit.Cur < limit.Max { // Go raises it, but not everywhere.
		limit.Cur = limit.Max
		syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
	s := serve(t, filepath.Join(t.TempDir(), "data"))
	if status, text := s.do("POST", "/v1/sessions", `{"id":"s"}`); status != 201 {
		t.Fatal(status, text)
	}
	before := s.files()
	c := come(t, s, n, "event: session/baseline")
	if before > 0 && s.files() < before+n {
		t.Errorf("%d files are open with %d streams", s.files(), n)
	}
	for i := range 3 {
		if status, text := s.do("POST", "/v1/sessions/s/events?projections=todos", fmt.Sprintf(todoOf, fmt.Sprint("step ", i))); status != 200 || !strings.Contains(text, fmt.Sprint("step ", i)) {
			t.Error(status, text)
		}
		c.read("event: session/event")
	}
	c.leave()
	http.DefaultClient.CloseIdleConnections()
	for deadline := time.Now().Add(time.Minute); s.files() > before+8 && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	if now := s.files(); now > before+8 { // a connection of this test, and readers of the store
		t.Errorf("%d files are open, and before there were %d", now, before)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	same(t, "exit code", s.cmd.ProcessState.ExitCode(), 0)
	same(t, "stderr", s.stderr.String(), "")
}

// Given a server that may open few files, when more come than it can hold, then they wait, the store and the plugins are as before, and whoever waits is served once others leave.
func TestMoreConnectionsThanFiles(t *testing.T) {
	const files, most = 400, 300
	data := filepath.Join(t.TempDir(), "data")
	s := serveBy(t, func(ctx context.Context) *exec.Cmd {
		args := append([]string{"-c", `ulimit -n "$0"; exec "$@"`, fmt.Sprint(files), binary}, serveArgs(data)...)
		return exec.CommandContext(ctx, "sh", args...)
	})
	if status, text := s.do("POST", "/v1/sessions", `{"id":"s"}`); status != 201 {
		t.Fatal(status, text)
	}
	// These have their connections before the others come: one without a request would end for whoever waits.
	var asked []func() (status int, text string)
	for i := range 10 {
		id := fmt.Sprint("other", i)
		asked = append(asked, s.begin("POST", "/v1/sessions", fmt.Sprintf(`{"id":%q}`, id)), s.begin("POST", "/v1/sessions/"+id+"/events?projections=todos", fmt.Sprintf(todoOf, id)))
	}
	asked = append(asked, s.begin("POST", "/v1/plugins/todo/restart", "{}"))
	first := come(t, s, most-len(asked), "event: session/baseline")
	waiting := come(t, s, 40, "")
	for i, end := range asked {
		if status, text := end(); status/100 != 2 || i < 20 && i%2 == 1 && !strings.Contains(text, fmt.Sprint("other", i/2)) {
			t.Error(i, status, text)
		}
	}
	first.leave()
	waiting.read("event: session/baseline")
	s.kill()
	if text := s.stderr.String(); strings.Count(text, "as many connections are open as there may be") != 1 {
		t.Errorf("it says %q", text)
	}
}
