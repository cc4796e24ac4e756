package jsonl_test

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/jsonl"
)

func TestOpenNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	good, empty, bad := filepath.Join(dir, "good"), filepath.Join(dir, "empty"), filepath.Join(dir, "bad")
	for path, text := range map[string]string{good: header + note(0), empty: "", bad: header + "#\n" + turnEnd(0)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{filepath.Join(dir, "missing"), dir} {
		_, err := jsonl.Open(path, jsonl.Options{})
		if failed, ok := errors.AsType[*jsonl.ReadError](err); !ok || failed.Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := jsonl.Open(filepath.Join(dir, "missing"), jsonl.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	_, err := jsonl.Open(empty, jsonl.Options{})
	if at, ok := errors.AsType[*jsonl.LineError](err); !ok || at.Path != empty || at.Line != 1 {
		t.Errorf("an empty file: %v", err)
	}

	r, err := jsonl.Open(bad, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, err = range r.Events() {
	}
	if at, ok := errors.AsType[*jsonl.LineError](err); !ok || at.Path != bad || at.Line != 2 {
		t.Errorf("a bad line: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}

	r, err = jsonl.Open(good, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range r.Events() {
		if err != nil {
			t.Error(err)
		}
	}
	if done, total := r.Progress(); done != total || total != int64(len(header+note(0))) {
		t.Errorf("progress %d of %d", done, total)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestErrorsNameFileAndLine(t *testing.T) {
	cause := errors.New("the cause")
	for err, want := range map[error][]string{
		&jsonl.LineError{Path: "log.jsonl", Line: 7, Err: cause}: {"log.jsonl", "7", "the cause"},
		&jsonl.LineError{Line: 7, Err: cause}:                    {"line 7", "the cause"},
		&jsonl.ReadError{Path: "log.jsonl", Err: cause}:          {"log.jsonl", "the cause"},
		&jsonl.ReadError{Err: cause}:                             {"the log", "the cause"},
		&jsonl.LineTooLongError{Size: 17, Limit: 16}:             {"17", "16"},
		&jsonl.GapError{Seq: 9, Expected: 5}:                     {"9", "5"},
	} {
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%T says %q, which does not name %q", err, err, part)
			}
		}
	}
}

func TestNoFileStaysOpen(t *testing.T) {
	if _, err := os.ReadDir("/proc/self/fd"); err != nil {
		t.Skip("skipped: no /proc/self/fd here")
	}
	path := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	opened := func(path string) bool {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(fds, func(fd fs.DirEntry) bool {
			target, _ := os.Readlink("/proc/self/fd/" + fd.Name())
			return target == path
		})
	}
	good := path("good", header)
	r, err := jsonl.Open(good, jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !opened(good) {
		t.Error("the file that is read is not open: this test cannot tell")
	}
	if err := r.Close(); err != nil || opened(good) {
		t.Errorf("open after Close: %v", err)
	}
	for _, bad := range []string{path("bad", "#\n"), path("cut.zst", "\x28\xb5\x2f\xfd\x24\x10"), t.TempDir()} {
		if _, err := jsonl.Open(bad, jsonl.Options{}); err == nil || opened(bad) {
			t.Errorf("%s: %v, and it is still open", bad, err)
		}
	}
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestFileIsThereWholeOrNotAtAll(t *testing.T) {
	broken := errors.New("the source broke")
	text := func(s string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			if _, err := io.WriteString(w, s); err != nil {
				return err
			}
			return err
		}
	}
	for name, c := range map[string]struct {
		before  string // empty: no file
		replace bool
		fail    error
		want    error
		after   string
	}{
		"a new file":                      {"", false, nil, nil, "new"},
		"a new file that may replace":     {"", true, nil, nil, "new"},
		"a failure":                       {"", false, broken, broken, ""},
		"a file that is kept":             {"old", false, nil, fs.ErrExist, "old"},
		"a file that is replaced":         {"old", true, nil, nil, "new"},
		"a failure over a file":           {"old", true, broken, broken, "old"},
		"a failure over one that is kept": {"old", false, broken, fs.ErrExist, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "log.jsonl")
			if c.before != "" {
				if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write := text("new", c.fail)
			if err := jsonl.WriteFile(path, c.replace, write); !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			got, err := os.ReadFile(path)
			if c.after == "" {
				if !errors.Is(err, fs.ErrNotExist) || len(files(t, dir)) != 0 {
					t.Fatalf("left behind: %q", files(t, dir))
				}
				return
			}
			if err != nil || string(got) != c.after || len(files(t, dir)) != 1 {
				t.Fatalf("%q (%v), and %q", got, err, files(t, dir))
			}
		})
	}
}

// Nobody's file is replaced, when it came after the look whether there is one.
func TestFileThatComesMeanwhileIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	err := jsonl.WriteFile(path, false, func(io.Writer) error { return os.WriteFile(path, []byte("theirs"), 0o600) })
	if !errors.Is(err, fs.ErrExist) {
		t.Fatalf("error %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "theirs" {
		t.Fatalf("%q, %v", got, err)
	}
}

// A name as long as names can be leaves no room for a longer one beside it.
func TestLongNamesAreWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), strings.Repeat("n", 249)+".jsonl")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Skip("no such long names here")
	}
	if err := jsonl.WriteFile(path, true, func(io.Writer) error { return nil }); err != nil {
		t.Error(err)
	}
}

// A file that is replaced keeps its mode, also while the new one is written; a new one gets what the umask leaves.
func TestModeOfAFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are not kept on Windows")
	}
	dir := t.TempDir()
	mode := func(path string) fs.FileMode {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	fresh := mode(plain)
	if err := os.Remove(plain); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "log.jsonl")
	for _, want := range []fs.FileMode{fresh, 0o600, 0o640, 0o666, 0o604} {
		if want != fresh {
			if err := os.Chmod(path, want); err != nil {
				t.Fatal(err)
			}
		}
		err := jsonl.WriteFile(path, want != fresh, func(io.Writer) error {
			for _, name := range files(t, dir) {
				if got := mode(filepath.Join(dir, name)); got != want {
					t.Errorf("%s is %v while it is written, want %v", name, got, want)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := mode(path); got != want {
			t.Errorf("mode %v, want %v", got, want)
		}
	}
}

// A link is replaced, one to nothing too, and only when that was asked for; what it leads to stays.
func TestLinksAreReplaced(t *testing.T) {
	for _, dangling := range []bool{false, true} {
		dir := t.TempDir()
		to, path := filepath.Join(dir, "to"), filepath.Join(dir, "log.jsonl")
		if !dangling {
			if err := os.WriteFile(to, []byte("theirs"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(to, path); err != nil {
			t.Skip("no symbolic links here")
		}
		write := func(w io.Writer) error { _, err := io.WriteString(w, "ours"); return err }
		if err := jsonl.WriteFile(path, false, write); !errors.Is(err, fs.ErrExist) {
			t.Errorf("without replace: %v", err)
		}
		if err := jsonl.WriteFile(path, true, write); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "ours" {
			t.Errorf("%q, %v", got, err)
		}
		if got, err := os.ReadFile(to); dangling != errors.Is(err, fs.ErrNotExist) || !dangling && string(got) != "theirs" {
			t.Errorf("what the link led to is %q, %v", got, err)
		}
	}
}

func TestWhatIsNoFileIsNoTarget(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s") // for what is neither a file nor a directory; a device that a fault replaces would be missed
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing", "log.jsonl"), socket} {
		if err := jsonl.WriteFile(path, true, func(io.Writer) error { return nil }); err == nil {
			t.Errorf("%s was written", path)
		}
	}
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		return 0, errors.New("no room")
	}
	return len(p), nil
}

func TestTheWriterCountsItsLines(t *testing.T) {
	var events []event.Event
	for seq, kind := range []byte(".ttt.tt.cc") {
		events = append(events, chunk(kind, int64(seq), 1))
	}
	for verbatim, want := range map[bool]int64{true: 11, false: 9} {
		var out strings.Builder
		w, err := jsonl.NewWriter(&out, event.Header{ID: "s"}, jsonl.WriterOptions{Verbatim: verbatim})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if err := w.Write(e); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if w.Write(events[0]) == nil {
			t.Error("written behind the end")
		}
		if err := w.Close(); err != nil {
			t.Errorf("the second Close: %v", err)
		}
		if n := int64(strings.Count(out.String(), "\n")); w.Lines() != n || n != want {
			t.Errorf("verbatim %v: %d lines counted, %d written, want %d", verbatim, w.Lines(), n, want)
		}
	}
}

func TestWriterTellsOfWhatItCouldNotWrite(t *testing.T) {
	for _, o := range []jsonl.WriterOptions{{}, {Verbatim: true}, {Compression: jsonl.Zstd}} {
		for _, after := range []int{0, 100, 100_000} {
			w, err := jsonl.NewWriter(&failing{after}, event.Header{ID: "s"}, o)
			if err != nil {
				t.Fatal(err)
			}
			var first error
			for seq := range int64(20_000) {
				// Hashed, so that compression finds little.
				data := strconv.AppendUint(nil, uint64(seq)*0x9e3779b97f4a7c15, 10)
				if first = w.Write(event.Event{Type: "n", Seq: seq, Data: data}); first != nil {
					break
				}
			}
			if first == nil {
				t.Errorf("%+v, after %d bytes: every Write is content", o, after)
			}
			for range 2 {
				if err := w.Write(event.Event{Type: "n", Seq: 20_000, Data: []byte(`1`)}); err != first {
					t.Errorf("%+v, after %d bytes: Write says %v, and said %v", o, after, err, first)
				}
				if err := w.Close(); err != first {
					t.Errorf("%+v, after %d bytes: Close says %v, Write said %v", o, after, err, first)
				}
			}
		}
	}
	// What fits into the buffer is only found out at the end.
	for _, o := range []jsonl.WriterOptions{{}, {Compression: jsonl.Zstd}} {
		w, err := jsonl.NewWriter(&failing{0}, event.Header{ID: "s"}, o)
		if err == nil {
			err = w.Write(event.Event{Type: "n", Data: []byte(`1`)})
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if w.Close() == nil {
				t.Errorf("%+v: Close is content", o)
			}
		}
	}
	if _, err := jsonl.NewWriter(io.Discard, event.Header{ID: "s"}, jsonl.WriterOptions{Compression: "gzip"}); err == nil {
		t.Error("gzip was taken")
	}
}
