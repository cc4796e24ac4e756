//go:build unix

package serve

import (
	"os"

	"golang.org/x/sys/unix"
)

// takeStdout gives standard output a descriptor of its own, which children do not inherit, and puts standard error in its place: C code,
// children and whoever writes to descriptor 1 are covered too.
func takeStdout() (*os.File, error) {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	if err := unix.Dup2(2, 1); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "handshake"), nil
}
