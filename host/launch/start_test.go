//go:build unix

package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAStartThatFailsSaysWhatIsKnown(t *testing.T) {
	// A plugin that never comes is given up after this. One that would come has to have come by then, or the test says so.
	const short = 3 * time.Second
	for _, tt := range []struct {
		mode   string
		rule   string // of the HandshakeError; empty: there is none
		is     error
		exit   *Exit  // nil: the host ended it
		stderr string // in the last words
		stdout string // came instead of a handshake
		hint   bool
	}{
		{mode: "print-first", rule: "form", stdout: "hello from init", hint: true},
		{mode: "binary", rule: "form", stdout: "�", hint: true},
		{mode: "flood", rule: "form", stdout: "�", hint: true},
		{mode: "no-line", rule: "form", stdout: "a line without an end", exit: &Exit{Code: 4}},
		{mode: "exit-3", rule: "missing", exit: &Exit{Code: 3}, stderr: "cannot open config"},
		{mode: "exit-0", rule: "missing", exit: &Exit{Code: 0}, hint: true},
		{mode: "panic-in-init", rule: "missing", exit: &Exit{Code: 2}, stderr: "the plugin panics in init"},
		{mode: "wrong-cookie", rule: "missing", exit: &Exit{Code: 1}, stderr: "plugin"},
		{mode: "close-stdout", rule: "missing", stderr: "closing stdout"},
		{mode: "kill-9", rule: "missing", exit: &Exit{Code: -1, Signal: "SIGKILL"}, hint: true},
		{mode: "term", rule: "missing", exit: &Exit{Code: -1, Signal: "SIGTERM"}},
		{mode: "hang", is: context.DeadlineExceeded, hint: true},
		{mode: "say 2|1|unix|SOCKET|grpc", rule: "core-version", stdout: "2|1", hint: true},
		{mode: "say 1|7|unix|SOCKET|grpc", rule: "version", stdout: "1|7", hint: true},
		{mode: "say 1|0|unix|SOCKET|grpc", rule: "version", stdout: "1|0", hint: true},
		{mode: "say 1|one|unix|SOCKET|grpc", rule: "form", stdout: "1|one"},
		{mode: "say 1|1|unix|/run/other.sock|grpc", rule: "address", stdout: "other.sock", hint: true},
		{mode: "say 1|1|tcp|127.0.0.1:1|grpc", rule: "network", stdout: "tcp", hint: true},
		{mode: "say 1|1|carrier-pigeon|x|grpc", rule: "network", stdout: "pigeon", hint: true},
		{mode: "say 1|1|unix|SOCKET|netrpc", rule: "protocol", stdout: "netrpc", hint: true},
		{mode: "say 1|1|unix|SOCKET", rule: "protocol", stdout: "1|1", hint: true},
		{mode: "say 1|1|unix|SOCKET|grpc", is: syscall.ENOENT},
		{mode: "accept-and-close", is: errNoGRPC},
		{mode: "accept-and-talk", is: errNoGRPC},
		{mode: "accept-and-exit", exit: &Exit{Code: 6}, stderr: "last words"},
		{mode: "accept-and-hang", is: context.DeadlineExceeded},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			s := spec(tt.mode)
			s.Timeouts.Start = patient
			if tt.is == context.DeadlineExceeded {
				s.Timeouts.Start = short
			}
			_, err := r.Start(context.Background(), s)
			var e *StartError
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want a *StartError", err)
			}
			if e.Plugin != "bad" || e.File != bad || e.Phase != PhaseHandshake {
				t.Errorf("plugin %q, file %q, phase %q", e.Plugin, e.File, e.Phase)
			}
			var hs *HandshakeError
			errors.As(err, &hs)
			if rule := ruleOf(hs); rule != tt.rule {
				t.Errorf("rule %q, want %q", rule, tt.rule)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%v is not %v", err, tt.is)
			}
			switch {
			case (e.Exit == nil) != (tt.exit == nil):
				t.Errorf("exit %+v, want %+v", e.Exit, tt.exit)
			case e.Exit != nil && *e.Exit != *tt.exit:
				t.Errorf("exit %+v, want %+v", *e.Exit, *tt.exit)
			}
			if !strings.Contains(e.Stderr, tt.stderr) {
				t.Errorf("stderr %q lacks %q", e.Stderr, tt.stderr)
			}
			if !strings.Contains(e.Stdout, tt.stdout) || tt.stdout == "" && e.Stdout != "" {
				t.Errorf("stdout %q, want %q in it", e.Stdout, tt.stdout)
			}
			if (e.Hint != "") != tt.hint {
				t.Errorf("hint %q", e.Hint)
			}
			t.Log(err)
		})
	}
}

