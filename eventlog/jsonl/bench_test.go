package jsonl_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/jsonl"
)

func BenchmarkRead(b *testing.B) {
	var events []event.Event
	for seq := range int64(10_000) {
		e := chunk('t', seq, seq*30)
		if seq%50 == 0 {
			e = event.Event{Type: "note", Seq: seq, Data: fmt.Appendf(nil, `{"text":"%0200d"}`, seq)}
		}
		events = append(events, e)
	}
	for name, o := range map[string]jsonl.WriterOptions{"plain": {Verbatim: true}, "packed": {}, "zstd": {Compression: jsonl.Zstd}} {
		text := []byte(write(b, event.Header{ID: "s"}, events, o))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if got := take(bytes.NewReader(text), jsonl.Options{}); len(got.events) != len(events) {
					b.Fatal(got.err)
				}
			}
			b.ReportMetric(float64(b.N*len(events))/b.Elapsed().Seconds(), "events/s")
		})
		b.Run("write "+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				w, err := jsonl.NewWriter(io.Discard, event.Header{ID: "s"}, o)
				if err != nil {
					b.Fatal(err)
				}
				for _, e := range events {
					if err := w.Write(e); err != nil {
						b.Fatal(err)
					}
				}
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*len(events))/b.Elapsed().Seconds(), "events/s")
		})
	}
}
