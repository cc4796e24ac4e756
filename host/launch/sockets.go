package launch

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
)

// Socket directories. Each start gets a directory of its own, mode 0700, in a base directory of the host's user. It lives from just
// before the process starts until the connection stands, or the start has failed: after that the socket's name is of no use to
// anybody but an intruder, so a running plugin has no file at all. Only a host that dies in the middle of a start leaves one
// behind, and the next host removes it: who makes a directory holds a lock on it for as long as it lives.

// maxSocketPath is the longest path of a socket: 100 bytes. The system's limit is 108 on Linux and 104 on macOS, the ending zero
// included.
const maxSocketPath = 100

// socketName is the longest name that go-plugin gives to a socket: "plugin" and ten digits. Others have the same room.
const socketName = 1 + len("plugin1234567890")

// dirPrefix and dirName are what a directory of one start is called, so that the sweep touches nothing else.
const dirPrefix = "start-"

const dirName = 1 + len(dirPrefix) + 8

// SocketDirError says why there is no place for sockets.
type SocketDirError struct {
	Dir    string
	Reason string
	Remedy string
	Err    error
}

func (e *SocketDirError) Error() string {
	return fmt.Sprintf("socket directory %s: %s", e.Dir, e.Reason)
}
func (e *SocketDirError) Unwrap() error { return e.Err }

// socketBase picks the base directory: the one that was asked for, the user's runtime directory, or one beneath /tmp. TMPDIR is
// only used where it is short, and never for anything that is executed.
func socketBase(asked string, env func(string) string, uid int) (string, error) {
	name := "foldhost-" + strconv.Itoa(uid)
	candidates := []string{asked}
	if asked == "" {
		candidates = nil
		if dir := env("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && isDir(dir) {
			candidates = append(candidates, filepath.Join(dir, "foldhost"))
		}
		if dir := env("TMPDIR"); filepath.IsAbs(dir) && isDir(dir) {
			candidates = append(candidates, filepath.Join(dir, name))
		}
		candidates = append(candidates, filepath.Join("/tmp", name))
	}
	for _, dir := range candidates {
		if len(dir)+dirName+socketName <= maxSocketPath {
			return filepath.Abs(dir)
		}
	}
	dir := candidates[len(candidates)-1]
	return "", &SocketDirError{Dir: dir, Remedy: "name a shorter one",
		Reason: fmt.Sprintf("the path of a socket in it would have %d bytes; the system takes %d", len(dir)+dirName+socketName, maxSocketPath)}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// sockets is the base directory of one host. Immutable.
type sockets struct {
	// base is empty on systems whose plugins listen on TCP.
	base string
	// temporary says that base is ours to make and to remove: it is there only while something starts.
	temporary bool
}

// openSockets makes sure that there is a place for sockets, and removes what dead hosts left in it.
func openSockets(asked string) (*sockets, error) {
	if runtime.GOOS == "windows" {
		return &sockets{}, nil
	}
	base, err := socketBase(asked, os.Getenv, os.Geteuid())
	if err != nil {
		return nil, err
	}
	s := &sockets{base: base, temporary: asked == ""}
	// Another host that has nothing to start any more may remove the directory while this one looks at it.
	for range 8 {
		if err = s.ensureBase(); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	s.sweep()
	s.removeBase()
	return s, nil
}

// ensureBase makes the base directory, or checks that it is the host's own and closed to others.
func (s *sockets) ensureBase() error {
	if err := os.MkdirAll(s.base, 0o700); err != nil {
		return &SocketDirError{Dir: s.base, Reason: "cannot be made", Remedy: "name one that the host's user can make", Err: err}
	}
	info, err := os.Lstat(s.base)
	if err != nil {
		return &SocketDirError{Dir: s.base, Reason: "cannot be looked at", Err: err}
	}
	remedy := "remove it, or name another one"
	if !info.IsDir() {
		return &SocketDirError{Dir: s.base, Reason: "is not a directory", Remedy: remedy}
	}
	if !ownedByUs(info) {
		return &SocketDirError{Dir: s.base, Reason: "belongs to another user", Remedy: remedy}
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(s.base, 0o700); err != nil {
			return &SocketDirError{Dir: s.base, Reason: "is open to others", Remedy: "chmod 700 " + s.base, Err: err}
		}
	}
	return nil
}

// removeBase removes the base directory when nothing starts in it.
func (s *sockets) removeBase() {
	if s.temporary {
		os.Remove(s.base) // Fails when it is not empty.
	}
}

// sweep removes the directories whose makers are gone. What it cannot remove is left to the next one.
func (s *sockets) sweep() {
	entries, err := os.ReadDir(s.base)
	if err != nil {
		return
	}
	for _, e := range entries {
		dir := filepath.Join(s.base, e.Name())
		if !e.IsDir() || len(e.Name()) != dirName-1 || e.Name()[:len(dirPrefix)] != dirPrefix {
			continue
		}
		if lock, held := lockDir(dir); held {
			os.RemoveAll(dir)
			lock.Close()
		}
	}
}

// startDir is the directory of one start.
type startDir struct {
	path    string // empty on systems whose plugins listen on TCP
	lock    io.Closer
	sockets *sockets
}

func (s *sockets) newDir() (*startDir, error) {
	if s.base == "" {
		return &startDir{}, nil
	}
	var err error
	// Another host's sweep that comes between making and locking may take a directory away: then another one is made.
	for range 8 {
		if err = s.ensureBase(); err != nil {
			continue
		}
		var id [4]byte
		rand.Read(id[:])
		path := filepath.Join(s.base, dirPrefix+hex.EncodeToString(id[:]))
		if err = os.Mkdir(path, 0o700); err != nil {
			continue
		}
		if lock, held := lockDir(path); held {
			if isDir(path) {
				return &startDir{path: path, lock: lock, sockets: s}, nil
			}
			lock.Close()
		}
		err = errors.New("it vanishes as soon as it is made")
	}
	var known *SocketDirError
	if errors.As(err, &known) {
		return nil, known
	}
	return nil, &SocketDirError{Dir: s.base, Reason: "a directory for a socket cannot be made in it", Remedy: "free its disk, or name another one", Err: err}
}

// remove takes the directory away with all that is in it. More than once is harmless; not for concurrent use.
func (d *startDir) remove() {
	if d.lock == nil {
		return
	}
	os.RemoveAll(d.path)
	d.lock.Close()
	d.lock = nil
	d.sockets.removeBase()
}
