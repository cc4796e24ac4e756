//go:build unix

package launch

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

func killGroup(cmd *exec.Cmd)      { signalGroup(cmd.Process.Pid, syscall.SIGKILL) }
func terminateGroup(cmd *exec.Cmd) { signalGroup(cmd.Process.Pid, syscall.SIGTERM) }

// signalGroup reaches the group and the process itself, which may have moved to another group. The process must not be reaped yet.
func signalGroup(pid int, sig syscall.Signal) {
	syscall.Kill(-pid, sig)
	syscall.Kill(pid, sig)
}

// signalOf names the signal that ended a process.
func signalOf(state *os.ProcessState) string {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return unix.SignalName(status.Signal())
	}
	return ""
}
