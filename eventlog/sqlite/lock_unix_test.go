//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// An owner that is killed while it starts a process leaves its open files, and with them the lock, to that process for a moment. Whoever opens the store then waits for it.
func TestALockThatADeadOwnerLeftToItsChild(t *testing.T) {
	dir := memoryDir(t)
	p := start(t, "leave the lock", dir)
	child := p.line()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	var pid int
	if _, err := fmt.Sscanf(child, "child %d", &pid); err != nil {
		t.Fatalf("the owner said %q", child)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := lockFile(f); !errors.Is(err, errLocked) {
		t.Fatalf("the lock died with its owner: %v", err)
	}
	keeper, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { _ = keeper.Kill() })
	s := reopen(t, dir, Options{})
	create(t, s, "a")
}

func init() {
	roles["leave the lock"] = func(dir string) error {
		s, err := Open(nowhere, dir, Options{})
		if err != nil {
			return err
		}
		keeper := exec.Command("sleep", "60")
		keeper.ExtraFiles = []*os.File{s.lock.file}
		if err := keeper.Start(); err != nil {
			return err
		}
		fmt.Println("child", keeper.Process.Pid)
		_, _ = io.Copy(io.Discard, os.Stdin)
		return nil
	}
}
