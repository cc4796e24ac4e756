package jsonl_test

import (
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/jsonl"
	"github.com/foldhost/foldhost/internal/corpus"
)

func TestCorpusComesBackFromEveryForm(t *testing.T) {
	for _, l := range corpus.Logs(t) {
		t.Run(l.Name, func(t *testing.T) {
			text, err := os.ReadFile(l.Path)
			if err != nil {
				t.Fatal(err)
			}
			for _, strict := range []bool{false, true} {
				got := takeText(string(text), jsonl.Options{Strict: strict})
				if got.err != nil || len(got.warnings) > 0 {
					t.Fatalf("refused: %v, %v", got.err, got.warnings)
				}
				if int64(len(got.events)) != l.Count {
					t.Fatalf("%d events, want %d", len(got.events), l.Count)
				}
				plain := write(t, got.header, got.events, jsonl.WriterOptions{Verbatim: true})
				sameLines(t, plain, string(text))
				packed := write(t, got.header, got.events, jsonl.WriterOptions{})
				checkRows(t, packed, l.PackedRows)
				small := write(t, got.header, got.events, jsonl.WriterOptions{Compression: jsonl.Zstd})
				for _, text := range []string{packed, small} {
					again := takeText(text, jsonl.Options{Strict: strict})
					if again.err != nil || len(again.warnings) > 0 {
						t.Fatalf("the export is refused: %v, %v", again.err, again.warnings)
					}
					sameEvents(t, again.events, got.events)
				}
			}
		})
	}
}

// sameLines compares byte for byte, but for the order of the envelope's keys, which is fixed on the way out.
func sameLines(t *testing.T, got, want string) {
	t.Helper()
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
	if len(gotLines) != len(wantLines) {
		t.Fatalf("%d lines, want %d", len(gotLines), len(wantLines))
	}
	for i, line := range gotLines {
		if line == wantLines[i] {
			continue
		}
		a, b := json.RawMessage(line), json.RawMessage(wantLines[i])
		if !event.Equal(a, b) || string(event.Lookup(a, "data")) != string(event.Lookup(b, "data")) {
			t.Fatalf("line %d:\n got %s\nwant %s", i+1, line, wantLines[i])
		}
	}
}

func checkRows(t *testing.T, packed string, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for line := range strings.Lines(packed) {
		var record struct{ Type string }
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(record.Type, "-chunks") {
			got[record.Type]++
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("packed rows %v, want %v", got, want)
	}
}

// Shapes and surfaces are others' to refuse, but what a reader refuses, it refuses at the right event with the right code.
func TestInvalidCorpus(t *testing.T) {
	mine := map[event.Code]bool{event.HeaderInvalid: true, event.EnvelopeInvalid: true, event.DataNotLossless: true}
	for _, l := range corpus.Invalid(t) {
		t.Run(l.Name, func(t *testing.T) {
			text, err := os.ReadFile(l.Path)
			if err != nil {
				t.Fatal(err)
			}
			got := takeText(string(text), jsonl.Options{Strict: true})
			if !mine[event.Code(l.Code)] {
				if got.err != nil {
					t.Fatalf("refused: %v", got.err)
				}
				return
			}
			index, code := place(got.err)
			want := int64(event.HeaderIndex)
			if l.Index != nil {
				want = *l.Index
			}
			if index != want || string(code) != l.Code {
				t.Fatalf("refused at %d with %q, want %d and %q", index, code, want, l.Code)
			}
		})
	}
}
