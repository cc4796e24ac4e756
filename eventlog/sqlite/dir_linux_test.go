package sqlite

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestAReadOnlyFileSystemIsRefused(t *testing.T) {
	asRoot(t)
	dir := made(t)
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("skipped: mounting is not permitted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("skipped: mounting is not permitted here: %v", err)
	}
	_, err := Open(t.Context(), dir, Options{})
	if e := as[*DirError](t, "Open", err); e.Problem != ReadOnly {
		t.Errorf("%+v", e)
	}
}
