package jsonl_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/jsonl"
)

func note(seq int) string {
	return fmt.Sprintf(`{"type":"note","seq":%d,"time":1,"data":null}`, seq) + "\n"
}

func turnEnd(seq int) string {
	return fmt.Sprintf(`{"type":"turn/end","seq":%d,"time":1,"data":{"turn":1,"reason":{"kind":"completed"}}}`, seq) + "\n"
}

// textRow is a row of three chunks.
func textRow(seq0 int) string {
	return fmt.Sprintf(`{"type":"text-chunks","seq0":%d,"time0":5,"data":{"turn":1,"step":1,"index":0,"dt":[1,1],"texts":["a","b","c"]}}`, seq0) + "\n"
}

// deep is event 1 with that many arrays in each other.
func deep(n int) string {
	return `{"type":"n","seq":1,"time":1,"data":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}\n"
}

const fine = "-"

func TestTornTails(t *testing.T) {
	const badRow = `{"type":"text-chunks","seq0":1,"time0":5,"data":{"turn":1,"step":1,"index":0,"dt":[],"texts":[]}}` + "\n"
	for name, c := range map[string]struct {
		text string
		// events is how many import gives before it ends or refuses; code is its error, fine when there is none.
		events int
		code   event.Code
		kind   jsonl.WarningKind
		line   int64
		bytes  int
		// strictEvents and strict are the same for a strict reader.
		strictEvents int
		strict       event.Code
	}{
		"a header alone": {"", 0, fine, "", 0, 0, 0, fine},
		"whole":          {note(0) + turnEnd(1), 2, fine, "", 0, 0, 2, fine},
		"white space":    {" {\"type\":\"n\", \"seq\":0,\t\"time\":1,\"data\":1 } \r\n", 1, fine, "", 0, 0, 1, fine},
		"a cut line":     {note(0) + `{"type":"no`, 1, fine, jsonl.TornLine, 3, 11, 1, fine},
		"a line that is whole but for its newline": {
			note(0) + strings.TrimSuffix(note(1), "\n"), 1, fine, jsonl.TornLine, 3, len(note(1)) - 1, 1, fine},
		"an end of turn without newline": {
			note(0) + "#\n" + strings.TrimSuffix(turnEnd(1), "\n"), 1, fine, jsonl.TornTail, 3, 1 + len(turnEnd(1)), 1, event.DataNotLossless},
		"zeros at the end":               {note(0) + strings.Repeat("\x00", 5000), 1, fine, jsonl.TornLine, 3, 5000, 1, fine},
		"zeros in the middle":            {note(0) + strings.Repeat("\x00", 5000) + note(1) + turnEnd(2), 1, event.DataNotLossless, "", 0, 0, 1, event.DataNotLossless},
		"garbage":                        {note(0) + "#\n", 1, fine, jsonl.TornTail, 3, 2, 1, event.DataNotLossless},
		"an empty line":                  {note(0) + "\n", 1, fine, jsonl.TornTail, 3, 1, 1, event.DataNotLossless},
		"garbage, then more":             {note(0) + "#\n" + note(1), 1, fine, jsonl.TornTail, 3, 2 + len(note(1)), 1, event.DataNotLossless},
		"garbage before a turn's end":    {note(0) + "#\n" + turnEnd(1), 1, event.DataNotLossless, "", 0, 0, 1, event.DataNotLossless},
		"garbage long before it":         {note(0) + "#\n" + strings.Repeat(note(1), 500) + turnEnd(9), 1, event.DataNotLossless, "", 0, 0, 1, event.DataNotLossless},
		"garbage behind the last turn":   {note(0) + turnEnd(1) + "#\n" + note(2), 2, fine, jsonl.TornTail, 4, 2 + len(note(2)), 2, event.DataNotLossless},
		"JSON that is no event":          {note(0) + "{}\n", 1, fine, jsonl.TornTail, 3, 3, 1, event.EnvelopeInvalid},
		"no event before a turn's end":   {note(0) + "[1]\n" + turnEnd(1), 1, event.EnvelopeInvalid, "", 0, 0, 1, event.EnvelopeInvalid},
		"invalid UTF-8":                  {note(0) + "{\"type\":\"\xff\",\"seq\":1,\"time\":1,\"data\":1}\n", 1, fine, jsonl.TornTail, 3, 39, 1, event.DataNotLossless},
		"a gap":                          {note(0) + note(2), 1, fine, jsonl.TornTail, 3, len(note(2)), 2, fine},
		"a gap before a turn's end":      {note(0) + note(2) + turnEnd(3), 1, event.SeqNotContiguous, "", 0, 0, 3, fine},
		"a gap that is a turn's end":     {note(0) + turnEnd(2), 1, fine, jsonl.TornTail, 3, len(turnEnd(2)), 2, fine},
		"a doubled line":                 {note(0) + note(1) + note(1), 2, fine, jsonl.TornTail, 4, len(note(1)), 3, fine},
		"a doubled line before the end":  {note(0) + note(0) + turnEnd(1), 1, event.SeqNotContiguous, "", 0, 0, 3, fine},
		"from seq 1":                     {note(1), 0, fine, jsonl.TornTail, 2, len(note(1)), 1, fine},
		"a row":                          {note(0) + textRow(1) + turnEnd(4), 5, fine, "", 0, 0, 5, fine},
		"a row with a gap":               {note(0) + textRow(2), 1, fine, jsonl.TornTail, 3, len(textRow(2)), 4, fine},
		"a row with a gap, then an end":  {note(0) + textRow(2) + turnEnd(5), 1, event.SeqNotContiguous, "", 0, 0, 5, fine},
		"a malformed row":                {note(0) + badRow, 1, fine, jsonl.TornTail, 3, len(badRow), 1, event.EnvelopeInvalid},
		"a malformed row before an end":  {note(0) + badRow + turnEnd(1), 1, event.EnvelopeInvalid, "", 0, 0, 1, event.EnvelopeInvalid},
		"a cut row":                      {note(0) + textRow(1)[:40], 1, fine, jsonl.TornLine, 3, 40, 1, fine},
		"a second header":                {header, 0, fine, jsonl.TornTail, 2, len(header), 0, event.EnvelopeInvalid},
		"a duplicate key, nothing later": {note(0) + `{"type":"n","seq":1,"time":1,"data":{"a":1,"a":2}}` + "\n", 1, event.DataNotLossless, "", 0, 0, 1, event.DataNotLossless},
		"-0, nothing later":              {note(0) + `{"type":"n","seq":1,"time":1,"data":-0}` + "\n", 1, event.DataNotLossless, "", 0, 0, 1, event.DataNotLossless},
		"nested too deep, nothing later": {note(0) + deep(1001), 1, event.DataNotLossless, "", 0, 0, 1, event.DataNotLossless},
		"nested deeper than any reader":  {note(0) + deep(20_000), 1, event.DataNotLossless, "", 0, 0, 1, event.DataNotLossless},
	} {
		t.Run(name, func(t *testing.T) {
			got := takeText(header+c.text, jsonl.Options{})
			checkTaken(t, got, c.events, c.code)
			if c.kind == "" && len(got.warnings) > 0 {
				t.Errorf("warnings %v", got.warnings)
			}
			if c.kind != "" {
				if len(got.warnings) != 1 {
					t.Fatalf("warnings %v, want one", got.warnings)
				}
				w := got.warnings[0]
				if w.Kind != c.kind || w.Line != c.line || w.Bytes != int64(c.bytes) || w.Index != int64(c.events) {
					t.Errorf("warning %+v, want %s of %d bytes from line %d, event %d", w, c.kind, c.bytes, c.line, c.events)
				}
				if (w.Cause == nil) != (w.Kind == jsonl.TornLine) || w.String() == "" {
					t.Errorf("warning %+v: cause", w)
				}
			}
			checkTaken(t, takeText(header+c.text, jsonl.Options{Strict: true}), c.strictEvents, c.strict)
		})
	}
}

