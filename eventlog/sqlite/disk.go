package sqlite

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	sqlite3 "github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"github.com/foldhost/foldhost/internal/measure"
)

// disk stands between SQLite and the files of one store. SQLite reports a failed write or sync as a number, and what the system said is lost by the time that the
// transaction has been rolled back; disk remembers it. It counts syncs too.
//
// One mutex guards the fault.
type disk struct {
	base vfs.VFSFilename
	name string

	syncs       atomic.Int64
	syncSeconds *measure.Histogram

	mu    sync.Mutex
	fault *diskFault
}

// diskFault is the first thing that went wrong since somebody asked.
type diskFault struct {
	op   diskOp
	path string
	err  error
}

type diskOp string

const (
	opWrite    diskOp = "writing"
	opSync     diskOp = "syncing"
	opTruncate diskOp = "truncating"
	opGrow     diskOp = "growing"
)

func (f *diskFault) Error() string { return fmt.Sprintf("%s %s: %v", f.op, f.path, f.err) }

func (f *diskFault) Unwrap() error { return f.err }

// full says whether there was no room. A sync that says so has lost what it should have kept, and that is no mere lack of room.
func (f *diskFault) full() bool { return f.op != opSync && noRoom(f.err) }

func noRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// disks numbers the disks of this process, whose names SQLite finds them by.
var disks atomic.Int64

// newDisk registers a disk; close takes it away again.
func newDisk(base vfs.VFSFilename) *disk {
	d := &disk{base: base, syncSeconds: measure.NewSeconds(), name: fmt.Sprintf("foldhost-%d", disks.Add(1))}
	vfs.Register(d.name, d)
	return d
}

func (d *disk) close() { vfs.Unregister(d.name) }

// take gives the fault and forgets it.
func (d *disk) take() *diskFault {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.fault
	d.fault = nil
	return f
}

func (d *disk) note(op diskOp, path string, err error) error {
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.fault == nil {
			d.fault = &diskFault{op: op, path: path, err: err}
		}
	}
	return err
}

// Open implements vfs.VFS; SQLite calls OpenFilename.
func (d *disk) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	return d.base.Open(name, flags)
}

// OpenFilename implements vfs.VFSFilename.
func (d *disk) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := d.base.OpenFilename(name, flags)
	if err != nil {
		return nil, flags, err
	}
	whole, ok := f.(diskFile)
	if !ok {
		_ = f.Close()
		return nil, flags, sqlite3.CANTOPEN
	}
	return &watchedFile{diskFile: whole, disk: d, path: name.String()}, flags, nil
}

// Delete implements vfs.VFS.
func (d *disk) Delete(name string, syncDir bool) error {
	return d.base.Delete(name, syncDir)
}

// Access implements vfs.VFS.
func (d *disk) Access(name string, flags vfs.AccessFlag) (bool, error) {
	return d.base.Access(name, flags)
}

// FullPathname implements vfs.VFS.
func (d *disk) FullPathname(name string) (string, error) { return d.base.FullPathname(name) }

// diskFile is all that a file must be for the WAL mode to work as it does without a disk in between. Memory maps are left out on purpose: a
// failing disk would be a signal instead of an error.
type diskFile interface {
	vfs.FileLockState
	vfs.FileHasMoved
	vfs.FileSizeHint
	vfs.FilePersistWAL
	vfs.FilePowersafeOverwrite
	vfs.FileSharedMemory
}

type watchedFile struct {
	diskFile
	disk *disk
	path string
}

func (f *watchedFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.diskFile.WriteAt(p, off)
	return n, f.disk.note(opWrite, f.path, err)
}

func (f *watchedFile) Truncate(size int64) error {
	return f.disk.note(opTruncate, f.path, f.diskFile.Truncate(size))
}

func (f *watchedFile) Sync(flags vfs.SyncFlag) error {
	f.disk.syncs.Add(1)
	began := time.Now()
	err := f.diskFile.Sync(flags)
	f.disk.syncSeconds.Took(time.Since(began))
	return f.disk.note(opSync, f.path, err)
}

func (f *watchedFile) SizeHint(size int64) error {
	return f.disk.note(opGrow, f.path, f.diskFile.SizeHint(size))
}
