package surface_test

import (
	"slices"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/surface"
)

func BenchmarkAppend(b *testing.B) {
	m := surface.NewManager(0, nil)
	d := event.Draft{Event: event.Event{Type: event.UserMessage, Op: event.Append()}}
	b.ReportAllocs()
	for b.Loop() {
		p, err := m.Plan(&d)
		if err != nil {
			b.Fatal(err)
		}
		m.Apply(p)
		d.Seq++
	}
}

// BenchmarkReplace replaces fifty nodes of a surface of 100,000 after every fifty appends; an op is one event.
func BenchmarkReplace(b *testing.B) {
	const size, width, rounds = 100_000, 50, 200
	for _, where := range []struct {
		name string
		at   int // per cent of the surface
	}{{"head", 0}, {"middle", 50}, {"tail", 100}} {
		b.Run(where.name, func(b *testing.B) {
			full := make([]int64, size)
			for i := range full {
				full[i] = int64(i)
			}
			// The events are made once, over a surface of the same shape.
			var script []event.Draft
			nodes := slices.Clone(full)
			seq := int64(size)
			for range rounds {
				for range width {
					script = append(script, event.Draft{Event: event.Event{Type: event.UserMessage, Seq: seq, Op: event.Append()}})
					nodes = append(nodes, seq)
					seq++
				}
				i := (len(nodes) - width) * where.at / 100
				sources := slices.Clone(nodes[i : i+width])
				op := event.Replace(sources[0], sources[width-1])
				slices.Sort(sources)
				script = append(script, event.Draft{Event: event.Event{Type: event.UserMessage, Seq: seq, Op: op, Sources: sources}})
				nodes = slices.Replace(nodes, i, i+width, seq)
				seq++
			}
			var m *surface.Manager
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%len(script) == 0 {
					b.StopTimer()
					m, _ = surface.Restore(full, 0, size, nil)
					b.StartTimer()
				}
				p, err := m.Plan(&script[i%len(script)])
				if err != nil {
					b.Fatal(err)
				}
				m.Apply(p)
			}
		})
	}
}

func BenchmarkManySources(b *testing.B) {
	const n = 128_000
	sources := make([]int64, n)
	for i := range sources {
		sources[i] = int64(i)
	}
	reversed := slices.Clone(sources)
	slices.Reverse(reversed)
	for name, list := range map[string][]int64{"rising": sources, "falling": reversed} {
		b.Run(name, func(b *testing.B) {
			m := surface.NewManager(n, nil)
			d := event.Draft{Event: event.Event{Type: event.AssistantMessage, Seq: n, Op: event.Append(), Sources: list}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Plan(&d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkNodes(b *testing.B) {
	m := surface.NewManager(0, nil)
	d := event.Draft{Event: event.Event{Type: event.UserMessage, Op: event.Append()}}
	for range 100_000 {
		p, _ := m.Plan(&d)
		m.Apply(p)
		d.Seq++
		_ = m.Nodes()
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = m.Nodes()
	}
}
