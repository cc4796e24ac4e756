// Package bench measures what docs/performance.md claims. Each measurement is a function that both `go test -bench` and tools/bench
// run, so that there is one way to measure a thing. It holds no product code and asserts nothing about time.
package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/plugins/todo/todounit"
	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/surface"
	"github.com/foldhost/foldhost/unit"
)

// Append measures the append of a small event that no unit folds, with so many units registered and their cells live. An operation is one append.
func Append(units int) func(*testing.B) {
	return func(b *testing.B) {
		h := newHost(b, nil, counters(units, "counted")...)
		s := newSession(b, h, "s")
		snapshot(b, h, s)
		data := json.RawMessage(`{"n":1}`)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Append(b.Context(), "note", data, session.Intent{}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// AppendFolded is Append of an event that every one of the units folds.
func AppendFolded(units int) func(*testing.B) {
	return func(b *testing.B) {
		h := newHost(b, nil, counters(units, "note")...)
		s := newSession(b, h, "s")
		snapshot(b, h, s)
		data := json.RawMessage(`{"n":1}`)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Append(b.Context(), "note", data, session.Intent{}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// Snapshot measures a snapshot of 12 units of a live session with so many events. An operation is one snapshot.
func Snapshot(events int) func(*testing.B) {
	return func(b *testing.B) {
		store := newLog(b, events)
		h := newHost(b, store, counters(12, "todo/write")...)
		s, err := h.Sessions().Open(b.Context(), "log")
		if err != nil {
			b.Fatal(err)
		}
		snapshot(b, h, s)
		b.ReportAllocs()
		for b.Loop() {
			snapshot(b, h, s)
		}
	}
}

// Acceptance measures the rules of JSON, of shapes and of the surface for a todo/write of ten items, without a log. An operation is one event.
func Acceptance(b *testing.B) {
	raw := tenTodos()
	m := surface.NewManager(0, nil)
	b.ReportAllocs()
	b.SetBytes(int64(len(raw)))
	seq := int64(0)
	for b.Loop() {
		data, err := event.Compact(raw, "$.data")
		if err != nil {
			b.Fatal(err)
		}
		d := event.Draft{Event: event.Event{Type: todounit.WriteType, Seq: seq, Data: data}}
		if err := event.CheckShape(&d.Event); err != nil {
			b.Fatal(err)
		}
		plan, err := m.Plan(&d)
		if err != nil {
			b.Fatal(err)
		}
		m.Apply(plan)
		seq++
	}
}

// Place says where replacements of a surface happen.
type Place int

// The places: where compaction of tool results, of a middle part and of old history happens.
const (
	Nowhere Place = iota
	Tail
	Middle
	Head
)

// Surface measures a surface. Nowhere: 100,000 appends to an empty one. Else: 100,000 events upon 100,000 nodes, of which every hundredth replaces 50
// nodes at a place. An operation is the 100,000 events; ns/event is the share of one.
func Surface(place Place) func(*testing.B) {
	const n, replaced = 100_000, 50
	return func(b *testing.B) {
		message := json.RawMessage(`{}`)
		sources := make([]int64, replaced)
		for b.Loop() {
			m := surface.NewManager(0, nil)
			step := func(op event.Op, sources []int64) {
				plan, err := m.Plan(&event.Draft{Event: event.Event{Type: event.UserMessage, Seq: m.Next(), Data: message, Op: op, Sources: sources}})
				if err != nil {
					b.Fatal(err)
				}
				m.Apply(plan)
			}
			if place != Nowhere {
				b.StopTimer()
				for range n {
					step(event.Append(), nil)
				}
				b.StartTimer()
			}
			// Nodes in a row that no replacement has touched: the last appends, or the next of the first 100,000.
			old := map[Place]int64{Middle: n / 2, Head: 0}[place]
			for i := range n {
				if place == Nowhere || i%100 != 99 {
					step(event.Append(), nil)
					continue
				}
				first := m.Next() - replaced
				if place != Tail {
					first, old = old, old+replaced
				}
				for k := range sources {
					sources[k] = first + int64(k)
				}
				step(event.Replace(first, first+replaced-1), sources)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/event")
	}
}

// BuildTodos measures building the cell of the todos unit from a stored log of 100,000 events of which 1 % are its own: starts of turns, and in each
// turn a list of ten items. An operation is one cell.
func BuildTodos(b *testing.B) {
	def, err := todounit.Projection.Definition()
	if err != nil {
		b.Fatal(err)
	}
	build(b, def)
}

// BuildOwn is BuildTodos for a unit that only counts those events, and BuildEverything for the same fold over all events: what differs is the
// filter alone.
func BuildOwn(b *testing.B)        { build(b, counter("own", []string{todounit.WriteType, event.TurnStart})) }
func BuildEverything(b *testing.B) { build(b, counter("every", nil)) }

// BuildTyped is BuildEverything for a unit written with the SDK, as an author would: each event is decoded into a type.
func BuildTyped(b *testing.B) {
	type payload struct {
		Turn  int `json:"turn"`
		Step  int `json:"step"`
		Chunk struct {
			Text string `json:"text"`
		} `json:"chunk"`
		Todos []struct {
			Content string `json:"content"`
		} `json:"todos"`
	}
	def, err := sdk.ProjectionDefinition[int, int]{
		Key: "typed", StateVersion: 1,
		OnAny: sdk.On(func(n int, p payload) int { return n + len(p.Chunk.Text) + len(p.Todos) }),
		View:  sdk.Same[int],
	}.Definition()
	if err != nil {
		b.Fatal(err)
	}
	build(b, def)
}

func build(b *testing.B, def unit.Definition) {
	store := newLog(b, 100_000)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		h := newHost(b, store, def)
		s, err := h.Sessions().Open(b.Context(), "log")
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		snapshot(b, h, s)
		b.StopTimer()
		h.Close()
		b.StartTimer()
	}
}

// Open measures opening a stored session of 100,000 events and reading the values of the units that ship. An operation is one opening.
func Open(b *testing.B) {
	store := newLog(b, 100_000)
	defs := shipped(b)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		h := newHost(b, store, defs...)
		b.StartTimer()
		s, err := h.Sessions().Open(b.Context(), "log")
		if err != nil {
			b.Fatal(err)
		}
		snapshot(b, h, s)
		b.StopTimer()
		h.Close()
		b.StartTimer()
	}
}

// Heap measures the memory of live sessions of 100 events each, log included, with the cells of the units that ship. An operation is one
// session; bytes/session is its share of the heap.
func Heap(b *testing.B) {
	const sessions = 200
	for b.Loop() {
		h := newHost(b, nil, shipped(b)...)
		before := heap()
		for i := range sessions {
			s := newSession(b, h, fmt.Sprint("s", i))
			for n := range int64(100) {
				typ, data := logged(n)
				if _, err := s.Append(b.Context(), typ, data, session.Intent{}); err != nil {
					b.Fatal(err)
				}
			}
			snapshot(b, h, s)
		}
		after := heap()
		b.ReportMetric(float64(after-before)/sessions, "bytes/session")
		h.Close()
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// newHost composes a host over a store, nil for one in memory, that ends with the benchmark at the latest.
func newHost(b *testing.B, store eventlog.Store, defs ...unit.Definition) *host.Host {
	b.Helper()
	h := host.New(host.Options{Store: store, Logger: slog.New(slog.DiscardHandler), Session: session.Options{IdleAfter: -1}})
	b.Cleanup(func() { h.Close() })
	for _, def := range defs {
		if _, err := h.Register("bench", def); err != nil {
			b.Fatal(err)
		}
	}
	return h
}

func newSession(b *testing.B, h *host.Host, id string) *session.Session {
	b.Helper()
	s, err := h.Sessions().Create(b.Context(), session.New{Header: event.Header{ID: id}})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func snapshot(b *testing.B, h *host.Host, s *session.Session) {
	block, err := h.Snapshot(b.Context(), s)
	if err != nil {
		b.Fatal(err)
	}
	if len(block.Unavailable) > 0 {
		b.Fatalf("unavailable: %v", block.Unavailable)
	}
}

// newLog stores a log of n events, of which 1 % matter to the todos unit. Its store keeps no rows: what is built is built from the log, each time.
func newLog(b *testing.B, n int) eventlog.Store {
	b.Helper()
	store := memory.New()
	b.Cleanup(func() { store.Close() })
	_, err := store.Create(context.Background(), eventlog.Creation{Header: event.Header{ID: "log"}, Events: func(yield func(event.Event, error) bool) {
		for seq := range int64(n) {
			typ, data := logged(seq)
			if !yield(event.Event{Type: typ, Seq: seq, Time: 1000 + seq, Data: data}, nil) {
				return
			}
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	return withoutRows{store}
}

// logged is event seq of a log like those of agents: turns of 200 events, mostly chunks, each with a list of tasks.
func logged(seq int64) (string, json.RawMessage) {
	switch seq % 200 {
	case 0:
		return event.TurnStart, fmt.Appendf(nil, `{"turn":%d}`, 1+seq/200)
	case 100:
		return todounit.WriteType, tenTodos()
	}
	return event.AssistantChunk, fmt.Appendf(nil, `{"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"word %d "}}`, seq)
}

func tenTodos() json.RawMessage {
	var items []string
	for i := range 10 {
		items = append(items, fmt.Sprintf(`{"content":"step %d of the plan: look, change, test","status":"pending"}`, i))
	}
	return json.RawMessage(`{"todos":[` + strings.Join(items, ",") + `]}`)
}

// counters are n units that each count the events of one type.
func counters(n int, typ string) []unit.Definition {
	var defs []unit.Definition
	for i := range n {
		defs = append(defs, counter(fmt.Sprintf("count%d", i), []string{typ}))
	}
	return defs
}

func counter(key string, types []string) unit.Definition {
	number := json.RawMessage(`{"type":"integer"}`)
	return unit.Definition{Key: key, StateVersion: 1, StateSchema: number, ViewSchema: number, Events: types, Inline: counting{}}
}

// counting is the cheapest fold there is, so that a measurement shows what the host costs and not the unit.
type counting struct{}

func (counting) Init() (unit.State, error) { return int64(0), nil }
func (counting) Apply(s unit.State, _ *event.Event) (unit.State, bool, error) {
	return s.(int64) + 1, true, nil
}
func (counting) View(s unit.State) (json.RawMessage, error)   { return fmt.Appendf(nil, "%d", s), nil }
func (counting) Encode(s unit.State) (json.RawMessage, error) { return fmt.Appendf(nil, "%d", s), nil }
func (counting) Decode(raw json.RawMessage) (unit.State, error) {
	n, ok := event.Integer(raw)
	if !ok {
		return nil, fmt.Errorf("%s is not a count", raw)
	}
	return n, nil
}
