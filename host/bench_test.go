package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
	"github.com/foldhost/foldhost/host/launch"
	"github.com/foldhost/foldhost/internal/foldwire"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/unit"
)

// logLength is the log that the fold benchmarks fold.
const logLength = 100_000

// bareProcess starts a plugin without a host.
func bareProcess(b *testing.B, args ...string) *launch.Process {
	b.Helper()
	l, err := launch.New(launch.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(l.Close)
	p, err := l.Start(b.Context(), launch.Spec{Plugin: "bare", Path: wrong(b).Command, Args: args})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func perEvent(b *testing.B, events int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
	b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkFold folds a log of 100,000 events, in this process and through one, and what a unary call for each event and a bare stream would cost.
func BenchmarkFold(b *testing.B) {
	for _, c := range []struct {
		name  string
		every int
	}{{"last only", 1}, {"last only, 5 % of the log", 20}} {
		b.Run(c.name, func(b *testing.B) {
			h := openHost(b, plugs{"wrong": wrong(b, "only=sum")})
			s := imported(b, h, "s", logLength, c.every)
			value(b, h, s, "sum")
			for b.Loop() {
				if err := s.Detach(b.Context()); err != nil {
					b.Fatal(err)
				}
				value(b, h, s, "sum")
			}
			perEvent(b, logLength)
		})
	}
	b.Run("every change", func(b *testing.B) {
		h := openHost(b, plugs{"wrong": wrong(b, "only=sum")})
		s := imported(b, h, "s", logLength, 1)
		for b.Loop() {
			n := 0
			err := h.Projections(b.Context(), s, func(rs *registry.Session) error {
				for _, err := range rs.Changes(b.Context(), 0) {
					if err != nil {
						return err
					}
					n++
				}
				return nil
			})
			if err != nil || n < logLength/2 {
				b.Fatal(n, err)
			}
		}
		perEvent(b, logLength)
	})
	b.Run("in this process", func(b *testing.B) {
		h := host.New(host.Options{})
		b.Cleanup(func() { h.Close() })
		if _, err := h.Register("test", number("n")); err != nil {
			b.Fatal(err)
		}
		s := imported(b, h, "s", logLength, 1)
		for b.Loop() {
			if err := s.Detach(b.Context()); err != nil {
				b.Fatal(err)
			}
			value(b, h, s, "n")
		}
		perEvent(b, logLength)
	})
	b.Run("bare stream, 100 events a message", func(b *testing.B) {
		p := bareProcess(b, "bare")
		stream, err := p.Client().Fold(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		batch := unit.Batch{Cells: []unit.CellID{1}, Mode: unit.LastOnly}
		for i := range 100 {
			batch.Events = append(batch.Events, event.Event{Type: "step", Seq: int64(i), Time: 1, Data: fmt.Appendf(nil, `{"n":%d}`, i)})
		}
		for b.Loop() {
			done := make(chan error, 1)
			go func() {
				for range logLength / 100 {
					if _, err := stream.Recv(); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
			for i := range logLength / 100 {
				if err := stream.Send(foldwire.Batch(&batch, uint64(i), 1)); err != nil {
					b.Fatal(err)
				}
			}
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		}
		perEvent(b, logLength)
	})
	b.Run("a unary call for each event", func(b *testing.B) {
		p := bareProcess(b)
		client, r := p.Client(), &pluginproto.CallToolRequest{Tool: "stats", Arguments: []byte(`{"n":5}`)}
		for b.Loop() {
			if _, err := client.CallTool(b.Context(), r); err != nil {
				b.Fatal(err)
			}
		}
		perEvent(b, 1)
	})
}

// BenchmarkNotification is an append to the notification of the value that it changes, one at a time, through a process.
func BenchmarkNotification(b *testing.B) {
	h := openHost(b, plugs{"wrong": wrong(b, "only=count")})
	s := newSession(b, h, "s")
	heard := make(chan int64, 16)
	defer h.Registry().OnChange(func(c registry.Change) {
		if c.Kind == registry.KindValue {
			heard <- c.Seq
		}
	})()
	value(b, h, s, "count")
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		ev, err := s.Append(b.Context(), "step", json.RawMessage(`{"n":1}`), session.Intent{})
		if err != nil {
			b.Fatal(err)
		}
		for <-heard != ev.Seq {
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	unary := bareProcess(b)
	client, r := unary.Client(), &pluginproto.CallToolRequest{Tool: "stats", Arguments: []byte(`{"n":5}`)}
	var bare []time.Duration
	for range max(len(took), 200) {
		began := time.Now()
		if _, err := client.CallTool(b.Context(), r); err != nil {
			b.Fatal(err)
		}
		bare = append(bare, time.Since(began))
	}
	slices.Sort(bare)
	b.ReportMetric(float64(bare[len(bare)/2].Microseconds()), "unary-p50-µs")
}

// BenchmarkStartStop starts and stops many plugins at once, and says what an idle one costs the host.
func BenchmarkStartStop(b *testing.B) {
	for _, n := range []int{10, 50} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			p := plugs{}
			for i := range n {
				p[fmt.Sprint("p", i)] = wrong(b, fmt.Sprintf("prefix=p%d/", i), fmt.Sprintf("owns=p%d/thing", i))
			}
			var up, down time.Duration
			var goroutines, bytes float64
			for b.Loop() {
				before, heapBefore := runtime.NumGoroutine(), benchHeap()
				began := time.Now()
				h, err := host.Open(host.Options{Logger: slog.New(slog.DiscardHandler), Plugins: &host.PluginOptions{Dir: b.TempDir(), Config: &config.File{Plugins: p}}})
				if err != nil {
					b.Fatal(err)
				}
				if err := h.WaitPlugins(context.Background()); err != nil {
					b.Fatal(err)
				}
				up += time.Since(began)
				goroutines = float64(runtime.NumGoroutine()-before) / float64(n)
				bytes = float64(benchHeap()-heapBefore) / float64(n)
				began = time.Now()
				h.Close()
				down += time.Since(began)
			}
			b.ReportMetric(float64(up.Milliseconds())/float64(b.N), "up-ms")
			b.ReportMetric(float64(down.Milliseconds())/float64(b.N), "down-ms")
			b.ReportMetric(goroutines, "goroutines/plugin")
			b.ReportMetric(bytes/1024, "KiB/plugin")
		})
	}
}

func benchHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
