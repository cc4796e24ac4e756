//go:build unix

package launch

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// beHost is what the test program does as the host that is going to be killed: it starts a plugin of each kind that is named, says their
// numbers, and waits.
func beHost() {
	l, err := New(Options{SocketDir: os.Getenv("LAUNCH_TEST_HOST")})
	if err != nil {
		panic(err)
	}
	for _, mode := range strings.Split(os.Getenv("LAUNCH_TEST_MODES"), ",") {
		s := Spec{Plugin: mode, Path: os.Getenv("LAUNCH_TEST_PLUGIN"), Env: []string{"BADPLUGIN=" + mode}}
		if mode == "accept-and-hang" { // dies while it starts
			go l.Start(context.Background(), s)
			for {
				if pids := children(os.Getpid()); len(pids) > strings.Count(os.Getenv("LAUNCH_TEST_MODES"), ",") {
					fmt.Println(pids[len(pids)-1])
					break
				}
				time.Sleep(time.Millisecond)
			}
			continue
		}
		p, err := l.Start(context.Background(), s)
		if err != nil {
			panic(err)
		}
		fmt.Println(p.Pid())
	}
	fmt.Println("ready")
	select {}
}

// children are the processes that a process has started, in the order of their numbers.
func children(pid int) (pids []int) {
	ps := exec.Command("ps", "-A", "-o", "pid=,ppid=,stat=")
	out, _ := ps.Output()
	for line := range strings.Lines(string(out)) {
		var child, parent int
		var stat string
		fmt.Sscan(line, &child, &parent, &stat)
		if parent == pid && !strings.HasPrefix(stat, "Z") && child != ps.Process.Pid {
			pids = append(pids, child)
		}
	}
	return pids
}

func TestWhenTheHostIsKilledItsPluginsEndAndNothingIsLeft(t *testing.T) {
	modes := []string{"", "bare"}
	if runtime.GOOS == "linux" {
		// Those without a lifeline, and those that are not done starting, only the kernel can end.
		modes = append(modes, "no-lifeline", "accept-and-hang")
	}
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			r := newRig(t)
			host := exec.Command(os.Args[0])
			host.Env = append(os.Environ(), "LAUNCH_TEST_HOST="+r.dir, "LAUNCH_TEST_PLUGIN="+bad, "LAUNCH_TEST_MODES="+strings.Join(modes, ","))
			host.Stderr = os.Stderr
			out, err := host.StdoutPipe()
			must(t, err)
			must(t, host.Start())
			var pids []int
			lines := bufio.NewScanner(out)
			for lines.Scan() && lines.Text() != "ready" {
				var pid int
				if _, err := fmt.Sscan(lines.Text(), &pid); err != nil {
					t.Fatalf("the host says %q", lines.Text())
				}
				pids = append(pids, pid)
			}
			if len(pids) != len(modes) {
				t.Fatalf("%d plugins, want %d", len(pids), len(modes))
			}
			must(t, host.Process.Signal(signal))
			host.Wait()
			died := time.Now()
			for i, pid := range pids {
				for alive(pid) {
					if time.Since(died) > patient {
						syscall.Kill(pid, syscall.SIGKILL)
						t.Fatalf("the plugin %q outlives its host", modes[i])
					}
					time.Sleep(time.Millisecond)
				}
			}
			t.Logf("all plugins were gone %v after their host", time.Since(died))
			// What was starting has left its directory; the next host takes it away.
			next, err := New(Options{SocketDir: r.dir})
			must(t, err)
			next.Close()
			if left := r.files(t); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// alive says whether a process is there and has not ended; one that ended and that nobody has waited for yet is a zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	out, err := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}
