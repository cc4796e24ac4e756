package jsonl_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/jsonl"
)

// A file of some KiB that stands for much is read until it has come to what its length allows, and then refused with both sizes, whatever is in it.
func TestABombIsReadToItsLimitOnly(t *testing.T) {
	notInShort(t)
	const free, factor = 64 << 20, 256
	same := func(text string) func(int) string { return func(int) string { return text } }
	mib := func(unit string) func(int) string { return same(strings.Repeat(unit, 1<<20/len(unit))) }
	white := strings.Repeat(" ", 8<<20)
	row := func(n int) string {
		return fmt.Sprintf(`{"type":"text-chunks","seq0":0,"time0":1,"data":{"turn":1,"step":1,"index":0,"dt":[%s0],"texts":[%s""]}}`+"\n",
			strings.Repeat("0,", n-2), strings.Repeat(`"",`, n-1))
	}
	for name, c := range map[string]struct {
		begin string
		unit  func(i int) string
		times int
	}{
		"a line without an end":               {header, mib("\x00"), 90},
		"a header without an end":             {"", mib(" "), 90},
		"empty lines":                         {header, mib("\n"), 20}, // a line counts as an event at least
		"lines that are none":                 {header, mib("#\n"), 20},
		"lines behind a torn one":             {header + "#\n", mib(note(3)), 90},
		"events in white space":               {header, func(i int) string { return white + note(i) }, 12},
		"rows in white space":                 {header, func(i int) string { return white + textRow(3*i) }, 12},
		"a row that stands for a hundred MiB": {header, same(row(1 << 20)), 1},
	} {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			in := packer(t, &file)
			write := func(text string) {
				if _, err := io.WriteString(in, text); err != nil {
					t.Fatal(err)
				}
			}
			write(c.begin)
			for i := range c.times {
				write(c.unit(i))
			}
			if err := in.Close(); err != nil {
				t.Fatal(err)
			}
			bomb := file.Bytes()
			got := take(bytes.NewReader(bomb), jsonl.Options{})
			grown, ok := errors.AsType[*jsonl.GrowthError](got.err)
			if !ok {
				t.Fatalf("%d bytes: %d events, %v", len(bomb), len(got.events), got.err)
			}
			if grown.Limit != free+factor*grown.Read || grown.Size <= grown.Limit || grown.Read > int64(len(bomb)) {
				t.Errorf("%+v of %d bytes", grown, len(bomb))
			}
			if _, code := place(got.err); code != event.TooLarge {
				t.Errorf("its code is %q", code)
			}
		})
	}
}

// What is written is read, however well it compresses: events that are large and all the same, and rows that stand for far more than they are. It is so in two frames and more, which others read too.
func TestALogThatCompressesWellIsRead(t *testing.T) {
	notInShort(t)
	state := event.Event{Type: "state", Time: 1, Data: []byte(`"` + strings.Repeat("much the same each time ", 1<<16) + `"`)}
	id := strings.Repeat("x", 900)
	for name, c := range map[string]struct {
		n    int64
		make func(seq int64) event.Event
	}{
		"states": {120, func(seq int64) event.Event { e := state; e.Seq = seq; return e }},
		"chunks": {180_000, func(seq int64) event.Event {
			return event.Event{Type: event.AssistantChunk, Seq: seq, Data: fmt.Appendf(nil, `{"turn":1,"step":1,"chunk":{"type":"tool-call-delta","index":0,"id":"%s","argumentsDelta":""}}`, id)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			w, err := jsonl.NewWriter(&file, event.Header{ID: "s"}, jsonl.WriterOptions{Compression: jsonl.Zstd})
			if err != nil {
				t.Fatal(err)
			}
			size := 0
			for seq := range c.n {
				e := c.make(seq)
				size += len(e.Data)
				if err := w.Write(e); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if size < 150<<20 || file.Len() > size/200 {
				t.Fatalf("%d bytes of events are %d", size, file.Len())
			}
			for name, in := range map[string]io.Reader{"as it is": bytes.NewReader(file.Bytes()), "unpacked": unpacker(t, bytes.NewReader(file.Bytes()))} {
				r, err := jsonl.NewReader(in, jsonl.Options{Strict: true})
				if err != nil {
					t.Fatal(err)
				}
				next := int64(0)
				for d, err := range r.Events() {
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					if want := c.make(next); d.Seq != next || !bytes.Equal(d.Data, want.Data) {
						t.Fatalf("%s: event %d is %d, of %d bytes", name, next, d.Seq, len(d.Data))
					}
					next++
				}
				if next != c.n {
					t.Errorf("%s: %d events", name, next)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func packer(t *testing.T, out io.Writer) *zstd.Encoder {
	t.Helper()
	e, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func unpacker(t *testing.T, in io.Reader) io.Reader {
	t.Helper()
	d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// notInShort skips what packs and unpacks some hundred MiB on one goroutine: under the race detector, where tests are short, it takes a minute and shows nothing.
func notInShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: it packs hundreds of MiB")
	}
}
