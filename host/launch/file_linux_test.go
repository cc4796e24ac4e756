package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAFileSystemMountedNoexec(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_NOEXEC, "size=64m,mode=0755"); err != nil {
		t.Skip("only root mounts:", err)
	}
	defer syscall.Unmount(dir, 0)
	t.Run("as TMPDIR is no hindrance", func(t *testing.T) {
		t.Setenv("TMPDIR", dir)
		healthy(t, newRig(t).start(t, spec("")))
	})
	t.Run("under the plugin is named", func(t *testing.T) {
		path := filepath.Join(dir, "plugin")
		copyTo(t, bad, path)
		_, err := newRig(t).Start(t.Context(), Spec{Plugin: "p", Path: path})
		var file *FileError
		if !errors.As(err, &file) || file.Rule != FileNoExec {
			t.Errorf("got %v, want the rule noexec", err)
		}
		must(t, os.Remove(path))
	})
}

func TestAPluginInheritsNothingOfTheHostsOrOfAnother(t *testing.T) {
	r := newRig(t)
	open, err := os.Open(bad)
	must(t, err)
	defer open.Close()
	other := r.start(t, spec("")).child
	has := "\n" + call(t, r.start(t, spec("")), "inherited", nil) + "\n"
	for _, f := range []*os.File{open, other.stdin, other.stdout, other.stderr} {
		raw, err := f.SyscallConn()
		must(t, err)
		raw.Control(func(fd uintptr) {
			target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
			must(t, err)
			if strings.Contains(has, "\n"+target+"\n") {
				t.Errorf("the plugin has %s", target)
			}
		})
	}
}
