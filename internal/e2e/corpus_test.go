package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foldhost/foldhost/internal/corpus"
)

// recorded are the keys of which the corpus knows the values. imageLimits comes from configuration and not from the log.
var recorded = []string{"title", "todos", "tokenUsage"}

func TestReplayGivesWhatWasRecorded(t *testing.T) {
	logs := corpus.Logs(t)
	got := replayAll(t, logs)
	for i, l := range logs {
		t.Run(l.Name, func(t *testing.T) {
			o := got[i]
			if *o.File != l.Path {
				t.Fatalf("result %d is of %s", i, *o.File)
			}
			if !o.Accepted {
				t.Fatalf("refused: %+v", *o.Error)
			}
			same(t, "events", o.Events, l.Count)
			same(t, "asOfSeq", o.AsOfSeq, l.AsOfSeq)
			sameJSON(t, "surface", o.Surface, l.Surface)
			sameJSON(t, "messages", o.Messages, l.Messages.List)
			sameJSON(t, "closers", o.Closers, l.Closers)
			sameJSON(t, "changes", o.Changes, l.Changes)
			sameValues(t, o, l.Values)
		})
	}
}

// Logs with a cut at the same seq share a call: starting the plugins anew for each of some 300 cuts would be most of the time.
func TestReplayAtGivesTheValuesOfEachCut(t *testing.T) {
	type logCut struct {
		log corpus.Log
		cut corpus.Cut
	}
	bySeq := map[int64][]logCut{}
	for _, l := range corpus.Logs(t) {
		for _, cut := range l.Cuts {
			bySeq[cut.At] = append(bySeq[cut.At], logCut{l, cut})
		}
	}
	for at, cuts := range bySeq {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			var logs []corpus.Log
			for _, c := range cuts {
				logs = append(logs, c.log)
			}
			for i, o := range replayAll(t, logs, "--at", fmt.Sprint(at)) {
				l := cuts[i].log
				t.Run(l.Name, func(t *testing.T) {
					same(t, "asOfSeq", o.AsOfSeq, at)
					same(t, "events", o.Events, at+1)
					sameValues(t, o, cuts[i].cut.Values)
					prefix := l.Changes[:0:0]
					for _, c := range l.Changes {
						if c.Seq <= at {
							prefix = append(prefix, c)
						}
					}
					sameJSON(t, "changes", o.Changes, prefix)
				})
			}
		})
	}
}

func TestInvalidLogsAreRefusedWhereTheyBreak(t *testing.T) {
	logs := corpus.Invalid(t)
	args := []string{"replay", "--json"}
	for _, l := range logs {
		args = append(args, l.Path)
	}
	// One call for all; that a single refused log exits with 1 is shown by the tests of bad files.
	all := foldhost(t, "", args...).want(t, 1).objects(t)
	if len(all) != len(logs) {
		t.Fatalf("%d objects for %d logs", len(all), len(logs))
	}
	for i, l := range logs {
		t.Run(strings.TrimSuffix(l.File, ".jsonl"), func(t *testing.T) {
			o := all[i]
			if l.Valid {
				if !o.Accepted {
					t.Fatalf("refused: %+v", *o.Error)
				}
				return
			}
			if o.Accepted || o.Error == nil {
				t.Fatalf("accepted, want %s", l.Code)
			}
			same(t, "code", o.Error.Code, l.Code)
			if (o.Error.Index == nil) != (l.Index == nil) || l.Index != nil && *o.Error.Index != *l.Index {
				t.Errorf("refused at %s, want %s", index(o.Error.Index), index(l.Index))
			}
			// What replay refuses, import refuses, unless it lies in a torn tail; it never writes what is wrong.
			out := filepath.Join(t.TempDir(), "out.jsonl")
			if foldhost(t, "", "import", "--strict", l.Path, out).code != 1 {
				t.Errorf("import --strict took it")
			}
			if foldhost(t, "", "import", l.Path, out).code == 0 {
				foldhost(t, "", "replay", "--json", out).want(t, 0)
			}
		})
	}
}

