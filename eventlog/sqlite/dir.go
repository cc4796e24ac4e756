package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// prepareDir makes the data directory, for its owner alone, or says why the one that is there cannot be used.
func prepareDir(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		// 0700: sessions hold what people said.
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return dirError(dir, err)
		}
		return syncDir(filepath.Dir(dir))
	}
	if err != nil {
		return dirError(dir, err)
	}
	if !info.IsDir() {
		return &DirError{Dir: dir, Problem: NotDir, Remedy: "name a directory"}
	}
	if uid, foreign := foreignOwner(info); foreign {
		return &DirError{Dir: dir, Problem: Foreign, Remedy: fmt.Sprintf("run as its owner, user id %d, or give the directory to this user with chown -R", uid)}
	}
	return nil
}

// dirError tells what the system said about the directory or a file in it.
func dirError(dir string, err error) error {
	switch {
	case errors.Is(err, syscall.EROFS):
		return &DirError{Dir: dir, Problem: ReadOnly, Remedy: "its file system is mounted read-only: mount it for writing, or choose another directory", Err: err}
	case errors.Is(err, fs.ErrPermission):
		return &DirError{Dir: dir, Problem: ReadOnly, Remedy: "give this user the right to write there, or choose another directory", Err: err}
	case noRoom(err):
		return &DirError{Dir: dir, Problem: Unreachable, Remedy: "make room on its disk", Err: err}
	}
	return &DirError{Dir: dir, Problem: Unreachable, Remedy: "see to it that the path can be reached", Err: err}
}
