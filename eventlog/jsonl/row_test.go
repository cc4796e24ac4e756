package jsonl_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/jsonl"
)

func TestMalformedRowsAreRefused(t *testing.T) {
	const good = `{"type":"text-chunks","seq0":0,"time0":5,"data":{"turn":1,"step":1,"index":0,"dt":[1],"texts":["a","b"]}}`
	const call = `{"type":"tool-call-chunks","seq0":0,"time0":5,"data":{"turn":1,"step":1,"index":0,"dt":[1],"args":["a","b"],"id":"c","name":"n"}}`
	change := func(row, old, now string) string {
		if strings.Count(row, old) != 1 {
			t.Fatalf("%s is not once in %s", old, row)
		}
		return strings.Replace(row, old, now, 1)
	}
	for name, row := range map[string]string{
		"data that is no object":      `{"type":"text-chunks","seq0":0,"time0":5,"data":[]}`,
		"an extra key":                change(good, `"seq0"`, `"seq":0,"seq0"`),
		"an extra key in data":        change(good, `"dt"`, `"extra":1,"dt"`),
		"seq0 -1":                     change(good, `"seq0":0`, `"seq0":-1`),
		"seq0 0.5":                    change(good, `"seq0":0`, `"seq0":0.5`),
		"time0 1e999, infinite":       change(good, `"time0":5`, `"time0":1e999`),
		"time0 1.5":                   change(good, `"time0":5`, `"time0":1.5`),
		"time0 a string":              change(good, `"time0":5`, `"time0":"5"`),
		"args in a text row":          change(good, `"texts"`, `"args"`),
		"texts in a call row":         change(call, `"args"`, `"texts"`),
		"a member that is no string":  change(good, `"b"`, `7`),
		"no members":                  change(change(good, `["a","b"]`, `[]`), `[1]`, `[]`),
		"members that are no list":    change(good, `["a","b"]`, `"ab"`),
		"too few gaps":                change(good, `[1]`, `[]`),
		"too many gaps":               change(good, `[1]`, `[1,1]`),
		"a gap that is null":          change(good, `[1]`, `[null]`),
		"a gap of 0.5":                change(good, `[1]`, `[0.5]`),
		"gaps that are no list":       change(good, `[1]`, `1`),
		"a seq out of range":          change(good, `"seq0":0`, `"seq0":9007199254740991`),
		"a time out of range":         change(good, `"time0":5`, `"time0":9007199254740991`),
		"a time below the range":      change(change(good, `"time0":5`, `"time0":-9007199254740991`), `[1]`, `[-1]`),
		"turn a string":               change(good, `"turn":1`, `"turn":"x"`),
		"step null":                   change(good, `"step":1`, `"step":null`),
		"index a list":                change(good, `"index":0`, `"index":[0]`),
		"no turn":                     change(good, `"turn":1,`, ``),
		"no step":                     change(good, `"step":1,`, ``),
		"no index":                    change(good, `"index":0,`, ``),
		"no members at all":           change(change(good, `,"texts":["a","b"]`, ``), `[1]`, `[]`),
		"a name in a text row":        change(good, `"dt"`, `"name":"n","dt"`),
		"an extra key in a call":      change(call, `"dt"`, `"extra":"n","dt"`),
		"no gaps":                     change(good, `"dt":[1],`, ``),
		"no data":                     `{"type":"text-chunks","seq0":0,"time0":5}`,
		"no seq0":                     change(good, `"seq0":0,`, ``),
		"a call without id":           change(call, `,"id":"c"`, ``),
		"an id of 7":                  change(call, `"c"`, `7`),
		"a name of 7":                 change(call, `"n"`, `7`),
		"a name that is null":         change(call, `"n"`, `null`),
		"an id in a text row":         change(good, `"dt"`, `"id":"c","dt"`),
		"a duplicate key":             change(good, `"turn":1`, `"turn":1,"turn":1`),
		"another case":                change(good, `"seq0"`, `"Seq0"`),
		"an unknown tag":              change(good, `text-chunks`, `image-chunks`),
		"a surface op":                change(good, `"seq0"`, `"surfaceOp":"append","seq0"`),
		"a row of rows":               change(good, `"a"`, `["a"]`),
		"a time that is -0":           change(good, `"time0":5`, `"time0":-0`),
		"data, then seq0 -1":          change(change(good, `"seq0":0,`, ``), `,"data":{"turn":1,"step":1,"index":0,"dt":[1],"texts":["a","b"]}`, `,"data":{"turn":1,"step":1,"index":0,"dt":[1],"texts":["a","b"]},"seq0":-1`),
		"data, then an extra key":     change(good, `]}}`, `]},"extra":1}`),
		"a gap that leaves and comes": change(change(good, `[1]`, `[9007199254740991,-9007199254740991]`), `"b"`, `"b","c"`),
	} {
		t.Run(name, func(t *testing.T) {
			got := takeText(header+row+"\n"+turnEnd(2), jsonl.Options{})
			if index, code := place(got.err); index != 0 || code != event.EnvelopeInvalid && code != event.DataNotLossless {
				t.Fatalf("refused at %d with %q: %v", index, code, got.err)
			}
			if len(got.events) > 0 {
				t.Fatalf("%d events of a refused row", len(got.events))
			}
			if strict := takeText(header+row+"\n", jsonl.Options{Strict: true}); strict.err == nil {
				t.Fatal("a strict reader takes it")
			}
		})
	}
	// What is wrong with the JSON is wrong with the line, whatever it would be.
	for name, row := range map[string]string{"cut": good[:40], "a key twice": change(good, `"turn":1`, `"turn":1,"turn":1`), "-0": change(good, `"time0":5`, `"time0":-0`)} {
		if index, code := place(takeText(header+row+"\n", jsonl.Options{Strict: true}).err); index != 0 || code != event.DataNotLossless {
			t.Errorf("%s: refused at %d with %q", name, index, code)
		}
	}
	for name, row := range map[string]string{"text": good, "call": call, "the last seqs that there are": change(good, `"seq0":0`, `"seq0":9007199254740990`),
		"the last time that there is": change(good, `"time0":5`, `"time0":9007199254740990`), "the first": change(change(good, `"time0":5`, `"time0":-9007199254740990`), `[1]`, `[-1]`)} {
		if got := takeText(header+row+"\n", jsonl.Options{Strict: true}); got.err != nil || len(got.events) != 2 {
			t.Fatalf("a good row (%s): %d events, %v", name, len(got.events), got.err)
		}
	}
}