func ruleOf(hs *HandshakeError) string {
	if hs == nil {
		return ""
	}
	return hs.Rule
}

func TestAFileThatCannotRunIsNamedAndNotRun(t *testing.T) {
	script := "#!/bin/sh\nexit 7\n"
	foreign := append([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"), make([]byte, 100)...)
	if platform() == "linux/arm64" {
		foreign[18] = 62
	}
	for _, tt := range []struct {
		name  string
		make  func(t *testing.T, path string)
		rule  string // of the FileError
		phase Phase
	}{
		{"missing", func(*testing.T, string) {}, FileMissing, PhaseFile},
		{"a dangling link", func(t *testing.T, p string) { must(t, os.Symlink(p+".gone", p)) }, FileDanglingLink, PhaseFile},
		{"a directory", func(t *testing.T, p string) { must(t, os.Mkdir(p, 0o755)) }, FileDirectory, PhaseFile},
		{"a pipe", func(t *testing.T, p string) { must(t, syscall.Mkfifo(p, 0o755)) }, FileIrregular, PhaseFile},
		{"empty", func(t *testing.T, p string) { write(t, p, "", 0o755) }, FileEmpty, PhaseFile},
		{"not executable", func(t *testing.T, p string) { write(t, p, script, 0o644) }, FileNotExecutable, PhaseFile},
		{"unreadable", func(t *testing.T, p string) {
			if os.Geteuid() == 0 {
				t.Skip("root reads everything")
			}
			write(t, p, script, 0o311)
		}, FileUnreadable, PhaseFile},
		{"writable for everybody", func(t *testing.T, p string) { write(t, p, script, 0o757) }, FileWorldWritable, PhaseFile},
		{"in a directory writable for everybody", func(t *testing.T, p string) {
			write(t, p, script, 0o755)
			must(t, os.Chmod(filepath.Dir(p), 0o777))
		}, FileWorldWritable, PhaseFile},
		{"of another user", func(t *testing.T, p string) {
			if os.Geteuid() != 0 {
				t.Skip("only root gives files away")
			}
			write(t, p, script, 0o755)
			must(t, os.Chown(p, 12345, -1))
		}, FileForeignOwner, PhaseFile},
		{"for another architecture", func(t *testing.T, p string) { write(t, p, string(foreign), 0o755) }, "", PhaseExec},
		{"a text", func(t *testing.T, p string) { write(t, p, "hello", 0o755) }, "", PhaseExec},
		{"garbage", func(t *testing.T, p string) { write(t, p, "\x00\x01\x02", 0o755) }, "", PhaseExec},
		{"a circle of links", func(t *testing.T, p string) { must(t, os.Symlink(p+".b", p)); must(t, os.Symlink(p, p+".b")) }, FileLinkLoop, PhaseFile},
		{"a script of DOS", func(t *testing.T, p string) { write(t, p, "#!/bin/sh\r\nexit 1\r\n", 0o755) }, "", PhaseExec},
		{"a script that names nothing", func(t *testing.T, p string) { write(t, p, "#!\n", 0o755) }, "", PhaseExec},
		{"a script whose interpreter is no program", func(t *testing.T, p string) { write(t, p, "#!/dev/null\n", 0o755) }, "", PhaseExec},
		{"the beginning of a program", func(t *testing.T, p string) { cutFrom(t, bad, p, 100) }, "", PhaseExec},
		{"half a program", func(t *testing.T, p string) { cutFrom(t, bad, p, 1<<20) }, "", PhaseHandshake},
		{"a script without its interpreter", func(t *testing.T, p string) { write(t, p, "#!/no/such/shell\n", 0o755) }, "", PhaseExec},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.Chmod(dir, 0o755))
			path := filepath.Join(dir, "plugin")
			tt.make(t, path)
			_, err := newRig(t).Start(t.Context(), Spec{Plugin: "p", Path: path})
			var e *StartError
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want a *StartError", err)
			}
			var file *FileError
			if errors.As(err, &file) != (tt.rule != "") || file != nil && file.Rule != tt.rule {
				t.Errorf("got %v, want the rule %q", err, tt.rule)
			}
			if e.Phase != tt.phase || e.Exit != nil && tt.phase != PhaseHandshake {
				t.Errorf("phase %q, exit %v", e.Phase, e.Exit)
			}
			if e.Hint == "" && tt.rule != FileMissing {
				t.Errorf("no hint: %v", err)
			}
			t.Log(err)
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path, content string, mode os.FileMode) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o600))
	must(t, os.Chmod(path, mode))
}

