package launch

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// child is a process with its group and its three pipes. It ends when the process does: pipes that somebody else still holds are
// closed on our side.
//
// mu guards reaped and killedFor. The rest is set before the process runs; exit is set before exited is closed.
type child struct {
	cmd *exec.Cmd
	// stdin is the lifeline: nothing is written to it, and it ends with the host.
	stdin *os.File
	// stdout and stderr are read by the goroutines that start was given.
	stdout, stderr *os.File

	exited chan struct{}
	exit   Exit

	mu        sync.Mutex
	reaped    bool
	killedFor string
	expected  bool
}

// drainGrace is how long output is read on after the process has ended: what it wrote is in the pipe, and reading that takes no time.
// Who still holds the other end is not waited for.
const drainGrace = 100 * time.Millisecond

// busyTries: a file that this process has just written cannot be executed as long as a fork of another goroutine still has it open,
// for some milliseconds. A file that somebody really writes stays busy, and the start fails.
const (
	busyTries = 10
	busyPause = 10 * time.Millisecond
)

// startChild runs cmd, which has path, arguments and environment, on the thread. readOut and readErr are called with the pipes on goroutines
// of their own and must return when reading fails.
func startChild(t *thread, cmd *exec.Cmd, readOut, readErr func(*os.File)) (*child, error) {
	c := &child{cmd: cmd, exited: make(chan struct{})}
	var theirs []*os.File
	closeAll := func(files ...*os.File) {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}
	pipe := func(ours **os.File, reading bool) (*os.File, error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		if reading {
			r, w = w, r
		}
		*ours = w
		theirs = append(theirs, r)
		return r, nil
	}
	in, err1 := pipe(&c.stdin, false)
	out, err2 := pipe(&c.stdout, true)
	errs, err3 := pipe(&c.stderr, true)
	err := errors.Join(err1, err2, err3)
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
		cmd.SysProcAttr = processAttributes()
		for try := 1; ; try++ {
			t.do(func() { err = cmd.Start() })
			if try == busyTries || !errors.Is(err, syscall.ETXTBSY) {
				break
			}
			time.Sleep(busyPause)
			again := exec.Command(cmd.Path)
			again.Path, again.Args, again.Env, again.SysProcAttr = cmd.Path, cmd.Args, cmd.Env, cmd.SysProcAttr
			again.Stdin, again.Stdout, again.Stderr = in, out, errs
			cmd, c.cmd = again, again
		}
	}
	closeAll(theirs...)
	if err != nil {
		closeAll(c.stdin, c.stdout, c.stderr)
		return nil, err
	}
	var reading sync.WaitGroup
	reading.Go(func() { readOut(c.stdout) })
	reading.Go(func() { readErr(c.stderr) })
	go c.reap(&reading)
	return c, nil
}

// reap waits for the process, ends its group, and takes in what is left of its output.
func (c *child) reap(reading *sync.WaitGroup) {
	// The process is not reaped before its group is ended: until then its number can be nobody else's.
	var err error
	if awaitExit(c.cmd.Process.Pid) {
		c.mu.Lock()
		killGroup(c.cmd)
		err = c.cmd.Wait()
	} else {
		err = c.cmd.Wait()
		c.mu.Lock()
	}
	c.reaped = true
	c.exit.Expected, c.exit.KilledFor = c.expected, c.killedFor
	c.mu.Unlock()

	c.exit.Code, c.exit.Signal = -1, ""
	if state := c.cmd.ProcessState; state != nil {
		c.exit.Code, c.exit.Signal = state.ExitCode(), signalOf(state)
	} else if err != nil {
		c.exit.Signal = err.Error()
	}
	deadline := time.Now().Add(drainGrace)
	c.stdout.SetReadDeadline(deadline)
	c.stderr.SetReadDeadline(deadline)
	reading.Wait()
	c.stdout.Close()
	c.stderr.Close()
	c.stdin.Close()
	close(c.exited)
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// expect says that the end of the process is wanted.
func (c *child) expect() {
	c.mu.Lock()
	c.expected = true
	c.mu.Unlock()
}

// kill ends the process and its group at once. The first reason counts; it is empty for a stop that was asked for.
func (c *child) kill(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	if c.killedFor == "" {
		c.killedFor = reason
	}
	killGroup(c.cmd)
}

// terminate asks the process and its group to end.
func (c *child) terminate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		terminateGroup(c.cmd)
	}
}
