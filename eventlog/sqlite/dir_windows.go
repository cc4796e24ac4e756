package sqlite

import "io/fs"

// foreignOwner cannot be told by the file's mode here.
func foreignOwner(fs.FileInfo) (uid uint32, foreign bool) { return 0, false }

// syncDir has no counterpart: NTFS journals names.
func syncDir(string) error { return nil }