// cutFrom writes the first bytes of a program, as a copy that broke off.
func cutFrom(t testing.TB, from, path string, n int) {
	t.Helper()
	content, err := os.ReadFile(from)
	must(t, err)
	write(t, path, string(content[:n]), 0o755)
}

// copyTo puts a program at a path, by renaming, as an upgrade does.
func copyTo(t testing.TB, from, path string) {
	t.Helper()
	content, err := os.ReadFile(from)
	must(t, err)
	write(t, path+".new", string(content), 0o755)
	must(t, os.Rename(path+".new", path))
}

func TestALinkIsFollowedAndAGroupThatMayWriteIsAWarning(t *testing.T) {
	dir := t.TempDir()
	copyTo(t, bad, filepath.Join(dir, "real"))
	must(t, os.Chmod(filepath.Join(dir, "real"), 0o775))
	must(t, os.Chmod(dir, 0o755))
	must(t, os.Symlink("real", filepath.Join(dir, "link")))
	r := newRig(t)
	p := r.start(t, Spec{Plugin: "p", Path: filepath.Join(dir, "link"), Args: []string{"one", "two"}})
	r.log.findLine(t, "should be guarded better")
	if got, want := call(t, p, "args", nil), strings.Join([]string{filepath.Join(dir, "link"), "one", "two"}, "\n"); got != want {
		t.Errorf("arguments %q, want %q", got, want)
	}
}

func TestTheEnvironmentIsWhatIsAllowedAndThenThePluginsOwn(t *testing.T) {
	t.Setenv("FOLDHOST_TEST_SECRET", "secret")
	t.Setenv("TZ", "Mars/Olympus")
	t.Setenv("LC_NUMERIC", "de_DE")
	r := newRig(t)
	s := spec("")
	s.Env = append(s.Env, "TZ=UTC", "OWN=1", "PLUGIN_UNIX_SOCKET_DIR=/elsewhere")
	env := strings.Split(call(t, r.start(t, s), "env", nil), "\n")
	count := map[string]int{}
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		count[name]++
		if strings.Contains(kv, "secret") {
			t.Errorf("the plugin sees %q", kv)
		}
	}
	joined := "\n" + strings.Join(env, "\n") + "\n"
	for _, want := range []string{"TZ=UTC", "OWN=1", "LC_NUMERIC=de_DE", "PATH=" + os.Getenv("PATH"), "FOLDHOST_LIFELINE=stdin"} {
		if !strings.Contains(joined, "\n"+want+"\n") {
			t.Errorf("the plugin does not see %q", want)
		}
	}
	for name, n := range count {
		if n > 1 {
			t.Errorf("%s comes %d times", name, n)
		}
	}
}

