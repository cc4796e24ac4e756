//go:build unix

package launch

import (
	"io"
	"io/fs"
	"os"
	"syscall"
)

// lockDir locks a directory without waiting. The lock ends with its holder, however it ends, since no plugin inherits it.
func lockDir(path string) (lock io.Closer, held bool) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	if syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		dir.Close()
		return nil, false
	}
	return dir, true
}

func ownedByUs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
