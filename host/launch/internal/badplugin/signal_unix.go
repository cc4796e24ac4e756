//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

var signals = map[string]syscall.Signal{"KILL": syscall.SIGKILL, "SEGV": syscall.SIGSEGV, "STOP": syscall.SIGSTOP, "TERM": syscall.SIGTERM}

func signalSelf(name string) {
	if name == "SEGV" {
		signal.Reset(syscall.SIGSEGV)
	}
	syscall.Kill(syscall.Getpid(), signals[name])
}

func ignoreTerm() { signal.Ignore(syscall.SIGTERM) }
