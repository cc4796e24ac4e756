package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// lock is held by the process that owns a directory. The system lets go of it when the process ends, by whatever means, so a lock that is held has a living owner,
// or one that died a moment ago.
type lock struct{ file *os.File }

// acquire takes the lock of a directory and writes the pid into it, or gives *LockedError.
func acquire(dir string) (*lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, dirError(dir, err)
	}
	if err := lockDead(f); err != nil {
		defer f.Close()
		if errors.Is(err, errLocked) {
			pid, url := readOwner(f)
			return nil, &LockedError{Dir: dir, PID: pid, URL: url}
		}
		return nil, dirError(dir, err)
	}
	l := &lock{file: f}
	if err := l.sign(""); err != nil && !noRoom(err) {
		_ = l.release()
		return nil, dirError(dir, err)
	}
	return l, nil
}

var errLocked = errors.New("locked")

// forkTime is how long the lock of an owner that is dead is waited for, lookAgain how often. A process that the owner was about to start when it was killed has its open files until
// it runs its own program, some milliseconds later.
const (
	forkTime  = 2 * time.Second
	lookAgain = 5 * time.Millisecond
)

// lockDead is lockFile that waits when the owner is dead already.
func lockDead(f *os.File) error {
	for late := time.Now().Add(forkTime); ; time.Sleep(lookAgain) {
		err := lockFile(f)
		if !errors.Is(err, errLocked) || time.Now().After(late) {
			return err
		}
		if pid, _ := readOwner(f); pid == 0 || !isDead(pid) {
			return err
		}
	}
}

// sign writes who the owner is, over what one before has written: the pid and, once there is one, the URL, a line each. It is for people, errors and those who
// look for a running host; nothing here depends on it. It is blotted out first, so that nobody reads the pid of one owner with the URL of another, and not emptied: on a full disk another would take
// the place.
func (l *lock) sign(url string) error {
	text := strconv.Itoa(os.Getpid()) + "\n"
	if url != "" {
		text += url + "\n"
	}
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	if old := min(info.Size(), maxOwner); old > 0 {
		if _, err := l.file.WriteAt(make([]byte, old), 0); err != nil {
			return err
		}
	}
	if _, err := l.file.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return l.file.Truncate(int64(len(text)))
}

// release lets go of the lock. The file stays: taking it away would let two processes lock two files of one name.
func (l *lock) release() error { return l.file.Close() }

// Announced gives the URL that the owner of a directory announced last, empty for none. The owner may have ended since: whoever needs to know asks there, or opens the store. Looking takes no lock, which
// would refuse a store that is just being opened.
func Announced(dir string) (url string, err error) {
	f, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", dirError(dir, err)
	}
	defer f.Close()
	_, url = readOwner(f)
	return url, nil
}

// maxOwner bounds what is read of a lock file: a pid, and a URL of an address.
const maxOwner = 512

// readOwner reads the pid of the owner, 0 when it has not written it yet, and its URL, empty when there is none.
func readOwner(f *os.File) (pid int, url string) {
	var buf [maxOwner]byte
	n, _ := f.ReadAt(buf[:], 0)
	line, rest, whole := strings.Cut(string(buf[:n]), "\n")
	pid, err := strconv.Atoi(line)
	if !whole || err != nil || pid < 0 {
		return 0, ""
	}
	if line, _, whole := strings.Cut(rest, "\n"); whole {
		url = line
	}
	return pid, url
}
