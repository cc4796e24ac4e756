//go:build unix

package e2e

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Given a stream, when the server is told to end, then the stream ends with a whole frame, the exit is clean, and the next start is not one after a crash.
func TestServeEndsCleanly(t *testing.T) {
	for name, signals := range map[string][]syscall.Signal{
		"SIGTERM": {syscall.SIGTERM}, "SIGINT": {syscall.SIGINT},
		// As timeout sends them, and who passes on what the terminal told everybody.
		"SIGINT twice at once": {syscall.SIGINT, syscall.SIGINT}, "both at once": {syscall.SIGTERM, syscall.SIGINT}, "three at once": {syscall.SIGINT, syscall.SIGTERM, syscall.SIGINT},
	} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			s := serve(t, data)
			s.do("POST", "/v1/sessions", `{"id":"s"}`)
			res, err := http.Get(s.url + "/v1/sessions/s/stream")
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			for _, signal := range signals {
				if err := s.cmd.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
			}
			text, err := io.ReadAll(res.Body)
			if err != nil || !strings.HasSuffix(string(text), "\n\n") || !strings.Contains(string(text), "session/baseline") {
				t.Errorf("the stream ended with %q, %v", text, err)
			}
			<-s.ended
			same(t, "exit code", s.cmd.ProcessState.ExitCode(), 0)
			same(t, "stderr", s.stderr.String(), "")
			http.DefaultClient.CloseIdleConnections()
			again := serve(t, data)
			if status, _ := again.do("GET", "/v1/sessions/s", ""); status != 200 {
				t.Errorf("the session is %d", status)
			}
			again.kill()
			same(t, "stderr after a clean end", again.stderr.String(), "")
		})
	}
}
