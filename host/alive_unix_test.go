//go:build unix

package host_test

import "syscall"

// alive says whether there is a process of this number.
func alive(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) == nil }