func TestExportAndImportGiveTheSameBytes(t *testing.T) {
	for _, l := range corpus.Logs(t) {
		t.Run(l.Name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			plain, packed, back := filepath.Join(dir, "plain.jsonl"), filepath.Join(dir, "packed.jsonl.zst"), filepath.Join(dir, "back.jsonl")
			// Importing puts the members of an event in order and changes nothing else.
			foldhost(t, "", "import", "--strict", l.Path, plain).want(t, 0)
			sameLines(t, read(t, l.Path), read(t, plain))
			foldhost(t, "", "export", plain, packed).want(t, 0)
			foldhost(t, "", "import", "--strict", packed, back).want(t, 0)
			if read(t, back) != read(t, plain) {
				t.Errorf("not the same bytes after a round trip")
			}
			rows := filepath.Join(dir, "rows.jsonl")
			foldhost(t, "", "export", l.Path, rows).want(t, 0)
			count := map[string]int{}
			for line := range strings.Lines(read(t, rows)) {
				var row struct{ Type string }
				if err := json.Unmarshal([]byte(line), &row); err != nil {
					t.Fatal(err)
				}
				if strings.HasSuffix(row.Type, "-chunks") {
					count[row.Type]++
				}
			}
			if diff := cmp.Diff(l.PackedRows, count); diff != "" {
				t.Errorf("packed rows (-want +got):\n%s", diff)
			}
		})
	}
}

// sameLines compares two logs line by line as JSON, numbers by their digits.
func sameLines(t *testing.T, want, got string) {
	t.Helper()
	wants, gots := strings.Split(want, "\n"), strings.Split(got, "\n")
	if len(wants) != len(gots) {
		t.Fatalf("%d lines, want %d", len(gots), len(wants))
	}
	value := func(line string) (v any) {
		dec := json.NewDecoder(strings.NewReader(line))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil && line != "" {
			t.Fatal(err)
		}
		return v
	}
	for i := range wants {
		if wants[i] != gots[i] && !cmp.Equal(value(wants[i]), value(gots[i])) {
			t.Fatalf("line %d is %.300s, want %.300s", i+1, gots[i], wants[i])
		}
	}
}

// replayAll replays logs in one call of the binary.
func replayAll(t *testing.T, logs []corpus.Log, flags ...string) []replayed {
	t.Helper()
	args := append([]string{"replay", "--json"}, flags...)
	for _, l := range logs {
		args = append(args, l.Path)
	}
	all := foldhost(t, "", args...).want(t, 0).objects(t)
	if len(all) != len(logs) {
		t.Fatalf("%d objects for %d logs", len(all), len(logs))
	}
	return all
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// sameJSON compares as JSON: what was printed with what was expected.
func sameJSON(t *testing.T, what string, got json.RawMessage, want any) {
	t.Helper()
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(t, text), decode(t, got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// sameValues compares the values of the recorded keys, and that there are no others but imageLimits.
func sameValues(t *testing.T, o replayed, want map[string]json.RawMessage) {
	t.Helper()
	for _, key := range recorded {
		sameJSON(t, key, o.Values[key], want[key])
	}
	if len(o.Values) != len(recorded)+1 || o.Values["imageLimits"] == nil || len(o.Unavailable) != 0 {
		t.Errorf("the values are %v, unavailable %v", o.Values, o.Unavailable)
	}
}

func decode(t *testing.T, text json.RawMessage) any {
	t.Helper()
	var v any
	if len(text) == 0 {
		t.Fatal("a field is missing")
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	// An empty list was an empty list: null is not one.
	if list, ok := v.([]any); ok && len(list) == 0 {
		return []any{}
	}
	return v
}

func index(i *int64) string {
	if i == nil {
		return "the header"
	}
	return fmt.Sprintf("event %d", *i)
}
