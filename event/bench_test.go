package event_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
)

func todos(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"todos":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"content":"step %d: write the part that comes next","status":"pending","activeForm":"writing part %d"}`, i, i)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

// BenchmarkAccept is what an append of a todo/write with ten items pays for its data.
func BenchmarkAccept(b *testing.B) {
	raw := todos(10)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		data, err := event.Compact(raw, "$.data")
		if err != nil {
			b.Fatal(err)
		}
		if err := event.CheckShape(&event.Event{Type: "todo/write", Data: data}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckLossless(b *testing.B) {
	var keys bytes.Buffer
	for i := range 100_000 {
		fmt.Fprintf(&keys, `,"key%d":0`, i)
	}
	keys.Bytes()[0] = '{'
	keys.WriteByte('}')
	for _, c := range []struct {
		name string
		raw  []byte
	}{
		{"todos", todos(10)},
		{"text", []byte(`"` + strings.Repeat("plain text with a quote \\\" now and then; ", 1000) + `"`)},
		{"chinese", []byte(`"` + strings.Repeat("上下文修复", 1000) + `"`)},
		{"numbers", []byte("[" + strings.Repeat("12345,-1.5e10,", 1000) + "0]")},
		{"keys", keys.Bytes()},
		{"deep", []byte(nested(event.MaxDepth))},
		{"digits", []byte(strings.Repeat("0.", 1) + strings.Repeat("1", 1<<20))},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.raw)))
			b.ReportAllocs()
			for b.Loop() {
				if err := event.CheckLossless(c.raw, "$"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecodeDraft(b *testing.B) {
	for _, c := range []struct{ name, line string }{
		{"chunk", `{"type":"assistant/chunk","seq":1234,"time":1783352084735,"data":{"turn":1,"step":2,"chunk":{"type":"text-delta","index":0,"text":"hello"}}}`},
		{"message", `{"type":"user/message","seq":1,"time":2,"data":` + userMessage + `,"surfaceOp":"append","sourceEventSeqs":[0]}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			line := []byte(c.line)
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := event.DecodeDraft(line, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	e := event.Event{Type: "todo/write", Seq: 1234, Time: 1783352084735, Data: todos(10)}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = e.AppendJSON(buf[:0])
	}
}

func BenchmarkFingerprint(b *testing.B) {
	e := event.Event{Type: "turn/end", Seq: 1234, Time: 1783352084735, Data: json.RawMessage(`{"turn":1,"reason":{"kind":"completed"}}`)}
	b.ReportAllocs()
	for b.Loop() {
		_ = event.Fingerprint(&e)
	}
}

func BenchmarkCheckShape(b *testing.B) {
	e := event.Event{Type: event.ToolResult, Data: json.RawMessage(toolResult)}
	b.ReportAllocs()
	for b.Loop() {
		if err := event.CheckShape(&e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	raw := json.RawMessage(assistantMessage)
	b.ReportAllocs()
	for b.Loop() {
		if event.Lookup(raw, "message", "source", "model") == nil {
			b.Fatal("not found")
		}
	}
}

func BenchmarkEqual(b *testing.B) {
	same := todos(10)
	turned := bytes.ReplaceAll(same, []byte(`"pending","activeForm"`), []byte(`"pending" ,"activeForm"`))
	other := bytes.Replace(same, []byte("part 9"), []byte("part 8"), 1)
	var a, z json.RawMessage = []byte(`{"a":1,"b":` + string(same) + `}`), []byte(`{"b":` + string(same) + `,"a":1}`)
	for _, c := range []struct {
		name string
		a, b json.RawMessage
	}{{"bytes", same, bytes.Clone(same)}, {"spacing", same, turned}, {"different", same, other}, {"order", a, z}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = event.Equal(c.a, c.b)
			}
		})
	}
}
