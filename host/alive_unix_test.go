//go:build unix

package host_test

import (
	"syscall"
	"testing"
)

// alive says whether there is a process of this number.
func alive(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) == nil }

// freeze stops a process without ending it.
func freeze(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}
