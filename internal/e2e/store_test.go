package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/client"
)

// The whole way of a log through stores: taken in, looked at, written out again with the same bytes, copied, restored as another store, deleted.
func TestStoreCommands(t *testing.T) {
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			flags := place(t)
			do := func(args ...string) run { t.Helper(); return at(t, flags, "", args...).want(t, 0) }
			log := sample("dry-run.jsonl")
			took := into[struct {
				Imported bool
				Session  client.Session
				Warnings []string
			}](t, do("import", log, "--json"))
			if !took.Imported || took.Session.Seq != 75 || took.Warnings == nil {
				t.Errorf("imported %+v", took)
			}
			id := took.Session.Header.ID
			if r := do("import", log, "--id", "again"); !strings.Contains(r.stdout, "75 events") || !strings.Contains(r.stdout, "again") {
				t.Errorf("people hear %q", r.stdout)
			}
			at(t, flags, read(t, log), "import", "-", "--id", "piped").want(t, 0)

			// The same bytes as an export of the file, plain and compressed, to a file and to standard output.
			dir := t.TempDir()
			foldhost(t, "", "export", log, filepath.Join(dir, "want.jsonl")).want(t, 0)
			want := read(t, filepath.Join(dir, "want.jsonl"))
			same(t, "the export", do("export", "--session", id).stdout, want)
			same(t, "the plain export", do("export", "--session", id, "--no-pack", "-").stdout, read(t, log))
			compressed := filepath.Join(dir, "out.jsonl.zst")
			do("export", "--session", id, compressed)
			at(t, flags, "", "export", "--session", id, compressed).want(t, 1)
			do("import", compressed, "--id", "unpacked")
			same(t, "an import of the export", do("export", "--session", "unpacked", "--no-pack").stdout, strings.Replace(read(t, log), id, "unpacked", 1))
			done := into[struct {
				Converted     bool
				Events, Lines int64
			}](t, do("export", "--session", id, compressed, "--force", "--json"))
			if !done.Converted || done.Events != 75 {
				t.Errorf("%+v", done)
			}

			st := into[client.StoreStats](t, do("store", "stats", "--json"))
			if st.Logs != 4 || st.Events != 300 || st.StoreID == "" || st.Bytes == 0 || st.Durability != "full" {
				t.Errorf("%+v", st)
			}
			if r := do("store", "stats"); !strings.Contains(r.stdout, "4 sessions") || !strings.Contains(r.stdout, st.StoreID) {
				t.Errorf("people see %s", r.stdout)
			}
			if c := into[client.CheckReport](t, do("store", "check", "--pages", "--json")); c.Logs != 4 || c.Events != 300 || len(c.Problems) != 0 {
				t.Errorf("%+v", c)
			}
			if r := do("store", "check"); !strings.Contains(r.stdout, "nothing is damaged") {
				t.Errorf("people see %s", r.stdout)
			}

			backup := filepath.Join(dir, "backup.db")
			if b := into[client.Backup](t, do("store", "backup", backup, "--json")); b.Path != backup || b.Bytes == 0 {
				t.Errorf("%+v", b)
			}
			if f := into[failed](t, at(t, flags, "", "store", "backup", backup, "--json").want(t, 1)); f.Error.Code != "target-invalid" {
				t.Errorf("over a file that exists: %+v", f)
			}
			restored := filepath.Join(dir, "restored")
			foldhost(t, "", "store", "restore", backup, "--data", restored).want(t, 0)
			again := into[client.StoreStats](t, foldhost(t, "", "store", "stats", "--data", restored, "--json").want(t, 0))
			if again.StoreID == st.StoreID || again.Events != 300 {
				t.Errorf("restored %+v", again)
			}
			same(t, "the export of what was restored", foldhost(t, "", "export", "--session", id, "--data", restored).want(t, 0).stdout, want)
			if f := into[failed](t, foldhost(t, "", "store", "restore", backup, "--data", restored, "--json").want(t, 1)); f.Error.Code != "target-invalid" {
				t.Errorf("over a store that exists: %+v", f)
			}
			do("session", "delete", id)
			at(t, flags, "", "export", "--session", id).want(t, 1)
		})
	}
}