func TestRowExpandsToItsExactEvents(t *testing.T) {
	const row = `{ "data":{"texts" :["a","\u0041\ud800", "<é>" ],"dt":[ -5, 1e1 ],"turn":-1.50,"step":9,"index":2 }, "time0":1e3,"type":"text\u002dchunks","seq0":0 }` + "\n"
	got := takeText(header+row, jsonl.Options{})
	if got.err != nil {
		t.Fatal(got.err)
	}
	want := []string{
		`{"type":"assistant/chunk","seq":0,"time":1000,"data":{"turn":-1.50,"step":9,"chunk":{"type":"text-delta","index":2,"text":"a"}}}`,
		`{"type":"assistant/chunk","seq":1,"time":995,"data":{"turn":-1.50,"step":9,"chunk":{"type":"text-delta","index":2,"text":"\u0041\ud800"}}}`,
		`{"type":"assistant/chunk","seq":2,"time":1005,"data":{"turn":-1.50,"step":9,"chunk":{"type":"text-delta","index":2,"text":"<é>"}}}`,
	}
	if len(got.events) != len(want) {
		t.Fatalf("%d events", len(got.events))
	}
	for i, e := range got.events {
		if have := string(e.AppendJSON(nil)); have != want[i] {
			t.Errorf("event %d:\n got %s\nwant %s", i, have, want[i])
		}
	}
}

// chunk is an event of a kind of delta: t text, u of another index, v of another turn, w of another step, r reasoning, c call with name,
// n call without name, d of another id, m of another name.
func chunk(kind byte, seq, time int64) event.Event {
	turn, step := 1, 2
	switch kind {
	case 'v':
		turn = 2
	case 'w':
		step = 3
	}
	data := fmt.Sprintf(`{"turn":%d,"step":%d,"chunk":{"type":"`, turn, step) + map[byte]string{
		't': `text-delta","index":0,"text":`,
		'u': `text-delta","index":1,"text":`,
		'v': `text-delta","index":0,"text":`,
		'w': `text-delta","index":0,"text":`,
		'r': `reasoning-delta","index":0,"text":`,
		'c': `tool-call-delta","index":0,"id":"c1","name":"write","argumentsDelta":`,
		'n': `tool-call-delta","index":0,"id":"c1","argumentsDelta":`,
		'd': `tool-call-delta","index":0,"id":"c2","name":"write","argumentsDelta":`,
		'm': `tool-call-delta","index":0,"id":"c1","name":"read","argumentsDelta":`,
	}[kind] + fmt.Sprintf("%q", fmt.Sprint(seq)) + "}}"
	if kind == '.' {
		return event.Event{Type: "step/end", Seq: seq, Time: time, Data: []byte(`{"turn":1,"step":2}`)}
	}
	return event.Event{Type: event.AssistantChunk, Seq: seq, Time: time, Data: []byte(data)}
}

