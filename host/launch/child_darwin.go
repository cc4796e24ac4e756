package launch

import (
	"syscall"
	"unsafe"
)

// processAttributes: a group of its own, so that it can be ended with all that it started. When the host dies, only the lifeline
// tells.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit returns when the process has ended, and leaves it to be reaped: true.
func awaitExit(pid int) bool {
	const (
		byPid   = 1    // P_PID
		exited  = 0x4  // WEXITED
		leaveIt = 0x20 // WNOWAIT
	)
	var info [16]uint64 // A siginfo_t has 104 bytes.
	for {
		_, _, err := syscall.Syscall6(syscall.SYS_WAITID, byPid, uintptr(pid), uintptr(unsafe.Pointer(&info)), exited|leaveIt, 0, 0)
		if err != syscall.EINTR {
			return true
		}
	}
}