// What an import refuses is heard with the codes of replay, and leaves no session behind.
func TestImportsThatAreRefused(t *testing.T) {
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			flags := place(t)
			at(t, flags, "", "session", "create", "s").want(t, 0)
			for _, c := range []struct {
				text, code string
				index      *int64
				args       []string
			}{
				{"", "header-invalid", nil, nil},
				{"Dear diary,\n", "header-invalid", nil, nil},
				{header + note(0, "a"), "session-conflict", nil, nil},
				{header + note(0, "a"), "id-invalid", nil, []string{"--id", "a/b"}},
				{header + note(0, "a") + `{"type":"user/message","seq":1,"time":1,"data":null,"surfaceOp":"append"}` + "\n", "message-invalid", new(int64(1)), []string{"--id", "x"}},
				{header + note(0, "a") + note(2, "b"), "seq-not-contiguous", new(int64(1)), []string{"--id", "x", "--strict"}},
				{"\x28\xb5\x2f\xfd\x24\x10", "", nil, nil},
			} {
				var got struct {
					Imported bool
					Error    struct {
						Code  string
						Index *int64
					}
				}
				r := at(t, flags, "", append([]string{"import", write(t, "log.jsonl", c.text), "--json"}, c.args...)...).want(t, 1)
				if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || got.Imported || c.code != "" && got.Error.Code != c.code || index(got.Error.Index) != index(c.index) {
					t.Errorf("%.30q: %s", c.text, r.stdout)
				}
			}
			r := at(t, flags, "", "import", filepath.Join(t.TempDir(), "missing"), "--json").want(t, 1)
			if !strings.Contains(r.stdout, `"file-unreadable"`) {
				t.Errorf("a file that is not there: %s", r.stdout)
			}
			// A torn tail is dropped with a warning, as everywhere.
			r = at(t, flags, "", "import", write(t, "log.jsonl", header+note(0, "a")+note(2, "b")), "--id", "torn").want(t, 0)
			if !strings.Contains(r.stderr, "warning") || !strings.Contains(r.stdout, "1 event as") {
				t.Errorf("a torn tail: %s %s", r.stdout, r.stderr)
			}
			if r := at(t, flags, "", "session", "list", "--json").want(t, 0); strings.Count(r.stdout, "\n") != 2 {
				t.Errorf("there are %s", r.stdout)
			}
		})
	}
}

// Flags of one form of import and export are refused in the other, and nothing is made.
func TestTheFormsOfImportAndExport(t *testing.T) {
	for _, args := range []string{
		"import", "import a b c", "import a b --id c", "import a b --data d", "import a b --url http://127.0.0.1:1", "import a --pack", "import a --force", "import a --compress zstd",
		"export", "export a", "export a b --data d", "export --session", "export --session s a b", "export --session s --pack --no-pack", "export a b --token-file t",
	} {
		dir := t.TempDir()
		foldhost(t, dir, strings.Fields(args)...).want(t, 2)
		onlyFiles(t, dir)
	}
	dir := t.TempDir()
	foldhost(t, dir, "import", "missing.jsonl", "--data", "data").want(t, 1)
	foldhost(t, dir, "export", "--session", "s", "out.jsonl", "--data", "data").want(t, 1)
	onlyFiles(t, dir)
}

// Given a store with an event that is damaged, check names it and fails, and so does the export of its session, which leaves no file; salvage writes what is before it, and the rest of the store
// whole, and what it wrote can be imported. The store is as it was.
func TestADamagedStoreIsSalvaged(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	foldhost(t, "", "import", sample("dry-run.jsonl"), "--id", "whole", "--data", data).want(t, 0)
	foldhost(t, "", "session", "create", "cut", "--data", data).want(t, 0)
	marks := []string{`"before"`, `"DAMAGED-HERE"`, `"after"`}
	for _, m := range marks {
		foldhost(t, "", "session", "append", "cut", `{"type":"note","data":`+m+`}`, "--data", data).want(t, 0)
	}
	db := filepath.Join(data, "foldhost.db")
	at := bytes.Index([]byte(read(t, db)), []byte("DAMAGED-HERE"))
	if at < 0 {
		t.Fatal("the event is not where it was looked for")
	}
	patch(t, db, int64(at), []byte("d"))
	report := into[client.CheckReport](t, foldhost(t, "", "store", "check", "--data", data, "--json").want(t, 1))
	if len(report.Problems) != 1 || report.Problems[0].Code != "damaged-event" || report.Problems[0].Session != "cut" || *report.Problems[0].Seq != 1 {
		t.Errorf("%+v", report)
	}
	if r := foldhost(t, "", "store", "check", "--data", data).want(t, 1); !strings.Contains(r.stdout, "cut at seq 1") {
		t.Errorf("people hear %s", r.stdout)
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "cut.jsonl")
	foldhost(t, "", "export", "--session", "cut", out, "--data", data).want(t, 1)
	onlyFiles(t, dir)

	before := contents(t, data)
	saved := filepath.Join(dir, "saved")
	var s struct {
		Whole, Cut, Events int64
		Files              []struct {
			Path, Session string
			Events        int64
		}
		Problems []client.StoreProblem
	}
	r := foldhost(t, "", "store", "salvage", saved, "--data", data, "--json").want(t, 1)
	if err := json.Unmarshal([]byte(r.stdout), &s); err != nil || s.Whole != 1 || s.Cut != 1 || s.Events != 76 || len(s.Files) != 2 || len(s.Problems) == 0 {
		t.Errorf("%+v %v", s, err)
	}
	if contents(t, data) != before {
		t.Error("the store changed")
	}
	onlyFiles(t, saved, "cut.jsonl", "whole.jsonl")
	// Nothing is written over.
	foldhost(t, "", "store", "salvage", saved, "--data", data).want(t, 1)
	fresh := filepath.Join(dir, "fresh")
	for _, name := range []string{"cut.jsonl", "whole.jsonl"} {
		foldhost(t, "", "import", filepath.Join(saved, name), "--data", fresh).want(t, 0)
	}
	same(t, "the log that was whole", foldhost(t, "", "export", "--session", "whole", "--no-pack", "--data", fresh).want(t, 0).stdout, strings.Replace(read(t, sample("dry-run.jsonl")), "dry-run-demo", "whole", 1))
}

