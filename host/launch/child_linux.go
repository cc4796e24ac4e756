package launch

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes: a group of its own, so that it can be ended with all that it started, and an end of its own when the host
// dies: plugins with a lifeline end by themselves, this is for those without.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns when the process has ended, and leaves it to be reaped: true.
func awaitExit(pid int) bool {
	for {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return true
		}
	}
}
