//go:build unix

package launch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestTheSocketDirectoryIsTheFirstThatServes(t *testing.T) {
	// Short, as t.TempDir with the names of tests is not.
	dir, err := os.MkdirTemp("/tmp", "x")
	must(t, err)
	defer os.RemoveAll(dir)
	in := func(name string) string { return filepath.Join(dir, name) }
	short, long, taken := in("s"), in(strings.Repeat("y", 80)), in("t")
	for _, d := range []string{short, long, taken} {
		must(t, os.Mkdir(d, 0o700))
	}
	for _, name := range []string{"file", "t/foldhost", "t/foldhost-7"} {
		write(t, in(name), "x", 0o600)
	}
	const last = "/tmp/foldhost-7"
	for _, tt := range []struct {
		name, asked, runtime, tmp, want string
		tried                           []string // that do not serve
	}{
		{"what is asked for", in("new/deep"), short, short, in("new/deep"), nil},
		{"the user's runtime directory", "", short, dir, short + "/foldhost", nil},
		{"TMPDIR", "", "", short, short + "/foldhost-7", nil},
		{"relative", "", "run", "tmp", last, nil},
		{"too long both", "", long, long, last, nil},
		{"not there", "", in("gone"), in("gone"), last, nil},
		{"no directories", "", in("file"), in("file"), last, nil},
		{"not ours to make", "", taken, taken, last, nil},
		{"the second of two", "", taken, short, short + "/foldhost-7", nil},
		{"no place for directories", "", "/proc", "/proc", last, nil},
		{"asked for and too long", long, short, short, "", []string{long}},
		{"asked for and taken", in("t/foldhost"), short, short, "", []string{in("t/foldhost")}},
		{"asked for and not to be made", in("file/below"), short, short, "", []string{in("file/below")}},
	} {
		env := map[string]string{"XDG_RUNTIME_DIR": tt.runtime, "TMPDIR": tt.tmp}
		s, err := findSockets(tt.asked, func(name string) string { return env[name] }, 7)
		if tt.want != "" {
			if err != nil || s.base != tt.want {
				t.Errorf("%s: %+v, %v; want %q", tt.name, s, err, tt.want)
			}
			if tt.asked == "" && isDir(tt.want) {
				t.Errorf("%s: %s is left behind", tt.name, tt.want)
			}
			continue
		}
		var e *SocketDirError
		if !errors.As(err, &e) || e.Remedy == "" {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		for _, dir := range tt.tried {
			if !strings.Contains(err.Error(), dir) {
				t.Errorf("%s: %q does not name %s", tt.name, err, dir)
			}
		}
	}
}

func TestASocketDirectoryErrorNamesAllThatWasTried(t *testing.T) {
	e := &SocketDirError{Dir: "/c", Reason: "takes no sockets", Remedy: "set TMPDIR", Err: &fs.PathError{Op: "mkdir", Path: "/c", Err: syscall.ENOSPC},
		Before: []*SocketDirError{{Dir: "/a", Reason: "is too long"}, {Dir: "/b", Reason: "cannot be made", Err: &fs.PathError{Op: "mkdir", Path: "/b", Err: syscall.EROFS}}}}
	for _, want := range []string{"/a", "/b", syscall.EROFS.Error(), "/c", syscall.ENOSPC.Error(), "set TMPDIR"} {
		if !strings.Contains(e.Error(), want) {
			t.Errorf("%q lacks %q", e.Error(), want)
		}
	}
	if !errors.Is(e, syscall.ENOSPC) {
		t.Errorf("%v is not %v", e, syscall.ENOSPC)
	}
}
