package sqlite

import "golang.org/x/sys/windows"

// freeSpace is how many bytes this user may still write where a directory is.
func freeSpace(dir string) (bytes int64, known bool) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, nil, nil); err != nil {
		return 0, false
	}
	return int64(free), true
}
