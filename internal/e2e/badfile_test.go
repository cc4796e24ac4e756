package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const header = `{"type":"session","version":0,"id":"s","createdAt":1}` + "\n"

// note is an event that no unit folds, with a newline.
func note(seq int64, text string) string {
	return fmt.Sprintf(`{"type":"note","seq":%d,"time":%d,"data":{"text":%q}}`+"\n", seq, 1000+seq, text)
}

func TestBadFilesAreRefusedWithPlaceAndCode(t *testing.T) {
	random := make([]byte, 4096)
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(random)
	at := func(i int64) *int64 { return &i }
	for name, c := range map[string]struct {
		text  string
		index *int64
		code  string
	}{
		"empty":                           {"", nil, "header-invalid"},
		"nothing but a newline":           {"\n", nil, "header-invalid"},
		"binary":                          {string(random), nil, "header-invalid"},
		"a text of another kind":          {"Dear diary,\n", nil, "header-invalid"},
		"an event where the header is":    {note(0, "a"), nil, "header-invalid"},
		"a header of a later version":     {strings.Replace(header, `"version":0`, `"version":1`, 1), nil, "header-invalid"},
		"a seq left out":                  {header + note(0, "a") + note(2, "b"), at(1), "seq-not-contiguous"},
		"a line twice":                    {header + note(0, "a") + note(1, "b") + note(1, "b"), at(2), "seq-not-contiguous"},
		"a line that is cut":              {header + note(0, "a") + `{"type":"no` + "\n" + note(1, "b"), at(1), "data-not-lossless"},
		"an empty line in between":        {header + note(0, "a") + "\n" + note(1, "b"), at(1), "data-not-lossless"},
		"two headers":                     {header + header, at(0), "envelope-invalid"},
		"a list":                          {header + "[]\n", at(0), "envelope-invalid"},
		"zstd that ends in the middle":    {"\x28\xb5\x2f\xfd\x24\x10", nil, ""},
		"gzip, which is not a log's form": {"\x1f\x8b\x08\x00\x00\x00\x00\x00", nil, "header-invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, "log.jsonl", c.text)
			o := foldhost(t, "", "replay", "--json", path).want(t, 1).object(t)
			if o.Accepted || o.Error == nil {
				t.Fatal("accepted")
			}
			if c.code != "" {
				same(t, "code", o.Error.Code, c.code)
			}
			if index(o.Error.Index) != index(c.index) {
				t.Errorf("refused at %s, want %s", index(o.Error.Index), index(c.index))
			}
			// A person is told the file, on stderr, and gets no half result.
			r := foldhost(t, "", "replay", path).want(t, 1)
			if !strings.Contains(r.stderr, path) || r.stdout != "" {
				t.Errorf("stdout %q, stderr %q", r.stdout, r.stderr)
			}
			out := filepath.Join(t.TempDir(), "out.jsonl")
			foldhost(t, "", "import", "--strict", path, out).want(t, 1)
			foldhost(t, "", "export", path, out).want(t, 1)
			onlyFiles(t, filepath.Dir(out))
		})
	}
}

func TestWhatIsNoFileIsUnreadable(t *testing.T) {
	dir := t.TempDir()
	locked := write(t, "locked.jsonl", header)
	if err := os.Chmod(locked, 0); err != nil {
		t.Fatal(err)
	}
	paths := []string{filepath.Join(dir, "missing.jsonl"), dir}
	if f, err := os.Open(locked); err != nil { // Root may read everything.
		paths = append(paths, locked)
	} else {
		f.Close()
	}
	for _, path := range paths {
		o := foldhost(t, "", "replay", "--json", path).want(t, 1).object(t)
		if o.Accepted || o.Error == nil || o.Error.Index != nil || o.Error.Code != "file-unreadable" {
			t.Errorf("%s: %+v", path, o.Error)
		}
		out := filepath.Join(t.TempDir(), "out.jsonl")
		foldhost(t, "", "import", path, out).want(t, 1)
		onlyFiles(t, filepath.Dir(out))
	}
}

