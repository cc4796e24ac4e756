//go:build unix

package main

import (
	"os/exec"
	"os/signal"
	"syscall"
)

var signals = map[string]syscall.Signal{"KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "TERM": syscall.SIGTERM}

func signalSelf(name string) {
	syscall.Kill(syscall.Getpid(), signals[name])
}

// joinGroup leaves the group that the host made, for the host's own.
func joinGroup() error {
	group, err := syscall.Getpgid(syscall.Getppid())
	if err != nil {
		return err
	}
	return syscall.Setpgid(0, group)
}

func ignoreTerm() { signal.Ignore(syscall.SIGTERM) }

func leaveGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
