package jsonl_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
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

func TestDirectoryIsNoTarget(t *testing.T) {
	for _, path := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing", "log.jsonl")} {
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
			closed := w.Close()
			if closed == nil {
				t.Errorf("%+v, after %d bytes: Close is content", o, after)
			}
			if first != nil && !errors.Is(closed, first) {
				t.Errorf("%+v, after %d bytes: Close says %v, Write said %v", o, after, closed, first)
			}
			if err := w.Close(); err == nil {
				t.Errorf("%+v, after %d bytes: the second Close is content", o, after)
			}
		}
	}
	if _, err := jsonl.NewWriter(io.Discard, event.Header{ID: "s"}, jsonl.WriterOptions{Compression: "gzip"}); err == nil {
		t.Error("gzip was taken")
	}
}
