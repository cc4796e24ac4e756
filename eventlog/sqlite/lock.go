package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// lock is held by the process that owns a directory. The system lets go of it when the process ends, by whatever means, so a lock that is held has a living owner.
type lock struct{ file *os.File }

// acquire takes the lock of a directory and writes the pid into it, or gives *LockedError.
func acquire(dir string) (*lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, dirError(dir, err)
	}
	if err := lockFile(f); err != nil {
		defer f.Close()
		if errors.Is(err, errLocked) {
			return nil, &LockedError{Dir: dir, PID: readPID(f)}
		}
		return nil, dirError(dir, err)
	}
	l := &lock{file: f}
	if err := l.sign(); err != nil {
		_ = l.release()
		return nil, dirError(dir, err)
	}
	return l, nil
}

var errLocked = errors.New("locked")

// sign writes the pid over that of an owner before. It is for people and errors; nothing depends on it.
func (l *lock) sign() error {
	pid := strconv.Itoa(os.Getpid()) + "\n"
	if _, err := l.file.WriteAt([]byte(pid), 0); err != nil {
		return err
	}
	return l.file.Truncate(int64(len(pid)))
}

// release lets go of the lock. The file stays: taking it away would let two processes lock two files of one name.
func (l *lock) release() error { return l.file.Close() }

// readPID reads the pid of the owner, 0 when it has not written it yet.
func readPID(f *os.File) int {
	var buf [32]byte
	n, _ := f.ReadAt(buf[:], 0)
	line, _, whole := strings.Cut(string(buf[:n]), "\n")
	pid, err := strconv.Atoi(line)
	if !whole || err != nil || pid < 0 {
		return 0
	}
	return pid
}
