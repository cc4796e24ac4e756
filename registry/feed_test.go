package registry

import (
	"testing"

	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
)

func TestWhatADeletedSessionLeavesDoesNotBlockTheMailbox(t *testing.T) {
	m := &mailbox{wake: make(chan struct{}, 1), gone: make(chan struct{}), waiting: map[place]*post{}}
	for _, session := range []string{"a", "b", "a", "c"} {
		m.put(&post{change: Change{Session: session, Key: "n"}})
	}
	m.forget("a")
	for _, want := range []string{"b", "c"} {
		if p := m.take(); p == nil || p.change.Session != want {
			t.Fatalf("got %+v, want what session %s has", p, want)
		}
	}
	m.put(&post{change: Change{Session: "a", Key: "n"}})
	if p := m.take(); p == nil || p.change.Session != "a" {
		t.Errorf("got %+v; there may be another of its name", p)
	}
	if p := m.take(); p != nil || len(m.waiting) != 0 {
		t.Errorf("%+v is left, and %v", p, m.waiting)
	}
	m.stop()
	m.stop()
	m.put(&post{})
	m.put(&post{})
	if p := m.take(); p != nil || m.waiting != nil {
		t.Errorf("got %+v after the end", p)
	}
}

// Without a listener no view is computed for the feed.
func TestAListenerThatLeftCostsNothing(t *testing.T) {
	w := given(t, Options{})
	looks := 0
	d := fakeplugin.Counter("n", "a")
	f := d.Inline.(fakeplugin.Fold)
	f.Look = func(s string) string { looks++; return s }
	d.Inline = f
	w.register("p", d)
	stay, leave := w.r.OnChange(func(Change) {}), w.r.OnChange(func(Change) {})
	leave()
	leave()
	if !w.r.feed.listening() {
		t.Error("the one that stays does not listen any more")
	}
	stay()
	w.append("a", "a", "a")
	if looks != 0 || w.r.feed.listening() {
		t.Errorf("%d views were computed for nobody", looks)
	}
}