func TestATemporaryDirectoryWithALongNameIsNoHindrance(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 150))
	must(t, os.Mkdir(long, 0o755))
	t.Setenv("TMPDIR", long)
	t.Setenv("XDG_RUNTIME_DIR", "")
	l, err := New(Options{})
	must(t, err)
	defer l.Close()
	p, err := l.Start(t.Context(), spec(""))
	must(t, err)
	healthy(t, p)
}

func TestASocketDirectoryThatIsTooLongOrSomebodyElsesIsRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "file"), "x", 0o600)
	for name, dir := range map[string]string{
		"too long":       "/tmp/" + strings.Repeat("x", 80),
		"no directory":   filepath.Join(dir, "file"),
		"cannot be made": filepath.Join(dir, "file", "below"),
	} {
		var e *SocketDirError
		if _, err := New(Options{SocketDir: dir}); !errors.As(err, &e) {
			t.Errorf("%s: got %v, want a *SocketDirError", name, err)
		}
	}
	if os.Geteuid() == 0 {
		other, err := os.MkdirTemp("/tmp", "fh")
		must(t, err)
		defer os.RemoveAll(other)
		must(t, os.Chown(other, 12345, -1))
		var e *SocketDirError
		if _, err := New(Options{SocketDir: other}); !errors.As(err, &e) {
			t.Errorf("another user's: got %v, want a *SocketDirError", err)
		}
	}
}

func TestWhatDeadHostsLeftIsSweptAndWhatLivingOnesUseIsNot(t *testing.T) {
	r := newRig(t)
	living, err := r.sockets.newDir()
	must(t, err)
	dead := filepath.Join(r.dir, dirPrefix+"00000000")
	must(t, os.Mkdir(dead, 0o700))
	write(t, filepath.Join(dead, "plugin123"), "", 0o600)
	other := filepath.Join(r.dir, "somebody-elses")
	must(t, os.Mkdir(other, 0o700))

	again, err := New(Options{SocketDir: r.dir})
	must(t, err)
	defer again.Close()
	if isDir(dead) || !isDir(living.path) || !isDir(other) {
		t.Errorf("left: %v; want %s and %s", r.files(t), living.path, other)
	}
	living.remove()
	must(t, os.Remove(other))
}

func TestASocketsNameIsGoneOnceTheConnectionStands(t *testing.T) {
	r := newRig(t)
	p := r.start(t, spec(""))
	if left := r.files(t); len(left) > 0 {
		t.Errorf("a running plugin has files: %v", left)
	}
	healthy(t, p)
}

func TestMutualTLSWorksWhenAskedFor(t *testing.T) {
	s := spec("")
	s.MTLS = true
	healthy(t, newRig(t).start(t, s))

	s.Env = []string{"BADPLUGIN=bare"} // speaks no TLS
	_, err := newRig(t).Start(t.Context(), s)
	var hs *HandshakeError
	if !errors.As(err, &hs) || hs.Rule != "certificate" {
		t.Errorf("got %v, want the rule certificate", err)
	}
}

func TestAPluginWithoutGoPluginsServicesIsOne(t *testing.T) {
	r := newRig(t)
	p := r.start(t, spec("bare"))
	healthy(t, p)
	if exit := p.Stop(t.Context()); exit.Code != 0 || !exit.Expected {
		t.Errorf("exit %+v", exit)
	}
}

func TestAStartIsGivenUpWithItsContextAndWithTheLauncher(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := newRig(t)
	started := make(chan error, 2)
	go func() { _, err := r.Start(ctx, spec("hang")); started <- err }()
	cancel()
	if err := <-started; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	go func() { _, err := r.Start(context.Background(), spec("hang")); started <- err }()
	r.Close()
	if err := <-started; err == nil {
		t.Error("a launcher that is closed started a process")
	}
	if _, err := r.Start(context.Background(), spec("")); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}
