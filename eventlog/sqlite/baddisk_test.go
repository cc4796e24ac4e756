package sqlite

import (
	"strings"
	"sync"

	"github.com/ncruces/go-sqlite3/vfs"
)

// badDisk is the real disk with faults on command. One mutex guards the command and the counts.
type badDisk struct {
	vfs.VFSFilename
	mu sync.Mutex
	// fault says what the nth operation of a kind on a file gets, counted from 1 by kind and file; nil is what the disk says.
	fault func(op diskOp, path string, n int) error
	count map[string]int
	// fired counts faults, reads what was read.
	fired, reads int
}

func newBadDisk() *badDisk {
	return &badDisk{VFSFilename: vfs.Find("os").(vfs.VFSFilename), count: map[string]int{}}
}

// when sets the faults to come and begins to count anew.
func (d *badDisk) when(fault func(op diskOp, path string, n int) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.count, d.fired = fault, map[string]int{}, 0
}

func (d *badDisk) hits() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fired
}

// always gives the same fault to one kind of operation on files whose name ends so.
func always(op diskOp, suffix string, err error) func(diskOp, string, int) error {
	return func(o diskOp, path string, _ int) error {
		if o == op && strings.HasSuffix(path, suffix) {
			return err
		}
		return nil
	}
}

func (d *badDisk) check(op diskOp, path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count[string(op)+path]++
	if d.fault == nil {
		return nil
	}
	err := d.fault(op, path, d.count[string(op)+path])
	if err != nil {
		d.fired++
	}
	return err
}

func (d *badDisk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := d.VFSFilename.OpenFilename(name, flags)
	if err != nil {
		return nil, flags, err
	}
	return &badFile{f.(diskFile), d, name.String()}, flags, nil
}

type badFile struct {
	diskFile
	d    *badDisk
	path string
}

// A write that fails has written half of what it was given.
func (f *badFile) WriteAt(p []byte, off int64) (int, error) {
	if err := f.d.check(opWrite, f.path); err != nil {
		n, _ := f.diskFile.WriteAt(p[:len(p)/2], off)
		return n, err
	}
	return f.diskFile.WriteAt(p, off)
}

func (f *badFile) ReadAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	f.d.reads++
	f.d.mu.Unlock()
	return f.diskFile.ReadAt(p, off)
}

func (f *badFile) Sync(flags vfs.SyncFlag) error {
	if err := f.d.check(opSync, f.path); err != nil {
		return err
	}
	return f.diskFile.Sync(flags)
}

func (f *badFile) Truncate(size int64) error {
	if err := f.d.check(opTruncate, f.path); err != nil {
		return err
	}
	return f.diskFile.Truncate(size)
}

func (f *badFile) SizeHint(size int64) error {
	if err := f.d.check(opGrow, f.path); err != nil {
		return err
	}
	return f.diskFile.SizeHint(size)
}
