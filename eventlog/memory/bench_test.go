package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/memory"
)

var small = json.RawMessage(`{"turn":1,"step":2,"chunk":{"type":"text-delta","index":0,"text":"hello"}}`)

func create(b testing.TB, s *memory.Store, id string) {
	b.Helper()
	if _, err := s.Create(context.Background(), eventlog.Creation{Header: event.Header{ID: id}}); err != nil {
		b.Fatal(err)
	}
}

// filled returns a store with one log of n events, one in a thousand of them rare.
func filled(b testing.TB, n int64) *memory.Store {
	b.Helper()
	s := memory.New()
	create(b, s, "a")
	for seq := range n {
		ev := event.Event{Type: event.AssistantChunk, Seq: seq, Data: small}
		if seq%1000 == 500 {
			ev.Type = "rare"
		}
		if _, err := s.Append(b.Context(), eventlog.Batch{Life: eventlog.Life{ID: "a"}, Events: []event.Event{ev}}); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

func BenchmarkAppend(b *testing.B) {
	s := memory.New()
	create(b, s, "a")
	batch := eventlog.Batch{Life: eventlog.Life{ID: "a"}, Events: []event.Event{{Type: event.AssistantChunk, Data: small}}}
	b.ReportAllocs()
	for seq := int64(0); b.Loop(); seq++ {
		batch.Events[0].Seq = seq
		if _, err := s.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendParallelLogs(b *testing.B) {
	s := memory.New()
	var ids atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		id := fmt.Sprint(ids.Add(1))
		create(b, s, id)
		batch := eventlog.Batch{Life: eventlog.Life{ID: id}, Events: []event.Event{{Type: event.AssistantChunk, Data: small}}}
		for seq := int64(0); pb.Next(); seq++ {
			batch.Events[0].Seq = seq
			if _, err := s.Append(b.Context(), batch); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkRead1000of100000(b *testing.B) {
	s := filled(b, 100_000)
	b.ReportAllocs()
	for b.Loop() {
		page, err := s.Read(b.Context(), eventlog.Query{Life: eventlog.Life{ID: "a"}, From: 50_000})
		if err != nil || len(page.Events) != 1000 {
			b.Fatal(len(page.Events), err)
		}
	}
}

func BenchmarkReadRare100of100000(b *testing.B) {
	s := filled(b, 100_000)
	b.ReportAllocs()
	for b.Loop() {
		page, err := s.Read(b.Context(), eventlog.Query{Life: eventlog.Life{ID: "a"}, Types: []string{"rare", "never"}})
		if err != nil || len(page.Events) != 100 {
			b.Fatal(len(page.Events), err)
		}
	}
}

func BenchmarkTail1000of100000(b *testing.B) {
	s := filled(b, 100_000)
	b.ReportAllocs()
	for b.Loop() {
		page, err := s.Tail(b.Context(), eventlog.TailQuery{After: 50_000})
		if err != nil || len(page.Events) != 1000 {
			b.Fatal(len(page.Events), err)
		}
	}
}

// BenchmarkMemory reports what 100,000 small events take beside their data.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		s := filled(b, 100_000)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/100_000, "B/event")
		runtime.KeepAlive(s)
	}
}
