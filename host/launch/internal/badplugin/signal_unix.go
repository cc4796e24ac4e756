//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

var signals = map[string]syscall.Signal{"KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP, "TERM": syscall.SIGTERM}

func signalSelf(name string) {
	syscall.Kill(syscall.Getpid(), signals[name])
}

func ignoreTerm() { signal.Ignore(syscall.SIGTERM) }
