package registry

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
	"github.com/foldhost/foldhost/unit"
)

// What comes and goes leaves nothing behind, however often.

func TestChurnOfRegistrationsLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		p := w.fake(fakeplugin.Counter("n", "a"))
		for i := range 1000 {
			g := w.register(fmt.Sprint("p", i%7), p.Definition("n"))[0]
			if i%3 == 0 {
				w.append("a")
				w.snapshot()
			}
			if i%5 == 0 {
				g.Resume(p.Start())
			}
			g.Release()
		}
		synctest.Wait()
		w.append("b")
		w.r.mu.Lock()
		defer w.r.mu.Unlock()
		w.s.mu.Lock()
		defer w.s.mu.Unlock()
		if len(w.r.procs) != 0 || len(w.r.units) != 0 || len(w.s.lanes) != 0 || len(w.s.slots) != 0 {
			t.Errorf("left: %d processes, %d units, %d lanes, %d slots", len(w.r.procs), len(w.r.units), len(w.s.lanes), len(w.s.slots))
		}
	})
}

func TestChurnOfSessionsAndTheirSetsLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{})
		p := fakeplugin.New(fakeplugin.Counter("n", "a"))
		defer p.Close()
		defer r.Close()
		register(t, r, "p", p.Definitions()...)
		for i := range 1000 {
			log := newSampleLog(fmt.Sprint("s", i), events("a")...)
			s := r.Attach(log, fmt.Sprint("set", i), 0, Rows{})
			if _, err := s.Snapshot(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.ViewRows(fmt.Sprint("cold", i), Rows{})
			s.Detach(false)
		}
		synctest.Wait()
		if len(r.sessions) != 0 || len(r.sets) != 0 {
			t.Errorf("left: %d sessions, %d sets", len(r.sessions), len(r.sets))
		}
		if n := p.Process().Cells(); n != 0 {
			t.Errorf("%d cells are left in the process", n)
		}
	})
}

func TestAReplacedDefinitionIsNoConvictAnyMore(t *testing.T) {
	w := given(t, Options{})
	g := w.register("p", fakeplugin.Counter("n", "a"))[0]
	k := poisonKey{session: "s", incarnation: "s.1", b: g.binding()}
	w.r.poison.death(k, poisonFlight{careful: true, reason: "it died"}, true)
	g.Release()
	if n := len(w.r.poison.records); n != 0 {
		t.Errorf("%d records of a definition that is gone", n)
	}
}

// incomparable is an instance that Go cannot compare, although its type says that it can.
type incomparable struct {
	unit.Instance
	also any
}

func TestAnInstanceNeedNotBeComparable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		p := w.fake(fakeplugin.Counter("n", "a"))
		def := p.Definition("n")
		def.Instance = incomparable{def.Instance, func() {}}
		g := w.register("p", def)[0]
		w.append("a")
		w.values(0, "n", "1")
		g.Resume(incomparable{p.Start(), func() {}})
		w.append("a")
		w.values(1, "n", "2")
		g.Release()
		w.values(1)
	})
}

func TestANameThatGetsMembersTakesItsSessionsAlong(t *testing.T) {
	r := New(Options{})
	defer r.Close()
	register(t, r, "p", fakeplugin.Counter("n", "a"))
	register(t, r, "q", fakeplugin.Counter("m", "a"))
	s := r.Attach(newSampleLog("s"), "mine", -1, Rows{})
	other := r.Attach(newSampleLog("o"), "other", -1, Rows{})
	r.SetMembers("mine", []Registrant{{Plugin: "q"}})
	for s, want := range map[*Session]int{s: 1, other: 2} {
		if b, err := s.Snapshot(context.Background()); err != nil || len(b.Values) != want {
			t.Errorf("%s has %s, %v, want %d keys", s.id, b.Values, err, want)
		}
	}
}

func TestAnIdleSessionKnowsANewKeyWhenItIsAskedAndWhenItHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{}, events("a")...)
		w.snapshot()
		e := w.listen()
		w.register("p", fakeplugin.Counter("n", "a"))
		w.append("a")
		synctest.Wait()
		same(t, "feed", e.take(), "added n", "s n@1=2")
		w.register("p", fakeplugin.Constant("c", "7"))
		if b := w.values(1, "n", "2", "c", "7"); b.Gen != w.r.gen {
			t.Errorf("generation %d, want %d", b.Gen, w.r.gen)
		}
	})
}

// A new key costs nothing for each live session: they look by themselves.
func BenchmarkRegister100(b *testing.B) {
	for _, n := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("%d-sessions", n), func(b *testing.B) {
			p := fakeplugin.New(fakeplugin.Counter("remote"))
			defer p.Close()
			for b.Loop() {
				b.StopTimer()
				r := New(Options{})
				for i := range n {
					r.Attach(newSampleLog(fmt.Sprint("s", i)), "", -1, Rows{})
				}
				b.StartTimer()
				for _, d := range numbers(100, "mine") {
					d.Inline, d.Instance = nil, p.Process()
					if _, err := r.Register(Registrant{Plugin: "p"}, d); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				r.Close()
				b.StartTimer()
			}
		})
	}
}
