package e2e

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what came out as what is wanted")

func TestWrongUsageExitsWith2(t *testing.T) {
	for name, args := range map[string][]string{
		"nothing":                 {},
		"an unknown command":      {"replai"},
		"an unknown flag":         {"replay", "--jason", sample("dry-run.jsonl")},
		"no log":                  {"replay"},
		"a seq that is none":      {"replay", "--at", "x", sample("dry-run.jsonl")},
		"a seq below the empty":   {"replay", "--at", "-2", sample("dry-run.jsonl")},
		"no output":               {"export", sample("dry-run.jsonl")},
		"no log to import":        {"import"},
		"one too many":            {"export", "a", "b", "c"},
		"an unknown compression":  {"export", "--compress", "lzma", sample("dry-run.jsonl"), "out"},
		"pack and no pack":        {"export", "--pack", "--no-pack", sample("dry-run.jsonl"), "out"},
		"standard input twice":    {"replay", "-", "-"},
		"arguments for a version": {"version", "please"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := foldhost(t, dir, args...).want(t, 2)
			if r.stderr == "" {
				t.Error("not a word about it")
			}
			onlyFiles(t, dir)
		})
	}
}

func TestVersionSaysWhatWasBuilt(t *testing.T) {
	if out := foldhost(t, "", "version").want(t, 0).stdout; !strings.HasPrefix(out, "foldhost ") || strings.Count(out, "\n") != 1 {
		t.Errorf("version says %q", out)
	}
	var v struct{ Version, Go, Platform string }
	if err := json.Unmarshal([]byte(foldhost(t, "", "version", "--json").want(t, 0).stdout), &v); err != nil {
		t.Fatal(err)
	}
	if v.Version == "" || v.Go == "" || v.Platform == "" {
		t.Errorf("version says %+v", v)
	}
}

