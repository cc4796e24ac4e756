//go:build unix

package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes the lock of an open file without waiting. It belongs to the open file, so a second store of this process is refused as another process is.
func lockFile(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EWOULDBLOCK):
			return errLocked
		case !errors.Is(err, unix.EINTR):
			return err
		}
	}
}

// isDead says that there is no process with this id.
func isDead(pid int) bool { return errors.Is(unix.Kill(pid, 0), unix.ESRCH) }
