package registry

import (
	"slices"
	"testing"

	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
)

// A log of any length costs the same memory: when there are too many states, every other one goes and the rest lie twice as far apart.
func TestAHistoryKeepsFewStatesFarApart(t *testing.T) {
	var h history
	if _, ok := h.best(100); ok {
		t.Error("an empty history has a state")
	}
	for seq := range int64(4*historyEvery*historyMax - 1) {
		if h.fold(1) {
			h.keep(past{seq: seq})
		}
		if len(h.rows) >= historyMax {
			t.Fatalf("%d states are kept", len(h.rows))
		}
	}
	if h.every != 4*historyEvery {
		t.Errorf("the states lie %d events apart", h.every)
	}
	var seqs []int64
	for _, r := range h.rows {
		seqs = append(seqs, r.seq)
	}
	// 16 that were 10,000 events apart became 8, those and 8 more became 8 again.
	var want []int64
	for n := range int64(historyMax - 1) {
		want = append(want, (n+1)*4*historyEvery-1)
	}
	if !slices.Equal(seqs, want) {
		t.Fatalf("states at %v, want %v", seqs, want)
	}
	for i, seq := range seqs {
		for _, at := range []int64{seq, seq + 1} {
			if got, ok := h.best(at); !ok || got.seq != seq {
				t.Errorf("the best at or below %d is %d, %v", at, got.seq, ok)
			}
		}
		got, ok := h.best(seq - 1)
		if i == 0 && ok || i > 0 && got.seq != seqs[i-1] {
			t.Errorf("the best below %d is %d, %v", seq, got.seq, ok)
		}
	}
}

// A read of the past begins at a state that the live cell left behind, whether it folded as events came or from the log.
func TestThePastBeginsAtAStateOfTheLiveCell(t *testing.T) {
	const n = historyEvery + 3
	evs := events(many(n, "a")...)
	for name, live := range map[string]func(w *world){
		"as they come": func(w *world) {
			w.log.append(evs...)
			w.s.Publish(t.Context(), evs)
		},
		"from the log": func(w *world) {
			w.s.Detach(false)
			w.log.append(evs...)
			w.attach(Rows{})
			w.snapshot()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := given(t, Options{})
			w.log.page = 1000
			w.register("p", fakeplugin.Counter("n", "a"))
			live(w)
			w.log.given = map[string]int{}
			b, err := w.s.SnapshotAt(t.Context(), n-2)
			if err != nil || string(b.Values["n"]) != "10002" {
				t.Errorf("%s, %+v, %v", b.Values, b.Unavailable, err)
			}
			if got := w.log.given["a"]; got != 2 {
				t.Errorf("%d events were read for it, want the two after the state", got)
			}
		})
	}
}

// What a live cell left behind counts for the definition that made it: a look that began before a replacement, or after, must not begin there.
func TestAStateOfAnotherDefinitionIsNoBeginningOfThePast(t *testing.T) {
	w := given(t, Options{})
	g := w.register("p", fakeplugin.Counter("n", "a"))[0]
	w.append("a", "a")
	w.values(1, "n", "2")
	before := g.binding()
	start := func(b *binding) *Row {
		t.Helper()
		row, err := w.s.startOf(t.Context(), &scratchCell{binding: b}, 1)
		if err != nil {
			t.Fatal(err)
		}
		return row
	}
	if row := start(before); row == nil || row.Seq != 1 || string(row.Val) != "2" {
		t.Errorf("the past begins at %+v", row)
	}
	for name, def := range map[string]func() *binding{
		"another version": func() *binding {
			if err := w.r.Replace(g, fakeplugin.Version(fakeplugin.Counter("n", "a"), 2)); err != nil {
				t.Fatal(err)
			}
			return before
		},
		"another definition": func() *binding {
			was := g.binding()
			if err := w.r.Replace(g, fakeplugin.Version(fakeplugin.Counter("n", "a", "b"), 2)); err != nil {
				t.Fatal(err)
			}
			return was
		},
	} {
		old := def()
		w.snapshot()
		if row := start(old); row != nil {
			t.Errorf("%s: the past begins at %+v of the next one", name, row)
		}
	}
}
