//go:build unix

package launch

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// executable asks the system, which knows of groups and access lists; for root it says yes to what anybody may execute.
func executable(path string, info fs.FileInfo) bool {
	return info.Mode()&0o111 != 0 && unix.Access(path, unix.X_OK) == nil
}

// writers gives the permission bits.
func writers(info fs.FileInfo) fs.FileMode { return info.Mode().Perm() }

// foreignOwner names the owner when that is neither root nor the host's user.
func foreignOwner(info fs.FileInfo) (uid uint32, foreign bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 || int(st.Uid) == os.Geteuid() {
		return 0, false
	}
	return st.Uid, true
}