func TestALastLineWithoutNewlineIsForgivenWithAWarning(t *testing.T) {
	for name, last := range map[string]string{
		"cut short": `{"type":"note","se`,
		"whole":     strings.TrimSuffix(note(1, "b"), "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t, "log.jsonl", header+note(0, "a")+last)
			r := foldhost(t, "", "replay", "--json", path).want(t, 0)
			same(t, "events", r.object(t).Events, 1)
			if !strings.Contains(r.stderr, path) {
				t.Errorf("no warning that names the file: %q", r.stderr)
			}
			for _, args := range [][]string{{"import"}, {"import", "--strict"}, {"export"}} {
				out := filepath.Join(t.TempDir(), "out.jsonl")
				r := foldhost(t, "", append(args, path, out)...).want(t, 0)
				same(t, "the log written", read(t, out), header+note(0, "a"))
				if r.stderr == "" {
					t.Errorf("%v: no warning", args)
				}
			}
		})
	}
}

func TestATornTailIsForgivenByImportAlone(t *testing.T) {
	start := `{"type":"turn/start","seq":0,"time":1,"data":{"turn":1}}` + "\n"
	end := func(seq int) string {
		return fmt.Sprintf(`{"type":"turn/end","seq":%d,"time":1,"data":{"turn":1,"reason":{"kind":"completed"}}}`+"\n", seq)
	}
	for name, c := range map[string]struct {
		text string
		// kept is what import makes of it; empty is refused.
		kept string
	}{
		"garbage, then nothing":         {header + start + "#\n", header + start},
		"garbage, then more":            {header + start + "#\n" + note(1, "b"), header + start},
		"a gap, then more":              {header + start + note(2, "b") + note(3, "c"), header + start},
		"garbage before a turn's end":   {header + start + "#\n" + end(1), ""},
		"a gap before a turn's end":     {header + start + note(2, "b") + end(3), ""},
		"garbage behind the last turn":  {header + start + end(1) + "#\n", header + start + end(1)},
		"a rule broken in a torn log":   {header + start + `{"type":"user/message","seq":1,"time":1,"data":null,"surfaceOp":"append"}` + "\n", ""},
		"a header alone, then garbage":  {header + "#\n", header},
		"garbage with a torn last line": {header + start + "#\n" + `{"ty`, header + start},
	} {
		t.Run(name, func(t *testing.T) {
			path, out := write(t, "log.jsonl", c.text), filepath.Join(t.TempDir(), "out.jsonl")
			foldhost(t, "", "replay", "--json", path).want(t, 1)
			foldhost(t, "", "import", "--strict", path, out).want(t, 1)
			foldhost(t, "", "export", path, out).want(t, 1)
			onlyFiles(t, filepath.Dir(out))
			r := foldhost(t, "", "import", path, out)
			if c.kept == "" {
				r.want(t, 1)
				onlyFiles(t, filepath.Dir(out))
				return
			}
			r.want(t, 0)
			same(t, "the log written", read(t, out), c.kept)
			if r.stderr == "" {
				t.Error("no warning")
			}
		})
	}
}

func TestTextsOfALogCannotSteerATerminal(t *testing.T) {
	esc := "\x1b]0;owned\x07\x1b[2J"
	quoted := `\u001b]0;owned\u0007\u001b[2J\u202e`
	path := write(t, "log.jsonl", header+
		`{"type":"user/message","seq":0,"time":1,"data":{"id":"u","role":"user","content":[{"type":"text","text":"`+quoted+`"}],"source":{"kind":"user"}},"surfaceOp":"append"}`+"\n"+
		`{"type":"session/title","seq":1,"time":1,"data":{"title":"`+quoted+`"}}`+"\n"+
		`{"type":"tool/call","seq":2,"time":1,"data":{"turn":1,"step":1,"callId":"c","name":"`+quoted+`","arguments":"`+quoted+`"}}`+"\n")
	r := foldhost(t, "", "replay", path).want(t, 0)
	for _, bad := range []string{"\x1b", "\x07", "\u202e", esc} {
		if strings.Contains(r.stdout, bad) {
			t.Errorf("%q reached the terminal", bad)
		}
	}
	if !strings.Contains(r.stdout, "owned") {
		t.Error("the text is not shown at all")
	}
}

// onlyFiles fails unless dir holds exactly these files.
func onlyFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s holds %q, want %q", dir, got, names)
	}
}
