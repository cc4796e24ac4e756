//go:build unix

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patient is for what must come, and is never waited out by a test that passes.
const patient = 30 * time.Second

// TestASecondInterruptEndsEverythingAtOnce: given a program that the first interrupt cannot end, because it writes to somebody who does not read,
// the second one ends it, and its plugin with it.
func TestASecondInterruptEndsEverythingAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		first, second os.Signal
		// told waits until it is said that a second one would end it.
		told bool
	}{
		"once the end is slow":        {os.Interrupt, os.Interrupt, true},
		"by the other signal":         {os.Interrupt, syscall.SIGTERM, true},
		"one right after the other":   {os.Interrupt, syscall.SIGTERM, false},
		"the other way round as well": {syscall.SIGTERM, os.Interrupt, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Symlink(filepath.Join(os.Getenv("FOLDHOST_PLUGIN_DIR"), "title"), filepath.Join(dir, "title")); err != nil {
				t.Fatal(err)
			}
			for i := range 1000 { // The list has 100 bytes and more for each: more than any pipe holds.
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("some-file-", i)), []byte("text"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out, stdout, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			said, stderr, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer said.Close()
			ctx, cancel := context.WithTimeout(t.Context(), patient)
			defer cancel()
			said.SetReadDeadline(time.Now().Add(patient))
			cmd := command(ctx, "plugin", "list", "--all", "--json", "--config", os.DevNull, "--plugins", dir)
			cmd.Stdout, cmd.Stderr = stdout, stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			stdout.Close()
			stderr.Close()
			pid := pidIn(t, out) // It writes, so that it has nothing else left to do, while its plugin is up.
			if err := cmd.Process.Signal(c.first); err != nil {
				t.Fatal(err)
			}
			if c.told {
				if line, err := bufio.NewReader(said).ReadString('\n'); err != nil || !strings.Contains(line, "once more") {
					t.Errorf("it says %q, %v", line, err)
				}
			}
			if err := cmd.Process.Signal(c.second); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			same(t, "exit code", cmd.ProcessState.ExitCode(), 130)
			gone(t, pid)
		})
	}
}

// pidIn reads no more of a list of plugins than the first number of a process.
func pidIn(t *testing.T, out io.Reader) int {
	t.Helper()
	number := regexp.MustCompile(`"pid":([0-9]+),`)
	var text []byte
	for len(text) < 4096 {
		one := make([]byte, 1)
		if _, err := io.ReadFull(out, one); err != nil {
			t.Fatalf("%v after %s", err, text)
		}
		text = append(text, one...)
		if m := number.FindSubmatch(text); m != nil {
			pid, _ := strconv.Atoi(string(m[1]))
			return pid
		}
	}
	t.Fatalf("no plugin is up: %s", text)
	return 0
}

// gone waits until a process that is nobody's child here has ended. In a container there may be nobody who reaps it.
func gone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(patient); syscall.Kill(pid, 0) == nil; time.Sleep(2 * time.Millisecond) {
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(stat), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the plugin lives on as process %d", pid)
		}
	}
}