func checkTaken(t *testing.T, got taken, events int, code event.Code) {
	t.Helper()
	if len(got.events) != events {
		t.Errorf("%d events, want %d (%v)", len(got.events), events, got.err)
	}
	if code == fine {
		if got.err != nil {
			t.Errorf("refused: %v", got.err)
		}
		return
	}
	index, have := place(got.err)
	if index != int64(events) || have != code {
		t.Errorf("refused at %d with %q (%v), want %d, %q", index, have, got.err, events, code)
	}
	if at, ok := errors.AsType[*jsonl.LineError](got.err); !ok || at.Line < 2 {
		t.Errorf("no line is named: %v", got.err)
	}
}

func TestHeaderIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, rule string }{
		"nothing":              {"", "empty"},
		"a newline":            {"\n", "json-syntax"},
		"a text":               {"Dear diary,\n", "json-syntax"},
		"an event":             {note(0), "type-invalid"},
		"a later version":      {strings.Replace(header, `"version":0`, `"version":1`, 1), "version-unsupported"},
		"no newline":           {strings.TrimSuffix(header, "\n"), "torn"},
		"cut":                  {header[:20], "json-syntax"},
		"a list":               {"[]\n", "not-an-object"},
		"a longer list":        {"[1,2]\n", "not-an-object"}, // its first byte could begin a skippable frame
		"a byte order mark":    {"\ufeff" + header, "byte-order-mark"},
		"UTF-16":               {"\xff\xfe{\x00\n\x00", "utf-16"},
		"UTF-16, big end":      {"\xfe\xff\x00{\x00\n", "utf-16"},
		"gzip":                 {"\x1f\x8b\x08\x00\x00\x00\x00\x00", "gzip"},
		"three bytes of magic": {"\x28\xb5\x2f", "json-syntax"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, strict := range []bool{false, true} {
				err := takeText(c.text, jsonl.Options{Strict: strict}).err
				if index, code := place(err); index != event.HeaderIndex || code != event.HeaderInvalid {
					t.Errorf("refused at %d with %q", index, code)
				}
				if fault, _ := errors.AsType[*event.Error](err); fault == nil || fault.Rule != c.rule {
					t.Errorf("got %v, want %s", err, c.rule)
				}
			}
		})
	}
}

