//go:build unix && !linux && !darwin

package launch

import "syscall"

func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit cannot leave a process to be reaped here; its group is ended only when the host stops it.
func awaitExit(int) bool { return false }
