//go:build !linux

package launch

// execPath is the path to execute. An open file cannot be executed here.
func (f *File) execPath() (path string, byPath bool) { return f.Resolved, true }
