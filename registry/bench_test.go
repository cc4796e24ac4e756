package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
	"github.com/foldhost/foldhost/unit"
)

// number is a unit whose fold costs nothing, so that what is measured is the registry.
type number struct{}

func (number) Init() (unit.State, error) { return int64(-1), nil }
func (number) Apply(_ unit.State, ev *event.Event) (unit.State, bool, error) {
	return ev.Seq, true, nil
}
func (number) View(s unit.State) (json.RawMessage, error) {
	return json.RawMessage(fmt.Sprintf(`{"at":%d}`, s)), nil
}
func (number) Encode(s unit.State) (json.RawMessage, error) {
	return json.RawMessage(fmt.Sprint(s)), nil
}
func (number) Decode(raw json.RawMessage) (s unit.State, err error) {
	var n int64
	err = json.Unmarshal(raw, &n)
	return n, err
}

func numbers(n int, types ...string) (defs []unit.Definition) {
	for i := range n {
		defs = append(defs, unit.Definition{
			Key: fmt.Sprintf("n%d", i), StateSchema: json.RawMessage(`{"type":"integer"}`), ViewSchema: json.RawMessage(`{"type":"object"}`), Events: types, Inline: number{},
		})
	}
	return defs
}

func bare(b testing.TB, evs []event.Event, defs ...unit.Definition) *world {
	w := given(b, Options{}, evs...)
	w.log.page = 1000
	w.register("p", defs...)
	w.snapshot()
	return w
}

func BenchmarkPublishIdle(b *testing.B) {
	for _, n := range []int{0, 1, 64} {
		b.Run(fmt.Sprintf("%d-units", n), func(b *testing.B) {
			w := bare(b, nil, numbers(n, "mine")...)
			one := []event.Event{{Type: "other", Data: json.RawMessage("{}")}}
			ctx := context.Background()
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				one[0].Seq = i
				w.s.Publish(ctx, one)
			}
		})
	}
}

func BenchmarkPublishFolding12(b *testing.B) {
	for _, listening := range []bool{false, true} {
		b.Run(fmt.Sprintf("listening-%v", listening), func(b *testing.B) {
			w := bare(b, nil, numbers(12, "mine")...)
			if listening {
				defer w.r.OnChange(func(Change) {})()
			}
			ctx := context.Background()
			b.ReportAllocs()
			for i := int64(0); b.Loop(); i++ {
				w.s.Publish(ctx, []event.Event{{Type: "mine", Seq: i, Data: json.RawMessage("{}")}})
			}
		})
	}
}

func BenchmarkSnapshot12(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("%d-events", n), func(b *testing.B) {
			w := bare(b, events(many(n, "mine")...), numbers(12, "mine")...)
			b.ReportAllocs()
			for b.Loop() {
				if blk, err := w.s.Snapshot(context.Background()); err != nil || len(blk.Values) != 12 {
					b.Fatal(blk, err)
				}
			}
		})
	}
}

// A unit that names a type of 1 % of the events must cost a small part of one that folds them all.
func BenchmarkBuild100k(b *testing.B) {
	types := many(100_000, "other")
	for i := 0; i < len(types); i += 100 {
		types[i] = "mine"
	}
	evs := events(types...)
	for name, def := range map[string]unit.Definition{"1-percent": numbers(1, "mine")[0], "every": numbers(1)[0]} {
		b.Run(name, func(b *testing.B) {
			log := newTypedLog(evs)
			r := New(Options{})
			defer r.Close()
			if _, err := r.Register(Registrant{Plugin: "p"}, def); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				s := r.Attach(log, "", int64(len(evs))-1, Rows{})
				if blk, err := s.Snapshot(context.Background()); err != nil || len(blk.Values) != 1 {
					b.Fatal(blk, err)
				}
				s.Detach(false)
			}
		})
	}
}

// typedLog finds events by type without looking at the others, as the stores do.
type typedLog struct {
	*sampleLog
	byType map[string][]event.Event
}

func newTypedLog(evs []event.Event) *typedLog {
	l := &typedLog{sampleLog: newSampleLog("s", evs...), byType: map[string][]event.Event{}}
	for _, ev := range evs {
		l.byType[ev.Type] = append(l.byType[ev.Type], ev)
	}
	return l
}

func (l *typedLog) ReadPage(ctx context.Context, from, to int64, types []string) ([]event.Event, int64, error) {
	const page = 1000
	from0, evs := from, l.events
	if len(types) == 1 {
		evs = l.byType[types[0]]
	}
	lo := 0
	for hi := len(evs); lo < hi; {
		if mid := (lo + hi) / 2; evs[mid].Seq < from0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	end := lo
	for end < len(evs) && end-lo < page && evs[end].Seq < to {
		end++
	}
	if end-lo == page {
		return evs[lo:end], evs[end-1].Seq + 1, nil
	}
	return evs[lo:end], to, nil
}

func TestAnEventThatNobodyFoldsAllocatesNothing(t *testing.T) {
	for _, n := range []int{0, 1, 64} {
		w := given(t, Options{})
		w.register("p", numbers(n, "mine")...)
		p, _ := w.plugin("q", fakeplugin.Counter("remote", "mine"))
		w.append("mine")
		w.snapshot()
		before := p.Counts().Batches
		one := []event.Event{{Type: "other", Data: json.RawMessage("{}")}}
		got := testing.AllocsPerRun(100, func() {
			one[0].Seq = w.s.head + 1
			w.s.Publish(context.Background(), one)
		})
		if got != 0 {
			t.Errorf("%v allocations with %d units", got, n)
		}
		if after := p.Counts().Batches; after != before {
			t.Errorf("%d messages", after-before)
		}
	}
}

// What a look at all cells costs while 10,000 sessions are live.
func BenchmarkStats(b *testing.B) {
	r := New(Options{})
	b.Cleanup(r.Close)
	for _, def := range numbers(4, "mine") {
		if _, err := r.Register(Registrant{Plugin: "p"}, def); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 10_000 {
		s := r.Attach(newSampleLog(fmt.Sprint("s", i)), "", -1, Rows{})
		s.Publish(context.Background(), []event.Event{{Type: "mine", Data: json.RawMessage("{}")}})
	}
	b.ReportAllocs()
	for b.Loop() {
		if st := r.Stats(); st.Sessions != 10_000 || st.Busy > 0 || len(st.Units) != 4 {
			b.Fatalf("%+v", st)
		}
	}
}
