package launch

import (
	"io"
	"io/fs"
)

// There are no socket directories on Windows.

func lockDir(string) (io.Closer, bool) { return nil, false }
func ownedByUs(fs.FileInfo) bool       { return true }
