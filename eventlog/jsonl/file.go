package jsonl

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// WriteFile makes a file out of what write gives: under its name, complete and on disk, or not at all. Half of it is never seen,
// whatever fails. A file that is there is replaced when replace says so, otherwise kept, with an error that is fs.ErrExist. What is no file
// (a directory, a device, a pipe) is never replaced. A new file has the mode that the umask leaves, one that replaces that of the old; it has
// no other access while it is written.
//
// Replacing a symbolic link replaces the link. A hidden file beside it, .foldhost-….tmp, is left behind only when the process dies.
func WriteFile(path string, replace bool, write func(io.Writer) error) error {
	if err := writeFile(path, replace, write); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func writeFile(path string, replace bool, write func(io.Writer) error) (err error) {
	old, err := replaced(path, replace)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	temp, err := createBeside(path, old)
	if err != nil {
		return err
	}
	defer func() {
		_ = temp.Close()           // closed already when all went well
		_ = os.Remove(temp.Name()) // renamed already when all went well
	}()
	if err := write(temp); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	if err := publish(temp.Name(), path, replace); err != nil {
		return err
	}
	return syncDir(dir)
}

// replaced says what stands at a path that is to be written: nil for nothing.
func replaced(path string, replace bool) (fs.FileInfo, error) {
	old, err := os.Stat(path)
	switch {
	case err == nil && old.IsDir():
		return nil, errors.New("it is a directory")
	case err == nil && !old.Mode().IsRegular():
		return nil, errors.New("it is a device or a pipe: choose a file, or - for standard output")
	}
	if _, err := os.Lstat(path); err == nil && !replace { // a link to nothing is something
		return nil, fs.ErrExist
	}
	return old, nil // what else Stat said, creating a file beside it will say again
}

// createBeside makes a hidden file in the directory of path. It is created with the access that it will have: a private log must not lie open
// while it is written.
func createBeside(path string, old fs.FileInfo) (*os.File, error) {
	perm := fs.FileMode(0o666)
	if old != nil {
		perm = old.Mode().Perm()
	}
	name := filepath.Join(filepath.Dir(path), ".foldhost-"+rand.Text()+".tmp") // not after path, whose name may be as long as names can be
	temp, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	var at *fs.PathError
	switch {
	case errors.As(err, &at): // The hidden name would mean nothing to anybody.
		return nil, fmt.Errorf("no file can be made in %s: %w", filepath.Dir(path), at.Err)
	case err != nil || old == nil:
		return temp, err
	}
	if err := temp.Chmod(perm); err != nil { // what the umask took
		return nil, errors.Join(err, temp.Close(), os.Remove(name))
	}
	return temp, nil
}

// publish gives the file its name in one step. A link, unlike a rename, does not replace what came there meanwhile.
func publish(temp, path string, replace bool) error {
	if !replace {
		err := os.Link(temp, path)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
		// A file system without links: look once more, and rename.
		if _, err := os.Lstat(path); err == nil {
			return fs.ErrExist
		}
	}
	return os.Rename(temp, path)
}

// syncDir makes the name durable. Windows cannot sync a directory and has no need to: its file systems log names.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
