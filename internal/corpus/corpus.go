// Package corpus gives tests the recorded logs that may lie beside the module, with the results that are right for them.
// It only reads. A test that asks for the corpus where it is not is skipped, so no test may need it.
package corpus

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Dir is the directory of the corpus. It skips the test when there is none.
func Dir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatalf("finding the module: %v", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			tb.Fatal("finding the module: no go.mod above the test")
		}
		dir = parent
	}
	corpus := filepath.Join(filepath.Dir(dir), "shared", "corpus")
	if _, err := os.Stat(corpus); err != nil {
		tb.Skip("skipped: ../shared/corpus is not here")
	}
	return corpus
}

// Log is one accepted log and its results.
type Log struct {
	// Name is the file name without .jsonl, such as "000-synth".
	Name string
	Path string
	// Header is line 1 and Events are the lines after it, without newlines.
	Header []byte
	Events [][]byte
	Expected
}

// Logs are the recorded and then the generated logs, each group by name.
func Logs(tb testing.TB) []Log {
	tb.Helper()
	var logs []Log
	for _, group := range []string{"recorded", "generated"} {
		paths, err := filepath.Glob(filepath.Join(Dir(tb), group, "*.jsonl"))
		if err != nil {
			tb.Fatalf("listing %s: %v", group, err)
		}
		for _, path := range paths {
			l := Log{Name: strings.TrimSuffix(filepath.Base(path), ".jsonl"), Path: path}
			l.Header, l.Events = lines(tb, path)
			read(tb, strings.TrimSuffix(path, ".jsonl")+".expected.json", &l.Expected)
			logs = append(logs, l)
		}
	}
	if len(logs) == 0 {
		tb.Fatal("the corpus holds no logs")
	}
	return logs
}

// InvalidLog is a log that differs from an accepted one in one place, and what is to be said of it.
type InvalidLog struct {
	File  string `json:"file"`
	Group string `json:"group"`
	Name  string `json:"name"`
	Valid bool   `json:"valid"`
	// Index is the event that is refused, from 0; nil is the header. Code is the error code.
	Index *int64 `json:"index"`
	Code  string `json:"code"`

	Path   string   `json:"-"`
	Header []byte   `json:"-"`
	Events [][]byte `json:"-"`
}

// Invalid are the entries of invalid/expected.json. Some are valid, to catch a reader that refuses too much.
func Invalid(tb testing.TB) []InvalidLog {
	tb.Helper()
	dir := filepath.Join(Dir(tb), "invalid")
	var logs []InvalidLog
	read(tb, filepath.Join(dir, "expected.json"), &logs)
	for i := range logs {
		logs[i].Path = filepath.Join(dir, logs[i].File)
		logs[i].Header, logs[i].Events = lines(tb, logs[i].Path)
	}
	if len(logs) == 0 {
		tb.Fatal("the corpus holds no invalid logs")
	}
	return logs
}

func lines(tb testing.TB, path string) (header []byte, events [][]byte) {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatalf("reading the corpus: %v", err)
	}
	all := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	return all[0], all[1:]
}

func read(tb testing.TB, path string, into any) {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatalf("reading the corpus: %v", err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		tb.Fatalf("reading %s: %v", path, err)
	}
}
