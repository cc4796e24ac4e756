package jsonl_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/eventlog/jsonl"
)

// Whatever the bytes, both ways of reading end, agree on what they both accept, and what was accepted survives a round trip.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"", header, header + note(0), header + note(0) + textRow(1) + turnEnd(4), header + "#\n" + turnEnd(0),
		header + note(0) + note(2) + turnEnd(3), header + note(0)[:20], header + " \r\n" + note(0), header + strings.Repeat("\x00", 99),
		header + `{"type":"tool-call-chunks","seq0":0,"time0":-5,"data":{"turn":1,"step":1,"index":0,"dt":[1],"args":["a","b"],"id":"c"}}` + "\n",
		"\x28\xb5\x2f\xfd\x24\x10", `{"`, header + `{"` + "\n",
	} {
		f.Add([]byte(seed))
		f.Add([]byte(compress(f, seed)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		const limit = 1 << 16 // small, so that a bomb in zstd costs little
		loose := takeText(string(text), jsonl.Options{MaxEventBytes: limit})
		strict := takeText(string(text), jsonl.Options{MaxEventBytes: limit, Strict: true})
		for i := range min(len(loose.events), len(strict.events)) {
			if !reflect.DeepEqual(loose.events[i], strict.events[i]) {
				t.Fatalf("event %d differs", i)
			}
		}
		if len(loose.events) > len(strict.events) {
			t.Fatalf("import takes %d events, a strict reader %d", len(loose.events), len(strict.events))
		}
		for i, e := range loose.events {
			if e.Seq != int64(i) {
				t.Fatalf("event %d has seq %d", i, e.Seq)
			}
		}
		if strict.err == nil && loose.err != nil {
			if _, code := place(loose.err); code != "seq-not-contiguous" {
				t.Fatalf("import refuses what a strict reader takes: %v", loose.err)
			}
		}
		if loose.header.ID == "" {
			return
		}
		for _, o := range []jsonl.WriterOptions{{}, {Verbatim: true}} {
			again := takeText(write(t, loose.header, loose.events, o), jsonl.Options{MaxEventBytes: 2 * limit, Strict: true})
			if again.err != nil || len(again.warnings) > 0 {
				t.Fatalf("the export is refused: %v, %v", again.err, again.warnings)
			}
			sameEvents(t, again.events, loose.events)
		}
	})
}

// A row that is taken gives events that pack into a row, or stay as they are, and come back the same.
func FuzzRow(f *testing.F) {
	f.Add([]byte(strings.TrimSuffix(textRow(0), "\n")))
	f.Add([]byte(`{"type":"tool-call-chunks","seq0":0,"time0":9007199254740991,"data":{"turn":1e0,"step":-1,"index":0.5,"dt":[-1,1],"args":["","\ud800","é"],"id":"","name":"\u0041"}}`))
	f.Add([]byte(`{"type":"reasoning-chunks","seq0":0,"time0":0,"data":{"turn":1,"step":1,"index":0,"dt":[],"texts":["a"]}}`))
	f.Fuzz(func(t *testing.T, row []byte) {
		if strings.Contains(string(row), "\n") {
			return
		}
		got := takeText(header+string(row)+"\n", jsonl.Options{})
		if got.err != nil || len(got.events) == 0 {
			return
		}
		lines := roundTrip(t, got.events)
		if n := len(got.events); n >= 3 && len(lines) == 1 || len(lines) == n {
			return
		}
		t.Fatalf("%d events became %d lines", len(got.events), len(lines))
	})
}