func TestLineAboveTheLimitIsRefusedUnkept(t *testing.T) {
	const limit = 1000
	long := func(n int) string { return `{"type":"n","seq":1,"time":1,"data":"` + strings.Repeat("x", n) + `"}` }
	for name, c := range map[string]struct {
		text  string
		code  event.Code
		index int64
		size  int64
		kinds []jsonl.WarningKind
	}{
		"an event above the limit":   {header + note(0) + long(1200) + "\n" + turnEnd(2), event.TooLarge, 1, 0, nil},
		"with nothing later":         {header + note(0) + long(1200) + "\n", event.TooLarge, 1, 0, nil},
		"a line above four times it": {header + note(0) + long(100_000) + "\n", event.TooLarge, 1, 100_039, nil},
		"without newline":            {header + note(0) + long(100_000), fine, 0, 0, []jsonl.WarningKind{jsonl.TornLine}},
		"a header":                   {strings.Replace(header, "}", `,"x":"`+strings.Repeat("x", 100_000)+`"}`, 1), event.TooLarge, -1, 100_060, nil},
		"an event of exactly the limit": {
			header + note(0) + long(limit-39) + "\n", fine, 0, 0, nil},
		"white space does not count": {header + note(0) + strings.Repeat(" ", 2000) + long(100) + "\n", fine, 0, 0, nil},
		"a chunk of a row": {header + `{"type":"text-chunks","seq0":0,"time0":5,"data":{"turn":1,"step":1,"index":0,"dt":[1],"texts":["a","` +
			strings.Repeat("x", 1000) + `"]}}` + "\n", event.TooLarge, 1, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, strict := range []bool{false, true} {
				got := takeText(c.text, jsonl.Options{Strict: strict, MaxEventBytes: limit})
				if c.code == fine {
					if got.err != nil || len(got.warnings) != len(c.kinds) || len(c.kinds) == 1 && got.warnings[0].Kind != c.kinds[0] {
						t.Fatalf("%v, %v", got.err, got.warnings)
					}
					continue
				}
				if index, code := place(got.err); index != c.index || code != c.code {
					t.Fatalf("refused at %d with %q: %v", index, code, got.err)
				}
				if c.size == 0 {
					continue
				}
				long, ok := errors.AsType[*jsonl.LineTooLongError](got.err)
				if !ok || long.Size != c.size || long.Limit != 4*limit {
					t.Fatalf("%+v, want %d bytes of %d", long, c.size, 4*limit)
				}
			}
		})
	}
}

func TestBlocksOfAnySizeGiveTheSameLog(t *testing.T) {
	text := header + note(0) + textRow(1) + `{"type":"n","seq":4,"time":1,"data":"é💥` + strings.Repeat("x", 100_000) + `"}` + "\n" + note(5) + `{"ty`
	want := takeText(text, jsonl.Options{})
	if want.err != nil || len(want.events) != 6 || len(want.warnings) != 1 {
		t.Fatalf("%d events, %v, %v", len(want.events), want.warnings, want.err)
	}
	for name, in := range map[string]io.Reader{
		"bytes":          iotest.OneByteReader(strings.NewReader(text)),
		"halves":         iotest.HalfReader(strings.NewReader(text)),
		"data with EOF":  iotest.DataErrReader(strings.NewReader(text)),
		"bytes of zstd":  iotest.OneByteReader(strings.NewReader(compress(t, text))),
		"halves of zstd": iotest.HalfReader(strings.NewReader(compress(t, text))),
	} {
		t.Run(name, func(t *testing.T) {
			got := take(in, jsonl.Options{})
			if got.err != nil || len(got.warnings) != 1 || got.warnings[0] != want.warnings[0] {
				t.Fatalf("%v, %v", got.warnings, got.err)
			}
			sameEvents(t, got.events, want.events)
		})
	}
}

func TestFailingInputIsNoTornTail(t *testing.T) {
	broken := errors.New("the disk broke")
	for _, strict := range []bool{false, true} {
		for _, text := range []string{"", header[:10], header + note(0) + note(1)[:5], header + "#\n" + note(1)} {
			in := io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))
			got := take(in, jsonl.Options{Strict: strict})
			if strict && strings.Contains(text, "#") {
				continue // refused before
			}
			failed, ok := errors.AsType[*jsonl.ReadError](got.err)
			if !ok || !errors.Is(failed, broken) || len(got.warnings) > 0 {
				t.Fatalf("after %q: %v, %v", text, got.err, got.warnings)
			}
		}
	}
}

func TestEventsAreReadOnce(t *testing.T) {
	r, err := jsonl.NewReader(strings.NewReader(header+note(0)+note(1)), jsonl.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range r.Events() {
		break
	}
	var second []error
	for _, err := range r.Events() {
		second = append(second, err)
	}
	if len(second) != 1 || !errors.Is(second[0], jsonl.ErrRead) {
		t.Fatalf("a second pass: %v", second)
	}
}
