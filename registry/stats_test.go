package registry

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/foldhost/foldhost/event"
)

// figures are those of a key.
func (w *world) figures(key string) (st UnitStats, there bool) {
	for _, u := range w.r.Stats().Units {
		if u.Key == key {
			return u, true
		}
	}
	return st, false
}

// Given a unit that folds, when its definition is replaced, or another plugin or another config of it registers the same, then what was counted stays with its plugin; and it is
// forgotten with the last registration.
func TestCountsStayWithTheirPlugin(t *testing.T) {
	w := given(t, Options{})
	def := numbers(1, "mine")[0]
	reg, err := w.r.Register(Registrant{Plugin: "p"}, def)
	if err != nil {
		t.Fatal(err)
	}
	w.append("mine", "other", "mine")
	if u, _ := w.figures("n0"); u.Plugin != "p" || u.Folded != 2 || u.Behind != 0 || u.EventSeconds.Count != 1 {
		t.Errorf("%+v", u)
	}
	next := def
	next.StateVersion = 2
	if err := w.r.Replace(reg, next); err != nil {
		t.Fatal(err)
	}
	w.append("mine")
	for u, _ := w.figures("n0"); u.Folded < 5; u, _ = w.figures("n0") { // Two before, those two again for the new one, and one; the new one is built beside this.
		runtime.Gosched()
	}
	variant, err := w.r.Register(Registrant{Plugin: "p", Variant: "v"}, next)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(w.r.Stats().Units); n != 1 {
		t.Errorf("a variant counts apart: %d", n)
	}
	reg.Release()
	if u, there := w.figures("n0"); !there || u.Folded < 5 {
		t.Errorf("one of two is left: %+v", u)
	}
	variant.Release()
	if u, there := w.figures("n0"); there {
		t.Errorf("nobody is left: %+v", u)
	}
}

// A cell that is read from the log is behind until it has been; a page of it is one batch.
func TestACellThatIsBuiltIsBehind(t *testing.T) {
	var evs []event.Event
	for seq := range int64(10) {
		evs = append(evs, event.Event{Type: "mine", Seq: seq, Data: json.RawMessage("{}")})
	}
	w := given(t, Options{}, evs...)
	open := w.shut()
	w.register("p", numbers(1, "mine")...)
	w.append("mine")
	u, _ := w.figures("n0")
	if u.Behind != 1 || u.Lag != 11 || u.LagAge <= 0 || u.Oldest != u.LagAge {
		t.Errorf("while the log cannot be read: %+v", u)
	}
	open()
	w.snapshot()
	u, _ = w.figures("n0")
	if u.Behind != 0 || u.Lag != 0 || u.Oldest != 0 || u.Folded != 11 || u.BatchEvents.Sum != 11 || u.BatchSeconds.Count != u.BatchEvents.Count {
		t.Errorf("once it could: %+v", u)
	}
}
