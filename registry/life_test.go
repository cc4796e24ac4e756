package registry

import (
	"testing"

	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
)

// deleted ends the life of the session, and another one of these events becomes live.
func (w *world) deleted(types ...string) {
	w.r.Deleted("s")
	w.s.Detach(true)
	w.r.Deleted("s")
	w.log = newSampleLog("s", events(types...)...)
	w.log.incarnation = "s.2"
	w.gatedLog = &gatedLog{sampleLog: w.log}
	w.attach(Rows{})
}

func TestALaterLifeIsNewerThanAnyBefore(t *testing.T) {
	w := given(t, Options{}, events("a", "a", "a")...)
	w.register("p", fakeplugin.Counter("n", "a"))
	w.plugin("q", fakeplugin.Counter("m", "a"))
	w.r.SetMembers("preset", []Registrant{{Plugin: "p"}})
	before := w.values(2, "n", "3", "m", "3")
	other := newSampleLog("other", events("a")...)
	there := w.r.Attach(other, "", 0, Rows{})
	defer there.Detach(false)
	untouched, err := there.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	w.deleted("a")
	after := w.values(0, "n", "1", "m", "1")
	for key := range before.Revs {
		if after.Revs[key] <= before.Revs[key] {
			t.Errorf("%s has revision %d, and %d in the life before", key, after.Revs[key], before.Revs[key])
		}
	}

	// In the same life nothing goes back, whoever computes and whether it is live.
	w.s.Detach(false)
	mark := w.r.Mark("s")
	for _, set := range []string{"", "preset"} {
		cold, _, err := w.r.RestoreFrom(t.Context(), set, Rows{}, w.gatedLog, 0)
		if err != nil {
			t.Fatal(err)
		}
		mark.Stamp(&cold)
		if cold.Revs["n"] != after.Revs["n"] {
			t.Errorf("cold in the set %q, n has revision %d, and %d live", set, cold.Revs["n"], after.Revs["n"])
		}
	}
	w.attach(Rows{})
	if again := w.snapshot(); again.Revs["n"] != after.Revs["n"] {
		t.Errorf("live again, n has revision %d after %d", again.Revs["n"], after.Revs["n"])
	}

	// Another session does not notice, in general.
	if w.r.ends.of("s") != w.r.ends.of("other") {
		if b, err := there.Snapshot(t.Context()); err != nil || b.Revs["n"] != untouched.Revs["n"] {
			t.Errorf("n of another session has revision %d after %d (%v)", b.Revs["n"], untouched.Revs["n"], err)
		}
	}
}

// A read says what it found, however late: of the life before it is older than anything of the next one.
func TestAReadIsOfTheLifeInWhichItBegan(t *testing.T) {
	w := given(t, Options{})
	g := w.register("p", fakeplugin.Counter("n", "a"))[0]
	mark := w.r.Mark("s")
	w.deleted("a")
	next := w.snapshot()
	g.binding().raise(w.r.revs.Add(1)) // as by a recovery in another session
	late, _, err := w.r.RestoreFrom(t.Context(), "", Rows{}, newSampleLog("s"), -1)
	if err != nil {
		t.Fatal(err)
	}
	mark.Stamp(&late)
	if late.Revs["n"] >= next.Revs["n"] {
		t.Errorf("what was read of the life before has revision %d, and the life after it %d", late.Revs["n"], next.Revs["n"])
	}
}