// roundTrip packs events, checks that they come back and returns the lines after the header.
func roundTrip(t tb, events []event.Event) []string {
	t.Helper()
	h, err := event.DecodeHeader([]byte(strings.TrimSuffix(header, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	packed := write(t, h, events, jsonl.WriterOptions{})
	got := takeText(packed, jsonl.Options{Strict: true})
	if got.err != nil || len(got.warnings) > 0 {
		t.Fatalf("the export is refused: %v, %v\n%s", got.err, got.warnings, packed)
	}
	sameEvents(t, got.events, events)
	lines := strings.Split(strings.TrimSuffix(packed, "\n"), "\n")
	return lines[1:]
}

func TestRunsOfThreeAndMoreArePacked(t *testing.T) {
	// The letters are kinds of chunks; in the lines a row has its first letter and its length.
	for events, want := range map[string]string{
		"":           "",
		"tt":         "t t",
		"ttt":        "t3",
		"rrrccc":     "r3 c3",
		"nnn":        "n3",
		".ttt.":      ". t3 .",
		"ttuu":       "t t u u",
		"tttuuu":     "t3 u3",
		"tttvvv":     "t3 v3",
		"tttwww":     "t3 w3",
		"cccmmm":     "c3 m3",
		"nnnccc":     "n3 c3",
		"ttrtt":      "t t r t t",
		"cccnnn":     "c3 n3",
		"cccddd":     "c3 d3",
		"ccdd":       "c c d d",
		"cncncn":     "c n c n c n",
		"ttttttttt":  "t9",
		"tttt.tt.tt": "t4 . t t . t t",
	} {
		t.Run(events, func(t *testing.T) {
			var in []event.Event
			for i := range len(events) {
				in = append(in, chunk(events[i], int64(i), 1000-int64(i)*7))
			}
			var got []string
			at := 0
			for _, line := range roundTrip(t, in) {
				if !strings.Contains(line, `-chunks"`) {
					got = append(got, string(events[at]))
					at++
					continue
				}
				// The text of a member is its seq.
				n := strings.Count(line[strings.LastIndex(line, `s":[`):strings.LastIndex(line, `]`)], ",") + 1
				got = append(got, fmt.Sprint(string(events[at]), n))
				at += n
			}
			if have := strings.Join(got, " "); have != want {
				t.Errorf("packed as %q, want %q", have, want)
			}
		})
	}
}

func TestWhatIsNotExactlyADeltaStaysAsItIs(t *testing.T) {
	good := string(chunk('t', 0, 0).Data)
	call := string(chunk('c', 0, 0).Data)
	for _, data := range []string{
		`null`, `[]`, `7`, `{}`, `{"turn":1}`, `{"turn":1,"step":2}`, `{"turn":1,"step":2,"chunk":null}`,
		`{"turn":1,"step":2,"chunk":{"type":"block-start","index":0,"blockType":"text"}}`,
		strings.Replace(good, `"text":"0"`, `"text":7`, 1),
		strings.Replace(good, `"text":"0"`, `"text":null`, 1),
		strings.Replace(good, `"turn":1`, `"turn":"1"`, 1),
		strings.Replace(good, `"turn":1,"step":2`, `"step":2,"turn":1`, 1),
		strings.Replace(good, `"index":0`, `"index":[0]`, 1),
		strings.Replace(good, `}}`, `,"extra":1}}`, 1),
		strings.Replace(good, `}}`, `},"extra":1}`, 1),
		strings.Replace(good, `"type":"text-delta"`, `"type":"text\u002ddelta"`, 1),
		strings.Replace(call, `"id":"c1"`, `"id":1`, 1),
		strings.Replace(call, `"name":"write"`, `"name":null`, 1),
		strings.Replace(call, `"id":"c1",`, ``, 1),
	} {
		var events []event.Event
		for seq := range int64(4) {
			events = append(events, event.Event{Type: event.AssistantChunk, Seq: seq, Data: []byte(data)})
		}
		if lines := roundTrip(t, events); len(lines) != 4 {
			t.Errorf("%s was packed into %d lines", data, len(lines))
		}
	}
	for name, change := range map[string]func(*event.Event){
		"ignorable":    func(e *event.Event) { e.Ignorable = true },
		"sources":      func(e *event.Event) { e.Sources = []int64{} },
		"a surface op": func(e *event.Event) { e.Op = event.Append() },
		"another type": func(e *event.Event) { e.Type = "text-chunks" },
		"seqs apart":   func(e *event.Event) { e.Seq *= 2 },
		"times apart":  func(e *event.Event) { e.Time = (e.Seq%2*2 - 1) * event.MaxInteger },
	} {
		var events []event.Event
		for seq := range int64(4) {
			e := chunk('t', seq, 0)
			change(&e)
			events = append(events, e)
		}
		if lines := roundTrip(t, events); len(lines) != 4 {
			t.Errorf("%s: packed into %d lines", name, len(lines))
		}
	}
}

func TestLongRunIsSeveralRows(t *testing.T) {
	var events []event.Event
	for seq := range int64(300) {
		e := chunk('t', seq, seq)
		e.Data = []byte(strings.Replace(string(e.Data), `"}}`, strings.Repeat("x", 10_000)+`"}}`, 1))
		events = append(events, e)
	}
	lines := roundTrip(t, events)
	if len(lines) != 3 {
		t.Fatalf("%d lines, want 3 of about 1 MiB", len(lines))
	}
	for _, line := range lines {
		if len(line) > 1<<20+100 {
			t.Errorf("a row has %d bytes", len(line))
		}
	}
}

// A row that stands for much more than it is long is refused whole, by import too; what we write is never refused.
func TestARowMayNotGrowWithoutBound(t *testing.T) {
	row := func(id, n int) string {
		gaps, args := strings.Repeat(",0", n-1), strings.Repeat(`,""`, n)
		return fmt.Sprintf(`{"type":"tool-call-chunks","seq0":0,"time0":5,"data":{"turn":1,"step":1,"index":0,"dt":[%s],"args":[%s],"id":"%s"}}`,
			strings.TrimPrefix(gaps, ","), args[1:], strings.Repeat("i", id)) + "\n"
	}
	for _, c := range []struct {
		id, n  int
		events int
		code   event.Code
	}{
		{100_000, 3, 3, fine}, {1000, 5000, 5000, fine}, {2000, 5000, 0, event.TooLarge}, {100_000, 5000, 0, event.TooLarge},
	} {
		for _, strict := range []bool{false, true} {
			checkTaken(t, takeText(header+row(c.id, c.n), jsonl.Options{Strict: strict}), c.events, c.code)
		}
	}
	for _, id := range []int{10, 985, 1200, 5000} {
		var events []event.Event
		for seq := range int64(3000) {
			e := chunk('c', seq, 0)
			e.Data = []byte(strings.Replace(strings.Replace(string(e.Data), `"c1"`, `"`+strings.Repeat("i", id)+`"`, 1), fmt.Sprintf("%q}}", fmt.Sprint(seq)), `""}}`, 1))
			events = append(events, e)
		}
		lines := roundTrip(t, events)
		if packed := id < 1000; packed != (len(lines) == 1) {
			t.Errorf("an id of %d bytes: %d lines", id, len(lines))
		}
	}
}

func TestAnyBatchComesBackFromItsRows(t *testing.T) {
	times := rapid.OneOf(rapid.Int64Range(-event.MaxInteger, event.MaxInteger), rapid.Int64Range(-3, 3),
		rapid.SampledFrom([]int64{-event.MaxInteger, event.MaxInteger, 0}))
	texts := rapid.SampledFrom([]string{`""`, `"a"`, `"\ud800"`, `"\\\""`, `"é💥<"`, `"]}},"`, `7`})
	rapid.Check(t, func(t *rapid.T) {
		var events []event.Event
		seq := rapid.Int64Range(0, 5).Draw(t, "first")
		for range rapid.IntRange(0, 12).Draw(t, "runs") {
			kind := rapid.SampledFrom([]byte("tuvwrcndm.")).Draw(t, "kind")
			for range rapid.IntRange(1, 6).Draw(t, "length") {
				e := chunk(kind, seq, times.Draw(t, "time"))
				text := texts.Draw(t, "text")
				e.Data = []byte(strings.Replace(string(e.Data), fmt.Sprintf("%q", fmt.Sprint(seq)), text, 1))
				e.Ignorable = rapid.IntRange(0, 9).Draw(t, "ignorable") == 0
				events = append(events, e)
				seq += 1 + int64(rapid.IntRange(0, 9).Draw(t, "gap"))/9
			}
		}
		roundTrip(t, events)
	})
}