// A store that cannot be opened is salvaged with exit code 1, whether something could be saved or not, and people hear what was and what was not.
func TestAStoreThatCannotBeOpenedIsSalvaged(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(db string)
		code  string // of a salvage that saves nothing
		says  []string
	}{
		"all logs whole": {spoil: func(db string) { patch(t, db, 68, []byte{0}) }, says: []string{"1 log whole, 0 logs cut", "idempotency keys", "damaged-pages: every log is whole"}},
		"no beginning":   {spoil: func(db string) { patch(t, db, 0, make([]byte, 100)) }, code: "damaged", says: []string{"nothing was salvaged", "restore a backup"}},
		"cut short":      {spoil: func(db string) { os.Truncate(db, 10) }, code: "damaged", says: []string{"nothing was salvaged", "restore a backup"}},
		"empty":          {spoil: func(db string) { os.Truncate(db, 0) }, code: "damaged", says: []string{"nothing was salvaged", "restore a backup"}},
		"gone":           {spoil: func(db string) { os.Remove(db) }, code: "no-store", says: []string{"nothing was salvaged", "--data"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			data, saved := filepath.Join(dir, "data"), filepath.Join(dir, "saved")
			foldhost(t, "", "import", sample("dry-run.jsonl"), "--id", "a", "--data", data).want(t, 0)
			c.spoil(filepath.Join(data, "foldhost.db"))
			foldhost(t, "", "session", "show", "a", "--data", data).want(t, 1)
			r := foldhost(t, "", "store", "salvage", saved, "--data", data).want(t, 1)
			for _, part := range c.says {
				if !strings.Contains(r.stdout+r.stderr, part) {
					t.Errorf("people do not hear %q: %s%s", part, r.stdout, r.stderr)
				}
			}
			if c.code == "" {
				onlyFiles(t, saved, "a.jsonl")
				return
			}
			if _, err := os.Stat(saved); !errors.Is(err, os.ErrNotExist) {
				t.Error("it made the directory for nothing")
			}
			if f := into[failed](t, foldhost(t, "", "store", "salvage", saved, "--data", data, "--json").want(t, 1)); f.Error.Code != c.code {
				t.Errorf("%+v", f)
			}
		})
	}
}

// restore and salvage need the directory free, and say who has it.
func TestRestoreAndSalvageNeedTheDirectoryFree(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := serve(t, data)
	backup := filepath.Join(t.TempDir(), "backup.db")
	foldhost(t, "", "store", "backup", backup, "--data", data).want(t, 0)
	for _, args := range [][]string{{"restore", backup}, {"salvage", filepath.Join(t.TempDir(), "to")}} {
		args = append(append([]string{"store"}, args...), "--data", data)
		if f := into[failed](t, foldhost(t, "", append(args, "--json")...).want(t, 1)); f.Error.Code != "locked" {
			t.Errorf("%q: %+v", args, f)
		}
		if r := foldhost(t, "", args...).want(t, 1); !strings.Contains(r.stderr, s.url) {
			t.Errorf("%q: %s", args, r.stderr)
		}
	}
	if status, _ := s.do("GET", "/healthz", ""); status != 200 {
		t.Error("the owner was disturbed")
	}
	for _, c := range []struct{ text, code string }{{"", "damaged"}, {strings.Repeat("no database ", 1000), "not-a-store"}} {
		to := filepath.Join(t.TempDir(), "to")
		if f := into[failed](t, foldhost(t, "", "store", "restore", write(t, "backup.db", c.text), "--data", to, "--json").want(t, 1)); f.Error.Code != c.code {
			t.Errorf("%q: %+v", c.text, f)
		}
		if _, err := os.Stat(filepath.Join(to, "foldhost.db")); err == nil {
			t.Errorf("%q: a store was made", c.text)
		}
	}
}
