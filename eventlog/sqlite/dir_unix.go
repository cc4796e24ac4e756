//go:build unix

package sqlite

import (
	"io/fs"
	"os"
	"syscall"
)

// foreignOwner names the owner when that is neither root nor this user. Root is told too: files that it made there would be out of the owner's reach.
func foreignOwner(info fs.FileInfo) (uid uint32, foreign bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 || int(st.Uid) == os.Geteuid() {
		return 0, false
	}
	return st.Uid, true
}

// syncDir makes names in a directory last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return dirError(dir, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return dirError(dir, err)
	}
	return nil
}
