package launch

import "io/fs"

// Windows has no execute permission, and its access lists say what permission bits would.

func executable(string, fs.FileInfo) bool     { return true }
func writers(fs.FileInfo) fs.FileMode         { return 0 }
func foreignOwner(fs.FileInfo) (uint32, bool) { return 0, false }
func noexec(string) bool                      { return false }
