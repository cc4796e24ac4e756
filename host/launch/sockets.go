package launch

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
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
	// Before are the directories that would have come first, where the host picks one; all of them failed.
	Before []*SocketDirError
}

// Error names every directory that was tried, with what the system said, and the remedy.
func (e *SocketDirError) Error() string {
	var b strings.Builder
	b.WriteString("there is no place for sockets: ")
	for _, tried := range append(slices.Clone(e.Before), e) {
		fmt.Fprintf(&b, "%s %s", tried.Dir, tried.Reason)
		if tried.Err != nil {
			fmt.Fprintf(&b, ": %v", plainOf(tried.Err))
		}
		b.WriteString("; ")
	}
	b.WriteString(e.Remedy)
	return b.String()
}
func (e *SocketDirError) Unwrap() error { return e.Err }

// plainOf is what the system said, without the path, which stands beside it.
func plainOf(err error) error {
	var path *fs.PathError
	var op *os.SyscallError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &op):
		return op.Err
	}
	return err
}

// socketBases are where the base directory may lie, in order: the one that was asked for alone, or the user's runtime directory, one beneath TMPDIR, one
// beneath /tmp. Nothing in it is ever executed.
func socketBases(asked string, env func(string) string, uid int) (dirs []string) {
	if asked != "" {
		return []string{asked}
	}
	name := "foldhost-" + strconv.Itoa(uid)
	if dir := env("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		dirs = append(dirs, filepath.Join(dir, "foldhost"))
	}
	if dir := env("TMPDIR"); filepath.IsAbs(dir) {
		dirs = append(dirs, filepath.Join(dir, name))
	}
	if dir := filepath.Join("/tmp", name); !slices.Contains(dirs, dir) {
		dirs = append(dirs, dir)
	}
	return dirs
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

// openSockets finds a place for sockets, and removes what dead hosts left in it. Where the host picks, a place that does not serve is no reason to
// give up: a runtime directory may be another user's, TMPDIR may be missing, full, read-only or long.
func openSockets(asked string) (*sockets, error) {
	if runtime.GOOS == "windows" {
		return &sockets{}, nil
	}
	return findSockets(asked, os.Getenv, os.Geteuid())
}

func findSockets(asked string, env func(string) string, uid int) (*sockets, error) {
	var failed []*SocketDirError
	for _, dir := range socketBases(asked, env, uid) {
		s := &sockets{base: dir, temporary: asked == ""}
		err := s.try()
		if err == nil {
			return s, nil
		}
		failed = append(failed, err)
	}
	last := failed[len(failed)-1]
	last.Before = failed[:len(failed)-1]
	return nil, last
}

// try makes a socket as a plugin would.
func (s *sockets) try() *SocketDirError {
	abs, err := filepath.Abs(s.base)
	if err != nil {
		return s.refuse("has no absolute path", err)
	}
	s.base = abs
	if n := len(s.base) + dirName + socketName; n > maxSocketPath {
		return s.refuse(fmt.Sprintf("is too long: the path of a socket in it would have %d bytes, and the system takes %d", n, maxSocketPath), nil)
	}
	if s.temporary { // The directory that a variable names is not made: a name that leads nowhere is more often a mistake.
		if _, err := os.Stat(filepath.Dir(s.base)); err != nil {
			return s.refuse("cannot be made", err)
		}
	}
	dir, err := s.newDir()
	if err != nil {
		var known *SocketDirError
		errors.As(err, &known)
		return known
	}
	s.sweep()
	defer dir.remove()
	l, err := net.Listen("unix", filepath.Join(dir.path, strings.Repeat("x", socketName-1)))
	if err != nil {
		return s.refuse("takes no sockets", err)
	}
	l.Close()
	return nil
}

// refuse says why the base directory does not serve.
func (s *sockets) refuse(reason string, err error) *SocketDirError {
	e := &SocketDirError{Dir: s.base, Reason: reason, Err: err, Remedy: "name another directory for them, short and on a disk with room, that the host's user can write to"}
	if s.temporary {
		e.Remedy = "set TMPDIR to a short directory that the host's user can write to, on a disk with room"
	}
	return e
}

// ensureBase makes the base directory, or checks that it is the host's own and closed to others.
func (s *sockets) ensureBase() error {
	if err := os.MkdirAll(s.base, 0o700); err != nil {
		return s.refuse("cannot be made", err)
	}
	info, err := os.Lstat(s.base)
	switch {
	case err != nil:
		return s.refuse("cannot be looked at", err)
	case !info.IsDir():
		return s.refuse("is not a directory", nil)
	case !ownedByUs(info):
		return s.refuse("belongs to another user", nil)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(s.base, 0o700); err != nil {
			return s.refuse("is open to others", err)
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

// newDir makes the directory of one start. The error is a *SocketDirError.
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
	return nil, s.refuse("takes no directory for a socket", err)
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
