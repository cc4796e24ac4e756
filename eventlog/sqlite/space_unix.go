//go:build linux || darwin || freebsd

package sqlite

import "golang.org/x/sys/unix"

// freeSpace is how many bytes this user may still write where a directory is.
func freeSpace(dir string) (bytes int64, known bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return max(0, int64(st.Bavail)) * int64(st.Bsize), true
}
