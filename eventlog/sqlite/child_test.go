package sqlite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The test binary is run again as the process that owns a store, told by these variables what to do.
const (
	childDir  = "FOLDHOST_TEST_STORE"
	childRole = "FOLDHOST_TEST_ROLE"
	childSeed = "FOLDHOST_TEST_SEED"
	childKill = "FOLDHOST_TEST_KILL"
)

// roles are what a child can do. It talks by lines on its output.
var roles = map[string]func(dir string) error{
	"hold": func(dir string) error {
		s, err := Open(nowhere, dir, Options{})
		if err != nil {
			return err
		}
		fmt.Println("open")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return s.Close()
	},
	"open": func(dir string) error {
		s, err := Open(nowhere, dir, Options{})
		if bad, ok := errors.AsType[*DirError](err); ok {
			fmt.Println(bad.Problem)
			return nil
		}
		if err == nil {
			err = s.Close()
		}
		fmt.Println("error:", err)
		return nil
	},
	"append": appendAndReport,
}

// child is what runs instead of the tests.
func child() int {
	role, ok := roles[os.Getenv(childRole)]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such role")
		return 2
	}
	if err := role(os.Getenv(childDir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is a child.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
	said  strings.Builder
}

func start(t testing.TB, role, dir string, env ...string) *process {
	t.Helper()
	return startCmd(t, exec.Command(os.Args[0]), role, dir, env...)
}

func startCmd(t testing.TB, cmd *exec.Cmd, role, dir string, env ...string) *process {
	t.Helper()
	p := &process{cmd: cmd}
	cmd.Env = append(append(os.Environ(), childRole+"="+role, childDir+"="+dir), env...)
	cmd.Stderr = &p.said
	var err error
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return p
}

// line gives the next line, or "" at the end.
func (p *process) line() string {
	if p.lines.Scan() {
		return p.lines.Text()
	}
	return ""
}
