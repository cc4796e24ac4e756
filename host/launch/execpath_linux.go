package launch

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// execPath is the path that executes the open file, whatever lies at its own path by now. It goes through the host's table of
// descriptors and not the child's: between fork and exec the child moves descriptors, and could move this one away.
// A script cannot be executed so, because its interpreter opens the path again, when the host's descriptor may be gone.
func (f *File) execPath() (path string, byPath bool) {
	if f.Format.Kind == "script" {
		return f.Resolved, true
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.file.Fd()), false
}

// noexec says that the file lies on a file system from which nothing may be executed.
func noexec(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && int64(st.Flags)&unix.ST_NOEXEC != 0
}