func TestReplayForPeople(t *testing.T) {
	for _, name := range []string{"dry-run", "interrupted"} {
		t.Run(name, func(t *testing.T) {
			// From the root, so that the file is named as in the documents.
			got := foldhost(t, root, "replay", "examples/sessions/"+name+".jsonl").want(t, 0).stdout
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(read(t, golden), got); diff != "" {
				t.Errorf("what a person reads has changed; -update takes it (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReplayOfTheSamplesForPrograms(t *testing.T) {
	o := foldhost(t, "", "replay", "--json", sample("interrupted.jsonl")).want(t, 0).object(t)
	sameJSON(t, "closers", o.Closers, []string{"tool/result", "tool/result", "step/end", "turn/end"})
	if o.File != nil {
		t.Error("one log alone is not named")
	}
	o = foldhost(t, "", "replay", "--json", sample("dry-run.jsonl")).want(t, 0).object(t)
	sameJSON(t, "closers", o.Closers, []string{})
	sameJSON(t, "title", o.Values["title"], "Dry run for ferry sync, with sizes")
}

func TestSeveralLogsComeOneALineInOrder(t *testing.T) {
	broken := write(t, "broken.jsonl", header+note(1, "a"))
	paths := []string{sample("dry-run.jsonl"), broken, sample("interrupted.jsonl"), filepath.Join(t.TempDir(), "missing.jsonl"), sample("dry-run.jsonl")}
	all := foldhost(t, "", append([]string{"replay", "--json"}, paths...)...).want(t, 1).objects(t)
	if len(all) != len(paths) {
		t.Fatalf("%d objects for %d logs", len(all), len(paths))
	}
	for i, o := range all {
		same(t, "file", *o.File, paths[i])
		same(t, "accepted", o.Accepted, i != 1 && i != 3)
	}
	// People get the sound ones on stdout and the others on stderr.
	r := foldhost(t, "", append([]string{"replay"}, paths...)...).want(t, 1)
	same(t, "sound logs printed", strings.Count(r.stdout, "As of seq"), 3)
	for _, i := range []int{1, 3} {
		if !strings.Contains(r.stderr, paths[i]) {
			t.Errorf("stderr does not name %s: %q", paths[i], r.stderr)
		}
	}
}

func TestAUnitThatFailsIsNamedAndTheRestComesAllTheSame(t *testing.T) {
	path := write(t, "log.jsonl", header+
		`{"type":"session/title","seq":0,"time":1,"data":{"title":"sound"}}`+"\n"+
		`{"type":"todo/write","seq":1,"time":1,"data":{"todos":"not a list"}}`+"\n"+
		note(2, "after"))
	r := foldhost(t, "", "replay", "--json", path).want(t, 1)
	o := r.object(t)
	if !o.Accepted || o.Unavailable["todos"].Code != "faulted" || o.Values["todos"] != nil || len(o.Unavailable) != 1 {
		t.Errorf("todos: %+v, %s", o.Unavailable, o.Values["todos"])
	}
	sameJSON(t, "title", o.Values["title"], "sound")
	same(t, "asOfSeq", o.AsOfSeq, 2)
	if out := foldhost(t, "", "replay", path).want(t, 1).stdout; !strings.Contains(out, "todos") || !strings.Contains(out, "faulted") {
		t.Errorf("a person is not told: %s", out)
	}
	// Before the event that it failed on, it is well.
	foldhost(t, "", "replay", "--at", "0", path).want(t, 0)
}

func TestAtReplaysAPrefix(t *testing.T) {
	log := sample("dry-run.jsonl")
	whole := foldhost(t, "", "replay", "--json", log).want(t, 0).object(t)
	o := foldhost(t, "", "replay", "--json", "--at", "-1", log).want(t, 0).object(t)
	same(t, "asOfSeq of the empty log", o.AsOfSeq, -1)
	sameJSON(t, "changes of the empty log", o.Changes, []string{})
	o = foldhost(t, "", "replay", "--json", "--at", "1000", log).want(t, 1).object(t)
	if o.Accepted || o.Error.Code != "not-reached" {
		t.Errorf("beyond the end: %+v", o.Error)
	}
	// What stands behind SEQ is not judged.
	broken := write(t, "broken.jsonl", header+note(0, "a")+note(1, "b")+"#\n")
	same(t, "events before the break", foldhost(t, "", "replay", "--json", "--at", "1", broken).want(t, 0).object(t).Events, 2)
	// The last seq is the whole.
	o = foldhost(t, "", "replay", "--json", "--at", "74", log).want(t, 0).object(t)
	if diff := cmp.Diff(whole, o); diff != "" {
		t.Errorf("at the last seq (-whole +at):\n%s", diff)
	}
}

func TestStandardInputAndOutput(t *testing.T) {
	text := read(t, sample("dry-run.jsonl"))
	same(t, "events", pipe(t, "", text, "replay", "--json", "-").want(t, 0).object(t).Events, 75)
	packed := pipe(t, "", text, "export", "-", "-").want(t, 0).stdout
	if packed == text || !strings.Contains(packed, "text-chunks") {
		t.Error("export to standard output did not pack")
	}
	same(t, "the log", pipe(t, "", packed, "import", "-", "-").want(t, 0).stdout, text)
	// A refused log writes nothing at all.
	same(t, "output of a refused log", pipe(t, "", text+"#\n"+text, "export", "-", "-").want(t, 1).stdout, "")
	// With the log on stdout, the report goes to stderr.
	r := pipe(t, "", text, "export", "--json", "-", "-").want(t, 0)
	same(t, "the log", r.stdout, packed)
	if !json.Valid([]byte(r.stderr)) {
		t.Errorf("the report is %q", r.stderr)
	}
}

func TestFlagsOfImportAndExport(t *testing.T) {
	text := read(t, sample("dry-run.jsonl"))
	for name, c := range map[string]struct {
		args         []string
		out          string
		packed, zstd bool
	}{
		"import":                    {[]string{"import"}, "o.jsonl", false, false},
		"import --pack":             {[]string{"import", "--pack"}, "o.jsonl", true, false},
		"import to zst":             {[]string{"import"}, "o.jsonl.zst", false, true},
		"export":                    {[]string{"export"}, "o.jsonl", true, false},
		"export --no-pack":          {[]string{"export", "--no-pack"}, "o.jsonl", false, false},
		"export to zstd":            {[]string{"export"}, "o.jsonl.zstd", true, true},
		"export --compress zstd":    {[]string{"export", "--compress", "zstd"}, "o.jsonl", true, true},
		"export --compress none":    {[]string{"export", "--compress", "none"}, "o.jsonl.zst", true, false},
		"export --compress --force": {[]string{"export", "--force", "--compress", "zstd", "--no-pack"}, "o", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), c.out)
			foldhost(t, "", append(c.args, sample("dry-run.jsonl"), out)...).want(t, 0)
			onlyFiles(t, filepath.Dir(out), c.out)
			got := read(t, out)
			same(t, "zstd", strings.HasPrefix(got, "\x28\xb5\x2f\xfd"), c.zstd)
			// Made plain again, with the packing that it has.
			plain := filepath.Join(t.TempDir(), "plain.jsonl")
			foldhost(t, "", "import", "--strict", out, plain).want(t, 0)
			same(t, "the log", read(t, plain), text)
			if !c.zstd {
				same(t, "packed", strings.Contains(got, "text-chunks"), c.packed)
			}
		})
	}
}

func TestAnExistingOutputIsKept(t *testing.T) {
	out := write(t, "precious.jsonl", "precious")
	var refusal struct {
		Converted bool
		Error     struct{ Code string }
	}
	r := foldhost(t, "", "export", "--json", sample("dry-run.jsonl"), out).want(t, 1)
	if err := json.Unmarshal([]byte(r.stdout), &refusal); err != nil || refusal.Converted || refusal.Error.Code != "output-exists" {
		t.Errorf("%v %+v", err, refusal)
	}
	same(t, "the file", read(t, out), "precious")
	// A log that is refused does not cost the old file either.
	broken := write(t, "broken.jsonl", header+note(1, "a"))
	foldhost(t, "", "export", "--force", broken, out).want(t, 1)
	same(t, "the file", read(t, out), "precious")
	foldhost(t, "", "export", "--force", "--no-pack", sample("dry-run.jsonl"), out).want(t, 0)
	same(t, "the file", read(t, out), read(t, sample("dry-run.jsonl")))
	// In and out may be one file.
	foldhost(t, "", "export", "--force", out, out).want(t, 0)
	foldhost(t, "", "import", "--force", out, out).want(t, 0)
	same(t, "the file", read(t, out), read(t, sample("dry-run.jsonl")))
	onlyFiles(t, filepath.Dir(out), "precious.jsonl")
	// A directory that is missing is not made.
	r = foldhost(t, "", "export", "--json", sample("dry-run.jsonl"), filepath.Join(t.TempDir(), "no", "out.jsonl")).want(t, 1)
	if err := json.Unmarshal([]byte(r.stdout), &refusal); err != nil || refusal.Error.Code != "output-unwritable" {
		t.Errorf("%v %+v", err, refusal)
	}
}

func TestWhatIsPipedIsPlain(t *testing.T) {
	r := foldhost(t, "", "replay", sample("dry-run.jsonl")).want(t, 0)
	if regexp.MustCompile("[\x1b\r]").MatchString(r.stdout + r.stderr) {
		t.Error("escapes or a progress bar in a pipe")
	}
}
