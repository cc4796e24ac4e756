package e2e

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Without a flag, a variable and a file, in an empty directory, a server keeps its data in ./foldhost-data and listens on 127.0.0.1:7420. Where somebody else does, it says so, and serves on another port.
func TestServeOfNothing(t *testing.T) {
	dir := t.TempDir()
	bare := func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := command(ctx, append([]string{"serve"}, args...)...)
		cmd.Dir = dir
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "FOLDHOST_") })
		return cmd
	}
	const address = "127.0.0.1:7420"
	taken := func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cmd := bare(ctx)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		first, _ := bufio.NewReader(out).ReadString('\n')
		cancel()
		cmd.Wait()
		switch {
		case strings.HasPrefix(first, "serving http://"+address):
			return false
		case first == "" && strings.Contains(stderr.String(), address):
			return true
		}
		t.Fatalf("it says %q and %q", first, stderr.String())
		return false
	}()
	var args []string
	if taken {
		args = []string{"--listen", "127.0.0.1:0"}
	}
	s := serveBy(t, func(ctx context.Context) *exec.Cmd { return bare(ctx, args...) })
	if _, text := s.do("GET", "/readyz", ""); text != "{\"ready\":true,\"missing\":[]}\n" {
		t.Errorf("ready is %s", text)
	}
	if status, text := s.do("POST", "/v1/sessions", `{"id":"s"}`); status != 201 {
		t.Errorf("%d %s", status, text)
	}
	if _, err := os.Stat(filepath.Join(dir, "foldhost-data")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "plugins")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it made a directory of plugins: %v", err)
	}
	if !taken && !strings.Contains(s.url, address) {
		t.Errorf("it serves at %s", s.url)
	}
}
