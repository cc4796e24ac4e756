package jsonl

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// WriteFile makes a file out of what write gives: under its name, complete and on disk, or not at all. Half of it is never seen,
// whatever fails. A file that is there is replaced when replace says so, otherwise kept, with an error that is fs.ErrExist. The new
// file can be read by its owner alone, as sessions are private.
//
// Replacing a symbolic link replaces the link. A file beside it, hidden and named after it, is left behind only when the process dies.
func WriteFile(path string, replace bool, write func(io.Writer) error) error {
	if err := writeFile(path, replace, write); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func writeFile(path string, replace bool, write func(io.Writer) error) (err error) {
	if info, err := os.Lstat(path); err == nil {
		if info.IsDir() {
			return errors.New("it is a directory")
		}
		if !replace {
			return fs.ErrExist
		}
	}
	dir := filepath.Dir(path)
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
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
