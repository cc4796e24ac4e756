package registry

import (
	"testing"
	"testing/synctest"

	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
)

// variants is a world with a second session, of the set "other", whose only member is the variant v of p.
func variants(t *testing.T) (*world, *Session) {
	w := given(t, Options{})
	w.r.SetMembers("other", []Registrant{{Plugin: "p", Variant: "v"}})
	s := w.r.Attach(w.log, "other", w.log.head(), Rows{Session: w.log.ID(), Incarnation: w.log.Incarnation()})
	t.Cleanup(func() { s.Detach(false) })
	return w, s
}

// Given two variants of a plugin of which one is upgraded, then both serve, each its own set: they are never in one.
func TestVariantsOfAPluginMayDifferInTheirVersions(t *testing.T) {
	w, other := variants(t)
	plain := w.register("p", fakeplugin.Counter("n", "a"))[0]
	v, err := w.r.Register(Registrant{"p", "v"}, fakeplugin.Version(fakeplugin.Last("n", "a"), 2))
	if err != nil {
		t.Fatal(err)
	}
	w.append("a")
	other.Publish(t.Context(), w.log.events)
	w.values(0, "n", "1")
	block, err := other.Snapshot(t.Context())
	if err != nil || string(block.Values["n"]) == "1" || len(block.Values) != 1 {
		t.Errorf("the other set: %s, %v", block.Values, err)
	}
	if err := w.r.Replace(plain, fakeplugin.Version(fakeplugin.Counter("n", "a"), 2)); err != nil {
		t.Errorf("the first follows: %v", err)
	}
	if _, err := w.r.Register(Registrant{Plugin: "q"}, fakeplugin.Counter("n", "a")); err == nil {
		t.Error("another plugin has another version")
	}
	v.Release()
}

// A key that is there already and comes to another set is told, and so is one that leaves a set and stays in another.
func TestWhatASetGainsAndLosesIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := variants(t)
		e := w.listen()
		w.register("p", fakeplugin.Counter("n", "a"))
		synctest.Wait()
		same(t, "the default set has it", e.take(), "added n")
		g, err := w.r.Register(Registrant{"p", "v"}, fakeplugin.Counter("n", "a"))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		same(t, "the other has it too", e.take(), "added n")
		g.Release()
		synctest.Wait()
		same(t, "the other has it no more", e.take(), "gone n")
	})
}

func TestANameThatWasGivenMembersIsDeclared(t *testing.T) {
	w, _ := variants(t)
	w.r.SetMembers("empty", nil)
	for name, want := range map[string]bool{"other": true, "empty": true, "": false, "never heard of": false} {
		if got := w.r.Declared(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
