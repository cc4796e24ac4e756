package jsonl_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/jsonl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFramesAreReadAsOneText(t *testing.T) {
	want := takeText(header+note(0)+textRow(1)+note(4), jsonl.Options{Strict: true})
	skippable := "\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
	for name, text := range map[string]string{
		"one frame":                     compress(t, header+note(0)+textRow(1)+note(4)),
		"a frame for each line":         compress(t, header) + compress(t, note(0)) + compress(t, textRow(1)) + compress(t, note(4)),
		"frames that part a line":       compress(t, header+note(0)[:10]) + compress(t, note(0)[10:]+textRow(1)+note(4)),
		"an empty frame in between":     compress(t, header) + compress(t, "") + compress(t, note(0)+textRow(1)+note(4)),
		"a skippable frame first":       skippable + compress(t, header+note(0)+textRow(1)+note(4)),
		"a skippable frame in between":  compress(t, header+note(0)) + skippable + compress(t, textRow(1)+note(4)),
		"a skippable frame at the end":  compress(t, header+note(0)+textRow(1)+note(4)) + skippable,
		"what the writer makes of zstd": write(t, want.header, want.events, jsonl.WriterOptions{Compression: jsonl.Zstd}),
	} {
		t.Run(name, func(t *testing.T) {
			got := takeText(text, jsonl.Options{Strict: true})
			if got.err != nil || len(got.warnings) > 0 {
				t.Fatalf("%v, %v", got.err, got.warnings)
			}
			sameEvents(t, got.events, want.events)
		})
	}
}

// A file that is cut anywhere gives a prefix with a warning, or a refusal, and never anything else.
func TestZstdCutAnywhereGivesAPrefix(t *testing.T) {
	frames := []string{header, note(0) + note(1), note(2) + turnEnd(3), textRow(4)}
	var text string
	ends := map[int]int{} // where a frame ends, and how many events there are then
	count := 0
	for i, f := range frames {
		text += compress(t, f)
		count += []int{0, 2, 2, 3}[i]
		ends[len(text)] = count
	}
	first := len(compress(t, header))
	next := int64(1) // the line that the frame at cut begins with
	for cut := 1; cut < len(text); cut++ {
		if n, ok := ends[cut]; ok {
			next = int64(n) + 2 // of what is cut, only the last frame holds a row
		}
		for _, strict := range []bool{false, true} {
			got := takeText(text[:cut], jsonl.Options{Strict: strict})
			whole, atEnd := ends[cut]
			switch {
			case cut < len("\x28\xb5\x2f\xfd"): // not known to be zstd
				if got.err == nil {
					t.Fatalf("cut at %d of the header's %d: accepted", cut, first)
				}
			case cut < first:
				if _, ok := errors.AsType[*jsonl.ReadError](got.err); !ok {
					t.Fatalf("cut at %d of the header's %d: %v", cut, first, got.err)
				}
			case atEnd:
				if got.err != nil || len(got.events) != whole || len(got.warnings) != 0 {
					t.Fatalf("cut behind a frame, at %d: %d events, %v, %v", cut, len(got.events), got.warnings, got.err)
				}
			case strict:
				if _, ok := errors.AsType[*jsonl.ReadError](got.err); !ok {
					t.Fatalf("cut at %d: a strict reader says %v", cut, got.err)
				}
			default:
				if got.err != nil || len(got.warnings) != 1 || got.warnings[0].Kind != jsonl.TornFrame || got.warnings[0].Line != next || got.warnings[0].Index != int64(len(got.events)) {
					t.Fatalf("cut at %d: %+v, %v, want line %d", cut, got.warnings, got.err, next)
				}
			}
			for i, e := range got.events {
				if e.Seq != int64(i) {
					t.Fatalf("cut at %d: event %d has seq %d", cut, i, e.Seq)
				}
			}
		}
	}
}

func TestLinesBeforeACutInAFrameAreKept(t *testing.T) {
	// Incompressible enough for several blocks in one frame.
	var text strings.Builder
	text.WriteString(header)
	n := 3000
	for i := range n {
		fmt.Fprintf(&text, `{"type":"n","seq":%d,"time":1,"data":"%x"}`+"\n", i, uint64(i)*0x9e3779b97f4a7c15)
	}
	whole := compress(t, text.String())
	got := takeText(whole[:len(whole)-10], jsonl.Options{})
	if got.err != nil || len(got.events) == 0 || len(got.events) >= n || len(got.warnings) != 1 || got.warnings[0].Line != int64(len(got.events))+2 {
		t.Fatalf("%d events of %d, %+v, %v", len(got.events), n, got.warnings, got.err)
	}
}

func TestDamagedZstdIsNoTornTail(t *testing.T) {
	text := []byte(compress(t, header) + compress(t, strings.Repeat(note(0), 20)))
	tail := len(text) - 2 // in the checksum
	text[tail] ^= 0xff
	for _, strict := range []bool{false, true} {
		got := takeText(string(text), jsonl.Options{Strict: strict})
		if got.err == nil {
			t.Fatalf("strict %v: a wrong checksum is taken", strict)
		}
	}
	behind := compress(t, header+note(0)) + "garbage, long enough to be no cut magic"
	if got := takeText(behind, jsonl.Options{}); got.err == nil {
		t.Fatal("garbage behind a frame is taken")
	}
	if index, _ := place(takeText("\x28\xb5\x2f\xfd\x24\x10", jsonl.Options{}).err); index != -2 {
		t.Fatalf("a frame cut in the header names event %d", index)
	}
}

// A window of 2 GiB is asked for by six bytes; it is refused before anything is allocated.
func TestHugeWindowIsRefused(t *testing.T) {
	got := takeText("\x28\xb5\x2f\xfd\x00\xa8"+strings.Repeat("\x00", 50), jsonl.Options{})
	if _, ok := errors.AsType[*jsonl.ReadError](got.err); !ok {
		t.Fatalf("%v", got.err)
	}
}

func TestTheWriterCompresses(t *testing.T) {
	events := make([]event.Event, 1000)
	for seq := range events {
		events[seq] = event.Event{Type: "n", Seq: int64(seq), Data: []byte(`"much the same each time"`)}
	}
	h := event.Header{ID: "s"}
	plain := write(t, h, events, jsonl.WriterOptions{Compression: jsonl.None})
	if !strings.HasPrefix(plain, `{"type":"session"`) || plain != write(t, h, events, jsonl.WriterOptions{}) {
		t.Errorf("not plain: %.40q", plain)
	}
	packed := write(t, h, events, jsonl.WriterOptions{Compression: jsonl.Zstd})
	if !strings.HasPrefix(packed, "\x28\xb5\x2f\xfd") || len(packed) > len(plain)/5 {
		t.Errorf("%d bytes of %d, beginning with %.8q", len(packed), len(plain), packed)
	}
}

func TestProgressReachesTheSize(t *testing.T) {
	text := header + strings.Repeat(note(0), 10)
	for _, in := range []string{text, compress(t, text)} {
		r, err := jsonl.NewReader(strings.NewReader(in), jsonl.Options{Strict: true, Size: int64(len(in))})
		if err != nil {
			t.Fatal(err)
		}
		for range r.Events() {
		}
		if done, total := r.Progress(); done != int64(len(in)) || total != done {
			t.Errorf("%d of %d, want all %d", done, total, len(in))
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
