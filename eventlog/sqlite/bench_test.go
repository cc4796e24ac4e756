package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// payload is the data of a chunk of a streamed answer, 300 bytes with its envelope.
var payload = fmt.Appendf(nil, `{"turn":12,"step":3,"chunk":{"type":"text-delta","index":0,"text":"%0190d"}}`, 7)

func chunk(seq int64) event.Event {
	return event.Event{Type: event.AssistantChunk, Seq: seq, Time: 1_700_000_000_000 + seq, Data: payload}
}

// BenchmarkAppend compares, one event an operation: a file that is written to and synced each time; the engine alone, which commits the same rows in groups of the same size;
// and appends, of one session after the other and of 64 at once.
func BenchmarkAppend(b *testing.B) {
	b.Run("file,group=1", func(b *testing.B) { benchFile(b, 1) })
	b.Run("engine,group=1", func(b *testing.B) { benchEngine(b, 1) })
	b.Run("store,sessions=1", func(b *testing.B) { benchAppend(b, 1, Full) })
	b.Run("file,group=64", func(b *testing.B) { benchFile(b, 64) })
	b.Run("engine,group=64", func(b *testing.B) { benchEngine(b, 64) })
	b.Run("store,sessions=64", func(b *testing.B) { benchAppend(b, 64, Full) })
	b.Run("store,relaxed,sessions=1", func(b *testing.B) { benchAppend(b, 1, Relaxed) })
	b.Run("store,relaxed,sessions=64", func(b *testing.B) { benchAppend(b, 64, Relaxed) })
}

func benchFile(b *testing.B, group int) {
	f, err := os.Create(filepath.Join(b.TempDir(), "file"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var buf []byte
	for n := 0; b.Loop(); n++ {
		ev := chunk(int64(n))
		buf = append(ev.AppendJSON(buf), '\n')
		if (n+1)%group > 0 {
			continue
		}
		if _, err := f.Write(buf); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		buf = buf[:0]
	}
}

func benchEngine(b *testing.B, group int) {
	s := reopen(b, b.TempDir(), Options{})
	for i := range group {
		create(b, s, fmt.Sprint("s", i))
	}
	w := s.writer
	typ, n, position := int64(1), 0, w.position
	err := w.between(func() error {
		for b.Loop() {
			if n%group == 0 {
				if err := run(w.st.begin); err != nil {
					return err
				}
			}
			log, seq := int64(n%group+1), int64(n/group)
			position++
			st := w.st.addEvent
			if err := run(st, position, log, seq, typ, int64(1_700_000_000_000), payload, []byte(nil), int64(n*7919)); err != nil {
				return err
			}
			if err := run(w.st.moveHead, log, seq+1, position, int64(1_700_000_000_000), int64(n*7919)); err != nil {
				return err
			}
			if n++; n%group == 0 {
				if err := run(w.st.commit); err != nil {
					return err
				}
				w.fold()
			}
		}
		if n%group > 0 {
			return run(w.st.commit)
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	w.position = position
}

func benchAppend(b *testing.B, sessions int, d Durability) {
	s := reopen(b, b.TempDir(), Options{Durability: d})
	for i := range sessions {
		create(b, s, fmt.Sprint("s", i))
	}
	groups := s.groups.Load()
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			batch := eventlog.Batch{Life: eventlog.Life{ID: fmt.Sprint("s", i)}, Events: make([]event.Event, 1)}
			for seq := int64(0); left.Add(-1) >= 0; seq++ {
				batch.Events[0] = chunk(seq)
				if _, err := s.Append(nowhere, batch); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/float64(s.groups.Load()-groups), "events/commit")
}

// filled is a store with one log of n events, one in a hundred of them a turn's start.
func filled(b *testing.B, n int64) (s *Store, dir string) {
	b.Helper()
	dir = b.TempDir()
	s = reopen(b, dir, Options{})
	_, err := s.Create(nowhere, eventlog.Creation{Header: event.Header{ID: "a"}, Events: func(yield func(event.Event, error) bool) {
		for seq := range n {
			ev := chunk(seq)
			if seq%100 == 0 {
				ev.Type = event.TurnStart
			}
			if !yield(ev, nil) {
				return
			}
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	return s, dir
}

func BenchmarkRead(b *testing.B) {
	s, _ := filled(b, 100_000)
	for _, c := range []struct {
		name  string
		types []string
		from  int64
	}{{"all of 100000", nil, 0}, {"1 of 100, by type", []string{event.TurnStart}, 0}, {"the last 20", nil, 99_980}, {"none, by type", []string{"never"}, 0}} {
		b.Run(c.name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				for _, err := range eventlog.Scan(nowhere, s, eventlog.Query{Life: eventlog.Life{ID: "a"}, From: c.from, Types: c.types}) {
					if err != nil {
						b.Fatal(err)
					}
					n++
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkOpen opens a store and asks for the head of its one log.
func BenchmarkOpen(b *testing.B) {
	for _, n := range []int64{100, 100_000} {
		b.Run(fmt.Sprint("events=", n), func(b *testing.B) {
			s, dir := filled(b, n)
			closeStore(b, s)
			for b.Loop() {
				s, err := Open(nowhere, dir, Options{})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.Info(nowhere, "a"); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				closeStore(b, s)
				b.StartTimer()
			}
		})
	}
}

// BenchmarkCreate makes a log of 10,000 events, as an import does, and says how many bytes an event takes on disk beside those of its line in a log.
func BenchmarkCreate(b *testing.B) {
	const n = 10_000
	s := reopen(b, b.TempDir(), Options{})
	line := 0
	for i := 0; b.Loop(); i++ {
		_, err := s.Create(nowhere, eventlog.Creation{Header: event.Header{ID: fmt.Sprint("s", i)}, Events: func(yield func(event.Event, error) bool) {
			for seq := range int64(n) {
				ev := chunk(seq)
				if line == 0 {
					line = ev.EncodedSize() + 1
				}
				if !yield(ev, nil) {
					return
				}
			}
		}})
		if err != nil {
			b.Fatal(err)
		}
	}
	st, err := s.Stats(nowhere)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(st.Events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(st.Bytes)/float64(st.Events)/float64(line), "bytes/line")
}
