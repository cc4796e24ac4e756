package launch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// File is a plugin's file that passed the checks, open for reading. Close it.
type File struct {
	// Path is as it was given, made absolute; Resolved has every symbolic link followed.
	Path, Resolved string
	Format         Format
	// Warnings are what an operator should change and that does not stop the plugin.
	Warnings []string

	file *os.File
}

// Rules of a FileError.
const (
	FileMissing       = "missing"
	FileDanglingLink  = "dangling-link"
	FileLinkLoop      = "link-loop"
	FileDirectory     = "directory"
	FileIrregular     = "irregular"
	FileUnreadable    = "unreadable"
	FileEmpty         = "empty"
	FileNotExecutable = "not-executable"
	FileNoExec        = "noexec"
	FileForeignOwner  = "foreign-owner"
	FileWorldWritable = "world-writable"
	FileChecksum      = "checksum"
)

// FileError says why a file is not run.
type FileError struct {
	Path string
	// Rule is one of the File constants.
	Rule   string
	Reason string
	Remedy string
	Err    error
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s: %s", e.Path, e.Reason)
}

func (e *FileError) Unwrap() error { return e.Err }

// Inspect opens a file and checks that it may be run: a regular file (links are followed), readable and executable for the host's
// user, which neither it nor the directory it lies in lets everybody write, and which belongs to root or the host's user. The
// error is a *FileError.
func Inspect(path string) (*File, error) {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	refuse := func(rule, remedy string, cause error, format string, args ...any) (*File, error) {
		return nil, &FileError{Path: path, Rule: rule, Reason: fmt.Sprintf(format, args...), Remedy: remedy, Err: cause}
	}
	info, err := os.Stat(path)
	if err != nil {
		return refuseMissing(path, err)
	}
	// Before the file is opened: opening a pipe waits for its other end.
	switch mode := info.Mode(); {
	case mode.IsDir():
		return refuse(FileDirectory, "name the plugin's file", nil, "is a directory")
	case !mode.IsRegular():
		return refuse(FileIrregular, "name a regular file", nil, "is not a regular file but %s", mode.Type())
	}
	file, err := os.Open(path)
	if err != nil {
		remedy := ""
		if errors.Is(err, fs.ErrPermission) {
			remedy = "let the host's user read it: chmod +r " + path
		}
		return refuse(FileUnreadable, remedy, err, "cannot be read: %v", plainOf(err))
	}
	f := &File{Path: path, Resolved: path, file: file}
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		f.Resolved = resolved
	}
	if err := f.check(); err != nil {
		f.Close()
		return nil, err
	}
	f.Format = readFormat(file, info.Size())
	return f, nil
}

// check judges the file that is open, whatever lies at its path by now.
func (f *File) check() error {
	refuse := func(rule, remedy, format string, args ...any) error {
		return &FileError{Path: f.Path, Rule: rule, Reason: fmt.Sprintf(format, args...), Remedy: remedy}
	}
	info, err := f.file.Stat()
	if err != nil {
		return &FileError{Path: f.Path, Rule: FileUnreadable, Reason: "cannot be looked at", Err: err}
	}
	switch {
	case !info.Mode().IsRegular():
		return refuse(FileIrregular, "name a regular file", "is not a regular file")
	case noexec(f.Path):
		return refuse(FileNoExec, "move it to another file system", "lies on a file system that is mounted noexec")
	case !executable(f.Path, info):
		return refuse(FileNotExecutable, "chmod +x "+f.Path, "is not executable for the host's user")
	case info.Size() == 0: // Once it is known that it would be a plugin: an empty note beside one is none.
		return refuse(FileEmpty, "copy it again", "is empty")
	}
	if err := f.checkOwner(f.Resolved, info, "the file"); err != nil {
		return err
	}
	dirs := []string{filepath.Dir(f.Resolved)}
	if dir := filepath.Dir(f.Path); dir != dirs[0] {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil {
			return &FileError{Path: f.Path, Rule: FileUnreadable, Reason: "its directory cannot be looked at", Err: err}
		}
		if err := f.checkOwner(dir, info, "its directory"); err != nil {
			return err
		}
	}
	return nil
}

// checkOwner judges who may change a file or directory.
func (f *File) checkOwner(path string, info fs.FileInfo, what string) error {
	owner, foreign := foreignOwner(info)
	perm := writers(info)
	switch {
	case foreign:
		return &FileError{Path: f.Path, Rule: FileForeignOwner, Remedy: "chown root " + path,
			Reason: fmt.Sprintf("%s belongs to user %d, who is neither root nor the host's user", what, owner)}
	case perm&0o002 != 0:
		return &FileError{Path: f.Path, Rule: FileWorldWritable, Remedy: "chmod o-w " + path,
			Reason: fmt.Sprintf("everybody can write %s (mode %04o)", what, perm)}
	case perm&0o020 != 0:
		f.Warnings = append(f.Warnings, fmt.Sprintf("the group can write %s (mode %04o): chmod g-w %s", what, perm, path))
	}
	return nil
}

func refuseMissing(path string, err error) (*File, error) {
	refused := &FileError{Path: path, Rule: FileUnreadable, Reason: fmt.Sprintf("cannot be looked at: %v", plainOf(err)), Err: err}
	target, notLink := os.Readlink(path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		refused.Remedy = "let the host's user enter its directory"
	case errors.Is(err, syscall.ELOOP):
		refused.Rule, refused.Reason = FileLinkLoop, "is reached by links that lead in a circle"
		if notLink == nil {
			refused.Reason = fmt.Sprintf("is a link to %s, and from there links lead in a circle", target)
		}
		refused.Remedy = "make the link name the file itself"
	case errors.Is(err, fs.ErrNotExist) && notLink == nil:
		refused.Rule, refused.Reason = FileDanglingLink, fmt.Sprintf("is a link to %s, which does not exist", target)
		refused.Remedy = "remove the link, or put the file back"
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		refused.Rule, refused.Reason = FileMissing, "does not exist"
	}
	return nil, refused
}

// Sum hashes the open file: what is executed, where the system can execute an open file.
func (f *File) Sum(ctx context.Context) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	if _, err := io.Copy(h, &withContext{ctx, io.NewSectionReader(f.file, 0, 1<<62)}); err != nil {
		return sum, fmt.Errorf("hash %s: %w", f.Path, err)
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// verify compares the file with a SHA-256 in hex.
func (f *File) verify(ctx context.Context, want string) error {
	sum, err := f.Sum(ctx)
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(sum[:]); got != strings.ToLower(strings.TrimSpace(want)) {
		return &FileError{Path: f.Path, Rule: FileChecksum, Remedy: "put the file back that was pinned, or pin this one if it is the one you want",
			Reason: fmt.Sprintf("has SHA-256 %s, and %s is pinned", got, want)}
	}
	return nil
}

// Close closes the file.
func (f *File) Close() { f.file.Close() }

// withContext ends a long read when its context does.
type withContext struct {
	ctx context.Context
	r   io.Reader
}

func (r *withContext) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}
