package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/jsonl"
	"github.com/foldhost/foldhost/eventlog/sqlite"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/session"
)

// stocks are the stores that several measurements look at, each made once in a process. mu guards them.
var stocks struct {
	mu   sync.Mutex
	dirs map[string]string
}

// Clean removes what measurements have left on the disk for each other.
func Clean() error {
	stocks.mu.Lock()
	defer stocks.mu.Unlock()
	for _, dir := range stocks.dirs {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	stocks.dirs = nil
	return nil
}

// stock opens the store of a name, which fill makes when it is not there yet.
func stock(b *testing.B, name string, fill func(*sqlite.Store)) *sqlite.Store {
	b.Helper()
	stocks.mu.Lock()
	defer stocks.mu.Unlock()
	dir, made := stocks.dirs[name]
	if !made {
		var err error
		if dir, err = os.MkdirTemp("", "foldhost-bench-"); err != nil {
			b.Fatal(err)
		}
		if stocks.dirs == nil {
			stocks.dirs = map[string]string{}
		}
		stocks.dirs[name] = dir
	}
	store := openStore(b, dir)
	if !made {
		fill(store)
	}
	return store
}

// openStore opens a store that ends with the benchmark.
func openStore(b *testing.B, dir string) *sqlite.Store {
	b.Helper()
	store, err := sqlite.Open(context.Background(), dir, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { store.Close() })
	return store
}

// StoredAppend measures appends of a chunk to stored sessions, full sync, from so many goroutines that share so many sessions. An operation is one append; p50-ns is the median of what one
// takes.
func StoredAppend(sessions, appenders int) func(*testing.B) {
	return storedAppend(sessions, appenders, 0)
}

// storedAppend has each goroutine wait before each append.
func storedAppend(sessions, appenders int, pause time.Duration) func(*testing.B) {
	return func(b *testing.B) {
		h := newHost(b, openStore(b, b.TempDir()))
		var all []*session.Session
		for i := range sessions {
			all = append(all, newSession(b, h, fmt.Sprint("s", i)))
		}
		_, data := logged(1)
		var left atomic.Int64
		left.Store(int64(b.N))
		times := make([][]time.Duration, appenders)
		var working sync.WaitGroup
		b.ResetTimer()
		for i := range appenders {
			s := all[i%sessions]
			working.Go(func() {
				for left.Add(-1) >= 0 {
					time.Sleep(pause)
					begun := time.Now()
					if _, err := s.Append(context.Background(), event.AssistantChunk, data, session.Intent{}); err != nil {
						b.Error(err)
						return
					}
					times[i] = append(times[i], time.Since(begun))
				}
			})
		}
		working.Wait()
		b.StopTimer()
		b.ReportMetric(quantilesOf(slices.Concat(times...)).P50, "p50-ns")
	}
}

// longLog is a store with one log of n events and, once somebody has written them, fresh rows of the units that ship.
func longLog(b *testing.B, n int64) *sqlite.Store {
	b.Helper()
	return stock(b, fmt.Sprint("log of ", n), func(store *sqlite.Store) {
		create(b, store, "log", n)
		h := newHost(b, store, shipped(b)...)
		for {
			block, err := h.Values(context.Background(), "log")
			if err != nil {
				b.Fatal(err)
			}
			if len(block.Unavailable) == 0 {
				break
			}
		}
		if err := h.Close(); err != nil { // rows are written when it returns
			b.Fatal(err)
		}
	})
}

func create(b *testing.B, store eventlog.Store, id string, n int64) {
	b.Helper()
	_, err := store.Create(context.Background(), eventlog.Creation{Header: event.Header{ID: id}, Events: func(yield func(event.Event, error) bool) {
		for seq := range n {
			typ, data := logged(seq)
			if !yield(event.Event{Type: typ, Seq: seq, Time: 1_700_000_000_000 + 20*seq, Data: data}, nil) {
				return
			}
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
}

// withoutRows hides the rows of a store.
type withoutRows struct{ eventlog.Store }

// ColdValues measures reading the values of the units that ship of a session with so many events that is not live: from fresh rows, or from the log where there are none. An
// operation is one read.
func ColdValues(events int64, rows bool) func(*testing.B) {
	return func(b *testing.B) {
		var store eventlog.Store = longLog(b, events)
		if !rows {
			store = withoutRows{store}
		}
		h := newHost(b, store, shipped(b)...)
		b.ReportAllocs()
		for b.Loop() {
			block, err := h.Values(b.Context(), "log")
			if err != nil || len(block.Values) != 4 || len(block.Unavailable) > 0 {
				b.Fatalf("%v, %v", block, err)
			}
		}
	}
}

// OpenToAppend measures opening a cold session with so many events and appending to it, full sync. An operation is both; p50-ms is the median.
func OpenToAppend(events int64) func(*testing.B) {
	return func(b *testing.B) {
		store := longLog(b, events)
		h := newHost(b, store, shipped(b)...)
		_, data := logged(1)
		var times []time.Duration
		for b.Loop() {
			begun := time.Now()
			s, err := h.Sessions().Open(b.Context(), "log")
			if err == nil {
				_, err = s.Append(b.Context(), event.AssistantChunk, data, session.Intent{})
			}
			if err != nil {
				b.Fatal(err)
			}
			times = append(times, time.Since(begun))
			b.StopTimer()
			if err := s.Detach(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		slices.Sort(times)
		b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
	}
}

// ListPage measures a page of 50 sessions of 100,000, with the values that their rows have, wherever the page is. An operation is one page.
func ListPage(b *testing.B) {
	const sessions, page = 100_000, 50
	store := stock(b, "many logs", func(store *sqlite.Store) {
		together(sessions, func(i int) { create(b, store, fmt.Sprint("s", i), 3) })
		h := newHost(b, store, shipped(b)...)
		list, err := h.Sessions().List(b.Context(), eventlog.ListQuery{Limit: 500})
		if err != nil {
			b.Fatal(err)
		}
		together(len(list.Logs), func(i int) {
			if _, err := h.Values(context.Background(), list.Logs[i].Header.ID); err != nil {
				b.Error(err)
			}
		})
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
	})
	h := newHost(b, store, shipped(b)...)
	cursor := ""
	for b.Loop() {
		list, err := h.Sessions().List(b.Context(), eventlog.ListQuery{Limit: page, Cursor: cursor})
		if err != nil || len(list.Logs) == 0 {
			b.Fatalf("%d sessions, %v", len(list.Logs), err)
		}
		var ids []string
		for _, info := range list.Logs {
			ids = append(ids, info.Header.ID)
		}
		if _, err := h.ListValues(b.Context(), ids); err != nil {
			b.Fatal(err)
		}
		cursor = list.Cursor
	}
}

// together does n things, 64 at once.
func together(n int, f func(i int)) {
	var next atomic.Int64
	var working sync.WaitGroup
	for range 64 {
		working.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				f(int(i))
			}
		})
	}
	working.Wait()
}

// StoredHeap measures the memory of 10,000 stored sessions of 100 events each that are live and idle, with the cells of the units that ship. An operation is
// all of them; bytes/session is the share of one in the heap.
func StoredHeap(b *testing.B) {
	const sessions = 10_000
	store := stock(b, "live logs", func(store *sqlite.Store) {
		together(sessions, func(i int) { create(b, store, fmt.Sprint("s", i), 100) })
	})
	for b.Loop() {
		h := newHost(b, store, shipped(b)...)
		before := heap()
		together(sessions, func(i int) {
			s, err := h.Sessions().Open(context.Background(), fmt.Sprint("s", i))
			if err == nil {
				_, err = h.Snapshot(context.Background(), s)
			}
			if err != nil {
				b.Error(err)
			}
		})
		after := heap()
		b.ReportMetric(float64(after-before)/sessions, "bytes/session")
		h.Close()
	}
}

const exchanged = 50_000

// Import measures importing a log of 50,000 events, most of them chunks, from a file in the interchange form with one event a line. An operation is
// one import; disk/line is what the store takes on the disk, to the size of the file.
func Import(b *testing.B) {
	path := filepath.Join(b.TempDir(), "log.jsonl")
	size := writeLog(b, path)
	store := openStore(b, b.TempDir())
	h := newHost(b, store)
	n := 0
	for b.Loop() {
		log, err := host.OpenLog(b.Context(), path, host.LogOptions{})
		if err != nil {
			b.Fatal(err)
		}
		header := log.Header()
		header.ID = fmt.Sprint("s", n)
		s, err := h.Sessions().Import(b.Context(), header, log.Events())
		if err == nil {
			err = log.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Detach(b.Context()); err != nil {
			b.Fatal(err)
		}
		n++
		b.StartTimer()
	}
	b.ReportMetric(float64(b.N)*exchanged/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/exchanged, "ns/event")
	stats, err := store.Stats(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(stats.Bytes-stats.Free)/float64(n)/float64(size), "disk/line")
}

// Export measures exporting a stored log of 50,000 events with its chunks packed. An operation is one export.
func Export(b *testing.B) {
	store := stock(b, "exported", func(store *sqlite.Store) { create(b, store, "log", exchanged) })
	for b.Loop() {
		if n := export(b, store, io.Discard, jsonl.WriterOptions{}); n != exchanged {
			b.Fatalf("%d events", n)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/exchanged, "ns/event")
}

func export(b *testing.B, store eventlog.Store, out io.Writer, o jsonl.WriterOptions) (n int) {
	b.Helper()
	w, err := jsonl.NewWriter(out, event.Header{ID: "log"}, o)
	if err != nil {
		b.Fatal(err)
	}
	for ev, err := range eventlog.Scan(context.Background(), store, eventlog.Query{Life: eventlog.Life{ID: "log"}}) {
		if err == nil {
			err = w.Write(ev)
		}
		if err != nil {
			b.Fatal(err)
		}
		n++
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return n
}

// writeLog writes the log of Export to a file with one event a line, and gives its size.
func writeLog(b *testing.B, path string) int64 {
	b.Helper()
	store := stock(b, "exported", func(store *sqlite.Store) { create(b, store, "log", exchanged) })
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	export(b, store, f, jsonl.WriterOptions{Verbatim: true})
	info, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
	return info.Size()
}
