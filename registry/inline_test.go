package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
	"github.com/foldhost/foldhost/unit"
)

func TestASnapshotIsTheFoldOfThePrefix(t *testing.T) {
	w := given(t, Options{Epoch: "e.1"})
	w.register("a", fakeplugin.Last("marks", "mark"), fakeplugin.HostOnly(fakeplugin.Counter("count")))
	if b := w.values(-1, "marks", "null"); b.Epoch != "e.1" {
		t.Errorf("epoch is %q", b.Epoch)
	}
	w.data("mark", `["a"]`)
	w.data("mark", `["a","b"]`)
	w.values(1, "marks", `["a","b"]`)
	w.data("turn/start", `{}`)
	w.values(2, "marks", `["a","b"]`)
	raw, seq, err := w.s.StateOf(t.Context(), "count")
	if err != nil || string(raw) != "3" || seq != 2 {
		t.Errorf("count is %s at %d, %v", raw, seq, err)
	}
	if b := w.snapshot("nobody", "count"); len(b.Values) != 0 || b.AsOfSeq != 2 {
		t.Errorf("keys that are not registered or not visible came: %+v", b)
	}
	var unknown *UnknownKeyError
	if _, _, err := w.s.StateOf(t.Context(), "nobody"); !errors.As(err, &unknown) {
		t.Errorf("state of an unknown key: %v", err)
	}
}

func TestNoUnitsGiveAnEmptyBlock(t *testing.T) {
	w := given(t, Options{}, events("a", "b")...)
	w.values(1)
	w.append("c")
	w.values(2)
}

func TestTheFeedTellsEachChangeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		w.register("a", fakeplugin.Last("marks", "mark"), fakeplugin.HostOnly(fakeplugin.Counter("count")), fakeplugin.Constant("const", `7`))
		e := w.listen()
		w.data("mark", `["a"]`)
		w.append("turn/start")
		synctest.Wait()
		same(t, "after one mark", e.take(), `s marks@0=["a"]`)
		w.data("mark", `["a"]`)
		synctest.Wait()
		same(t, "after an equal value", e.take())
		w.data("mark", `["b"]`)
		synctest.Wait()
		same(t, "after another", e.take(), `s marks@3=["b"]`)
	})
}

func TestTheGateComparesWithTheViewOfInit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		w.register("a", fakeplugin.Last("marks", "mark"))
		e := w.listen()
		w.data("mark", `null`)
		synctest.Wait()
		same(t, "after a state whose view is init's", e.take())
	})
}

func TestAListenerThatComesLateHearsOnlyRealChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		w.register("a", fakeplugin.Last("marks", "mark"))
		w.data("mark", `1`)
		w.data("mark", `2`)
		e := w.listen()
		w.data("mark", `2`)
		w.data("mark", `3`)
		synctest.Wait()
		same(t, "changes", e.take(), "s marks@3=3")
	})
}

func TestSessionsAreIndependent(t *testing.T) {
	w := given(t, Options{})
	w.register("a", fakeplugin.Last("marks", "mark"))
	other := newSampleLog("o")
	o := w.r.Attach(other, "", -1, Rows{})
	w.data("mark", `"one"`)
	ev := event.Event{Type: "mark", Data: json.RawMessage(`"two"`)}
	other.append(ev)
	o.Publish(t.Context(), []event.Event{ev})
	w.values(0, "marks", `"one"`)
	b, err := o.Snapshot(t.Context())
	if err != nil || string(b.Values["marks"]) != `"two"` {
		t.Errorf("the other has %s, %v", b.Values["marks"], err)
	}
}

func TestAnEventCountsOnceWhateverTheOrderOfPublications(t *testing.T) {
	for name, publish := range map[string]func(w *world, evs []event.Event){
		"one by one": func(w *world, evs []event.Event) {
			for i := range evs {
				w.s.Publish(context.Background(), evs[i:i+1])
			}
		},
		"again and again": func(w *world, evs []event.Event) {
			for i := range evs {
				w.s.Publish(context.Background(), evs[:i+1])
			}
		},
		"with gaps": func(w *world, evs []event.Event) { w.s.Publish(context.Background(), evs[len(evs)-1:]) },
		"a gap, then it": func(w *world, evs []event.Event) {
			w.s.Publish(context.Background(), evs[5:])
			w.s.Publish(context.Background(), evs)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := given(t, Options{})
			inline, remote := fakeplugin.Chain("chain", "a", "b"), fakeplugin.Chain("remote", "b")
			w.register("a", inline)
			w.plugin("p", remote)
			w.append("a", "b")
			w.values(1, "chain", want(t, inline, w.log.events, 1), "remote", want(t, remote, w.log.events, 1))
			evs := events("a", "b", "x", "b", "b", "a", "x", "b", "a", "b")
			w.log.append(evs[2:]...)
			publish(w, evs)
			w.values(9, "chain", want(t, inline, evs, 9), "remote", want(t, remote, evs, 9))
		})
	}
}

func want(t testing.TB, def unit.Definition, evs []event.Event, seq int64) string {
	v, _ := folded(t, def, evs, seq)
	return v
}

func TestACellBuiltLateFoldsThePrefixAndThenTheEventOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var types []string
		for i := range 20 {
			types = append(types, []string{"a", "b"}[i%2])
		}
		w := given(t, Options{}, events(types...)...)
		def := fakeplugin.Chain("chain", "a")
		w.register("a", def)
		e := w.listen()
		w.append("x")
		w.append("a")
		synctest.Wait()
		same(t, "what the event caused", e.take(), "s chain@21="+want(t, def, w.log.events, 21))
		w.append("a")
		synctest.Wait()
		same(t, "what the next caused", e.take(), "s chain@22="+want(t, def, w.log.events, 22))
		w.values(22, "chain", want(t, def, w.log.events, 22))
		if n := w.log.given["b"] + w.log.given["x"]; n != 0 {
			t.Errorf("%d events were read that nobody folds", n)
		}
	})
}

func TestAReadTouchesSilently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{}, events("a", "a", "a")...)
		w.register("a", fakeplugin.Counter("n", "a"))
		e := w.listen()
		w.values(2, "n", "3")
		synctest.Wait()
		same(t, "changes of the prefix", e.take())
		w.append("a")
		synctest.Wait()
		same(t, "changes", e.take(), "s n@3=4")
	})
}

func TestAFailingUnitFailsForItsKeyAlone(t *testing.T) {
	for name, how := range map[string]func() (string, error){
		"error": func() (string, error) { return "", errors.New("no") },
		"panic": func() (string, error) { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := given(t, Options{})
				bad := fakeplugin.Counter("bad", "a")
				f := bad.Inline.(fakeplugin.Fold)
				on := f.On
				f.On = func(s string, ev *event.Event) (string, error) {
					if ev.Seq == 1 {
						return how()
					}
					return on(s, ev)
				}
				bad.Inline = f
				w.register("p", bad, fakeplugin.Counter("good", "a"))
				e := w.listen()
				w.append("a", "a", "a")
				synctest.Wait()
				b := w.values(2, "good", "3", "bad", "!faulted")
				if b.Unavailable["bad"].FailedAt != 1 {
					t.Errorf("faulted at %d", b.Unavailable["bad"].FailedAt)
				}
				if got := e.take(); len(got) == 0 || !contains(got, "s bad@0!faulted") || !contains(got, "s good@2=3") {
					t.Errorf("feed: %q", got)
				}
				rows, err := w.s.Checkpoint(t.Context())
				if _, ok := rows.Rows["bad"]; ok || err != nil || string(rows.Rows["good"].Val) != "3" {
					t.Errorf("rows %+v, %v", rows, err)
				}
			})
		})
	}
}

func contains(lines []string, want string) bool {
	for _, l := range lines {
		if l == want {
			return true
		}
	}
	return false
}

func TestAViewThatMustNotLeaveFaultsItsCell(t *testing.T) {
	for name, c := range map[string]struct {
		view func(state string) string
		max  int
	}{
		"against the schema": {func(s string) string { return `"` + s + `"` }, 0},
		"not JSON":           {func(s string) string { return `{` }, 0},
		"too large":          {func(s string) string { return "1000" }, 3},
	} {
		for _, reader := range []string{"feed", "snapshot"} {
			t.Run(name+" by "+reader, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := given(t, Options{MaxViewBytes: c.max})
					d := fakeplugin.Counter("n", "a")
					f := d.Inline.(fakeplugin.Fold)
					f.Look = func(s string) string {
						if s == "2" {
							return c.view(s)
						}
						return s
					}
					d.Inline = f
					w.register("p", d)
					if reader == "feed" {
						e := w.listen()
						w.append("a")
						synctest.Wait()
						w.append("a")
						synctest.Wait()
						same(t, "feed", e.take(), "s n@0=1", "s n@0!faulted")
						return
					}
					w.append("a", "a")
					if b := w.values(1, "n", "!faulted"); b.Unavailable["n"].FailedAt != 1 {
						t.Errorf("at %d", b.Unavailable["n"].FailedAt)
					}
				})
			})
		}
	}
}

func TestAWrongValueThatNobodyGetsHarmsNobody(t *testing.T) {
	w := given(t, Options{})
	d := fakeplugin.Counter("n", "a")
	f := d.Inline.(fakeplugin.Fold)
	f.Look = func(s string) string {
		if s == "1" {
			return `"wrong"`
		}
		return s
	}
	d.Inline = f
	w.register("p", d)
	w.append("a", "a")
	w.values(1, "n", "2")
}

func TestReleaseIsRefCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		e := w.listen()
		one := w.register("p", fakeplugin.Counter("n", "a"))[0]
		two := w.register("p", fakeplugin.Counter("n", "a"))[0]
		w.append("a")
		one.Release()
		one.Release()
		w.values(0, "n", "1")
		synctest.Wait()
		e.take()
		two.Release()
		w.values(0)
		synctest.Wait()
		same(t, "feed", e.take(), "gone n", "s n removed")
		w.append("a")
		w.register("p", fakeplugin.Counter("n", "a"))
		w.values(1, "n", "2")
	})
}

func TestOnlyVersionsConflict(t *testing.T) {
	w := given(t, Options{})
	g := w.register("p", fakeplugin.Counter("n"))[0]
	var conflict *VersionConflictError
	_, err := w.r.Register(Registrant{Plugin: "q"}, fakeplugin.Version(fakeplugin.Counter("n"), 9))
	if !errors.As(err, &conflict) || conflict.Key != "n" || conflict.Have != 1 || conflict.Want != 9 {
		t.Errorf("another version: %v", err)
	}
	var wrong *unit.DefinitionError
	if _, err := w.r.Register(Registrant{Plugin: "q"}, fakeplugin.Version(fakeplugin.Counter("m"), -1)); !errors.As(err, &wrong) || wrong.Rule != "state-version" {
		t.Errorf("version -1: %v", err)
	}
	h := w.register("q", fakeplugin.Last("n", "b"))[0]
	if err := w.r.Replace(g, fakeplugin.Version(fakeplugin.Counter("n"), 2)); !errors.As(err, &conflict) {
		t.Errorf("replacing while another plugin holds the old version: %v", err)
	}
	w.values(-1, "n", "0")
	h.Release()
	if err := w.r.Replace(g, fakeplugin.Version(fakeplugin.Counter("n"), 2)); err != nil {
		t.Errorf("replacing the only one: %v", err)
	}
	g.Release()
	if err := w.r.Replace(g, fakeplugin.Counter("n")); !errors.Is(err, ErrReleased) {
		t.Errorf("replacing a released one: %v", err)
	}
}

func TestTheFirstOfTheSetByNameComputes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		e := w.listen()
		w.register("b", fakeplugin.Prefixed("n", "B", "a"))
		w.data("a", `1`)
		before := w.values(0, "n", `{"by":"B","data":1}`)
		a := w.register("a", fakeplugin.Prefixed("n", "A", "a"))[0]
		after := w.values(0, "n", `{"by":"A","data":1}`)
		if after.Revs["n"] <= before.Revs["n"] || after.Gen <= before.Gen {
			t.Errorf("revision went from %d to %d, generation from %d to %d", before.Revs["n"], after.Revs["n"], before.Gen, after.Gen)
		}
		a.Release()
		last := w.values(0, "n", `{"by":"B","data":1}`)
		if last.Revs["n"] <= after.Revs["n"] {
			t.Errorf("revision went from %d to %d", after.Revs["n"], last.Revs["n"])
		}
		synctest.Wait()
		got := e.take()
		if len(got) == 0 || got[len(got)-1] != `s n@0={"by":"B","data":1}` {
			t.Errorf("feed: %q", got)
		}
		w.data("a", `2`)
		synctest.Wait()
		same(t, "feed", e.take(), `s n@1={"by":"B","data":2}`)
	})
}

func TestAnEqualValueKeepsItsRevisionAtATakeover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		a := w.register("a", fakeplugin.Counter("n", "a"))[0]
		w.register("b", fakeplugin.Counter("n", "a"))
		e := w.listen()
		w.append("a", "x")
		before := w.snapshot().Revs["n"]
		synctest.Wait()
		e.take()
		a.Release()
		if after := w.values(1, "n", "1").Revs["n"]; after != before {
			t.Errorf("revision went from %d to %d", before, after)
		}
		synctest.Wait()
		same(t, "feed", e.take())
		if w.log.pages != 0 {
			t.Errorf("the log was read %d times", w.log.pages)
		}
	})
}

func TestSetsSeeOnlyTheirMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(Options{})
		defer r.Close()
		reg := func(plugin, variant string, d unit.Definition) {
			if _, err := r.Register(Registrant{plugin, variant}, d); err != nil {
				t.Fatal(err)
			}
		}
		reg("limits", "", fakeplugin.Constant("limits", `1`))
		reg("limits", "b", fakeplugin.Constant("limits", `2`))
		reg("todo", "", fakeplugin.Counter("todos", "a"))
		r.SetMembers("B", []Registrant{{"limits", "b"}})
		def, b := r.Attach(newSampleLog("d"), "", -1, Rows{}), r.Attach(newSampleLog("b"), "B", -1, Rows{})
		check := func(s *Session, want string) {
			t.Helper()
			blk, err := s.Snapshot(t.Context())
			if got := fmt.Sprintf("%s", blk.Values); err != nil || got != want {
				t.Errorf("values %s, %v, want %s", got, err, want)
			}
		}
		check(def, "map[limits:1 todos:0]")
		check(b, "map[limits:2]")
		r.SetMembers("B", []Registrant{{"limits", ""}, {"todo", ""}})
		check(b, "map[limits:1 todos:0]")
		r.SetMembers("B", nil)
		check(b, "map[]")
		check(def, "map[limits:1 todos:0]")
	})
}

func TestReplaceServesTheOldValueUntilTheNewHasCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var types []string
		for range 30 {
			types = append(types, "a")
		}
		w := given(t, Options{}, events(types...)...)
		g := w.register("p", fakeplugin.Counter("n", "a"))[0]
		old := w.values(29, "n", "30")
		e := w.listen()
		open := w.shut()
		def := fakeplugin.Version(fakeplugin.Chain("n", "a"), 2)
		if err := w.r.Replace(g, def); err != nil {
			t.Fatal(err)
		}
		b, err := w.s.Snapshot(t.Context())
		if err != nil || string(b.Values["n"]) != "30" || b.Revs["n"] != old.Revs["n"] {
			t.Errorf("meanwhile %s rev %d, %v", b.Values["n"], b.Revs["n"], err)
		}
		open()
		synctest.Wait()
		now := w.values(29, "n", want(t, def, w.log.events, 29))
		if now.Revs["n"] <= old.Revs["n"] {
			t.Errorf("revision %d after %d", now.Revs["n"], old.Revs["n"])
		}
		same(t, "feed", e.take(), "replaced n", "s n@29="+want(t, def, w.log.events, 29))
	})
}

func TestCheckpointRowsAreDetachedAndSeedACell(t *testing.T) {
	w := given(t, Options{})
	marks, count := fakeplugin.Last("marks", "mark"), fakeplugin.Version(fakeplugin.HostOnly(fakeplugin.Counter("count")), 7)
	w.register("p", marks, count)
	rows, err := w.s.Checkpoint(t.Context())
	if err != nil || rows.Rows["marks"].Seq != -1 || string(rows.Rows["marks"].Val) != "null" || rows.Rows["marks"].Anchor != "" {
		t.Errorf("rows of an empty session: %+v, %v", rows, err)
	}
	w.data("mark", `["a"]`)
	rows, err = w.s.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m, c := rows.Rows["marks"], rows.Rows["count"]
	if m.Ver != 1 || m.Seq != 0 || string(m.Val) != `["a"]` || string(m.View) != `["a"]` || m.Anchor != event.Fingerprint(&w.log.events[0]) || m.Def == "" {
		t.Errorf("marks row %+v", m)
	}
	if c.Ver != 7 || c.Seq != 0 || string(c.Val) != "1" || c.View != nil {
		t.Errorf("count row %+v", c)
	}
	kept := append([]byte(nil), m.Val...)
	copy(m.Val, `["X"]`)
	w.values(0, "marks", `["a"]`)
	copy(m.Val, kept)

	w.append("x", "x")
	w.s.Detach(false)
	w.log.given = map[string]int{}
	w.attach(rows)
	w.values(2, "marks", `["a"]`)
	if w.log.given["mark"] != 1 {
		t.Errorf("read %v; only the event that the row stands on was needed", w.log.given)
	}
	raw, _, err := w.s.StateOf(t.Context(), "count")
	if err != nil || string(raw) != "3" {
		t.Errorf("count is %s, %v", raw, err)
	}
}

func TestARowInDoubtIsNoAuthority(t *testing.T) {
	evs := events("a", "a", "a", "a")
	def := fakeplugin.Counter("n", "a")
	c, err := unit.Compile(def)
	if err != nil {
		t.Fatal(err)
	}
	// The state is a lie, so that a row that is used shows.
	right := func() (Rows, *Row) {
		r := Row{Ver: 1, Def: c.Digest, Seq: 2, Val: json.RawMessage("100"), Anchor: event.Fingerprint(&evs[2])}
		return Rows{Session: "s", Incarnation: "s.1"}, &r
	}
	for name, c := range map[string]struct {
		spoil func(rows *Rows, r *Row)
		want  string
	}{
		"right":                 {func(*Rows, *Row) {}, "101"},
		"another version":       {func(_ *Rows, r *Row) { r.Ver = 2 }, "4"},
		"another definition":    {func(_ *Rows, r *Row) { r.Def = "x" }, "4"},
		"beyond the head":       {func(_ *Rows, r *Row) { r.Seq = 4 }, "4"},
		"another event there":   {func(_ *Rows, r *Row) { r.Anchor = event.Fingerprint(&evs[1]) }, "4"},
		"against the schema":    {func(_ *Rows, r *Row) { r.Val = json.RawMessage(`"x"`) }, "4"},
		"not JSON":              {func(_ *Rows, r *Row) { r.Val = json.RawMessage(`{`) }, "4"},
		"another incarnation":   {func(rows *Rows, _ *Row) { rows.Incarnation = "s.2" }, "4"},
		"another session":       {func(rows *Rows, _ *Row) { rows.Session = "t" }, "4"},
		"minus one, not init's": {func(_ *Rows, r *Row) { r.Seq = -1; r.Anchor = "" }, "4"},
	} {
		for _, where := range []string{"inline", "remote"} {
			t.Run(name+" "+where, func(t *testing.T) {
				rows, r := right()
				c.spoil(&rows, r)
				rows.Rows = map[string]Row{"n": *r}
				w := given(t, Options{}, evs...)
				w.s.Detach(false)
				if where == "inline" {
					w.register("p", def)
				} else {
					w.plugin("p", def)
				}
				w.attach(rows)
				w.values(3, "n", c.want)
			})
		}
	}
}

func TestABlockedListenerSlowsNobodyAndGetsTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		w.register("p", fakeplugin.Counter("n", "a"), fakeplugin.Counter("m", "b"))
		hold := make(chan struct{})
		var got []string
		defer w.r.OnChange(func(c Change) {
			got = append(got, line(c))
			<-hold
		})()
		quick := w.listen()
		w.append("a")
		synctest.Wait()
		for range 1000 {
			w.append("a")
		}
		w.append("b")
		synctest.Wait()
		if last := quick.changes(); last[len(last)-1].Key != "m" {
			t.Errorf("the quick one heard %v last", last[len(last)-1])
		}
		w.values(1001, "n", "1001", "m", "1")
		close(hold)
		synctest.Wait()
		same(t, "the slow one", got, "s n@0=1", "s n@1000=1001", "s m@1001=1")
	})
}

func TestAListenerMayPanicAndMayTakeItselfAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		w.register("p", fakeplugin.Counter("n", "a"))
		calls, removed := 0, 0
		defer w.r.OnChange(func(Change) { calls++; panic("no") })()
		var remove func()
		remove = w.r.OnChange(func(Change) { removed++; remove() })
		for range 3 {
			w.append("a")
			synctest.Wait()
		}
		if calls != 3 || removed != 1 {
			t.Errorf("the panicking one was called %d times, the other %d", calls, removed)
		}
	})
}

func TestRetryFoldsAFaultedKeyAgainUnderANewRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		sick := true
		d := fakeplugin.Counter("n", "a")
		f := d.Inline.(fakeplugin.Fold)
		on := f.On
		f.On = func(s string, ev *event.Event) (string, error) {
			if sick && ev.Seq == 1 {
				return "", errors.New("no")
			}
			return on(s, ev)
		}
		d.Inline = f
		w.register("p", d)
		before := w.snapshot().Revs["n"]
		w.append("a", "a", "a")
		e := w.listen()
		for range 3 {
			w.values(2, "n", "!faulted")
		}
		if w.log.pages != 0 {
			t.Error("a fault that is known was run into again")
		}
		if b, err := w.s.Retry(t.Context()); err != nil || b.Unavailable["n"].Code != Faulted {
			t.Errorf("still sick: %+v, %v", b, err)
		}
		synctest.Wait()
		e.take()
		sick = false
		b, err := w.s.Retry(t.Context(), "n")
		if err != nil || string(b.Values["n"]) != "3" || b.Revs["n"] <= before {
			t.Errorf("healed: %+v, %v", b, err)
		}
		synctest.Wait()
		same(t, "feed", e.take(), "s n@2=3")
	})
}

func TestASnapshotOfCellsBeingBuiltIsOneCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var types []string
		for range 50 {
			types = append(types, "a")
		}
		w := given(t, Options{}, events(types...)...)
		w.register("p", fakeplugin.Counter("late", "a"))
		open := w.shut()
		got := make(chan Block)
		go func() { got <- w.snapshot() }()
		synctest.Wait()
		w.append("a", "a")
		late := make(chan Block)
		go func() { late <- w.snapshot() }()
		synctest.Wait()
		open()
		for _, want := range []int64{49, 51} {
			b := <-got
			if b.AsOfSeq != want || string(b.Values["late"]) != fmt.Sprint(want+1) {
				t.Errorf("as of %d: %s, want that of %d", b.AsOfSeq, b.Values, want)
			}
			got = late
		}
	})
}

func TestAReaderThatIsCancelledLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{}, events("a")...)
		w.register("p", fakeplugin.Counter("n", "a"))
		w.log.err = errors.New("the disk is away")
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error)
		go func() { _, err := w.s.Snapshot(ctx); errs <- err }()
		synctest.Wait()
		cancel()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if w.s.pin != nil {
			t.Error("the pin is still there")
		}
		b := w.values(0, "n", "!behind")
		if b.Unavailable["n"].Seq != -1 {
			t.Errorf("reached %d", b.Unavailable["n"].Seq)
		}
		e := w.listen()
		w.log.mu.Lock()
		w.log.err = nil
		w.log.mu.Unlock()
		w.values(0, "n", "1")
		synctest.Wait()
		same(t, "the late key follows", e.take(), "s n@0=1")
	})
}

func TestDetachEndsReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{}, events("a")...)
		w.register("p", fakeplugin.Counter("n", "a"))
		w.log.err = errors.New("the disk is away")
		errs := make(chan error)
		go func() { _, err := w.s.Snapshot(t.Context()); errs <- err }()
		synctest.Wait()
		w.s.Detach(false)
		if err := <-errs; !errors.Is(err, ErrDetached) {
			t.Errorf("error %v", err)
		}
		if _, err := w.s.Snapshot(t.Context()); !errors.Is(err, ErrDetached) {
			t.Errorf("error %v", err)
		}
	})
}

// An observer may come before the registry and read while the event is in the log and not published.
func TestAReadBetweenCommitAndPublishCountsNothingTwice(t *testing.T) {
	for _, touched := range []bool{false, true} {
		t.Run(fmt.Sprintf("cell exists %v", touched), func(t *testing.T) {
			w := given(t, Options{}, events("a", "a")...)
			w.register("p", fakeplugin.Counter("n", "a"))
			w.plugin("q", fakeplugin.Counter("r", "a"))
			if touched {
				w.values(1, "n", "2", "r", "2")
			}
			evs := events("a", "a", "a", "a")[2:]
			w.log.append(evs...)
			w.values(1, "n", "2", "r", "2")
			w.s.Publish(t.Context(), evs[:1])
			w.values(2, "n", "3", "r", "3")
			w.s.Publish(t.Context(), evs[1:])
			w.values(3, "n", "4", "r", "4")
		})
	}
}

// blind is a unit that cannot even begin, or whose state cannot be written.
type blind struct {
	unit.Inline
	init, encode, decode, view error
}

func (b blind) Decode(raw json.RawMessage) (unit.State, error) {
	s, _ := b.Inline.Decode(raw)
	return s, b.decode
}

func (b blind) Init() (unit.State, error) {
	s, _ := b.Inline.Init()
	return s, b.init
}

func (b blind) Encode(s unit.State) (json.RawMessage, error) {
	raw, _ := b.Inline.Encode(s)
	return raw, b.encode
}

func (b blind) View(s unit.State) (json.RawMessage, error) {
	raw, _ := b.Inline.View(s)
	return raw, b.view
}

func TestAUnitThatCannotBeginIsFaultedFromTheBeginning(t *testing.T) {
	for name, evs := range map[string][]event.Event{"on an empty log": nil, "on a log": events("a", "a")} {
		t.Run(name, func(t *testing.T) {
			w := given(t, Options{}, evs...)
			bad := fakeplugin.Counter("bad", "a")
			bad.Inline = blind{Inline: bad.Inline, init: errors.New("no")}
			w.register("p", bad, fakeplugin.Counter("good", "a"))
			w.append("a")
			b := w.values(w.log.head(), "good", fmt.Sprint(len(evs)+1), "bad", "!faulted")
			if u := b.Unavailable["bad"]; u.Seq != -1 || u.FailedAt != -1 {
				t.Errorf("%+v", u)
			}
			if st, _ := w.figures("bad"); st.Faults != 1 || st.Faulted != 1 || st.Behind != 0 {
				t.Errorf("counted as %+v", st)
			}
		})
	}
}

// A cell that is built from the log fails as one that folds what comes.
func TestAUnitThatFailsOnItsWayFailsAtItsEvent(t *testing.T) {
	for name, fail := range map[string]func(f *fakeplugin.Fold){
		"a fold": func(f *fakeplugin.Fold) {
			on := f.On
			f.On = func(s string, ev *event.Event) (string, error) {
				if ev.Seq == 4 {
					return "", errors.New("no")
				}
				return on(s, ev)
			}
		},
		"a view": func(f *fakeplugin.Fold) {
			f.Look = func(s string) string {
				if s == "5" {
					panic("no")
				}
				return s
			}
		},
	} {
		for _, where := range []string{"in the log", "while it is built"} {
			t.Run(name+" "+where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := 4
					if where == "in the log" {
						n = 5
					}
					w := given(t, Options{}, events(many(n, "a")...)...)
					d := fakeplugin.Counter("n", "a")
					f := d.Inline.(fakeplugin.Fold)
					fail(&f)
					d.Inline = f
					w.register("p", d)
					w.listen()
					open := w.shut()
					if _, err := w.s.SnapshotWithin(t.Context(), 0); err != nil {
						t.Fatal(err)
					}
					for range 5 - n {
						w.append("a")
					}
					open()
					b := w.values(4, "n", "!faulted")
					if u := b.Unavailable["n"]; u.FailedAt != 4 || u.Seq != 3 {
						t.Errorf("%+v", u)
					}
				})
			})
		}
	}
}

// The gate holds for what is folded from the log too: a state whose view is the one before is no change, and what was there before is not told.
func TestABuiltCellTellsOnlyWhatChangesItsView(t *testing.T) {
	r := New(Options{})
	defer r.Close()
	d := fakeplugin.Counter("n", "a")
	f := d.Inline.(fakeplugin.Fold)
	f.Look = func(s string) string {
		if s == "3" || s == "4" {
			return "34"
		}
		return s
	}
	d.Inline = f
	p := &paged{c: &cell{b: compiledBindings(t, r, d)[0]}, since: 1, tell: true, from: 2, state: "0", dirty: true, seq: -1}
	p.page(events("a", "a", "a", "a", "x", "a"))
	var news []string
	for _, v := range p.news {
		news = append(news, fmt.Sprintf("%d=%s", v.seq, v.view))
	}
	same(t, "news", news, "2=34", "5=5")
	if p.state != "5" || p.seq != 5 || p.caught != 2 || p.failed != nil {
		t.Errorf("state %v of seq %d, %d events were there before, %v", p.state, p.seq, p.caught, p.failed)
	}
}

// A view that fails while nobody looks is found as soon as somebody does, at the event that it is the view of.
func TestAViewThatFailedUnseenIsAFaultOfItsEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		d := fakeplugin.Counter("n", "a")
		f := d.Inline.(fakeplugin.Fold)
		f.Look = func(s string) string {
			if s == "2" {
				panic("no")
			}
			return s
		}
		d.Inline = f
		w.register("p", d)
		w.append("a", "a")
		e := w.listen()
		w.append("a")
		synctest.Wait()
		same(t, "feed", e.take(), "s n@0!faulted")
		if b := w.values(2, "n", "!faulted"); b.Unavailable["n"].FailedAt != 1 {
			t.Errorf("%+v", b.Unavailable["n"])
		}
	})
}

func TestAStateThatCannotBeGivenIsSaidSo(t *testing.T) {
	w := given(t, Options{MaxStateBytes: 3})
	unwritten, wrong := fakeplugin.Counter("unwritten", "a"), fakeplugin.Counter("wrong", "a")
	unwritten.Inline = blind{Inline: unwritten.Inline, encode: errors.New("no ink")}
	f := wrong.Inline.(fakeplugin.Fold)
	f.Initial = "-1"
	wrong.Inline = f
	failed := fakeplugin.Counter("failed", "a")
	failed.Inline = blind{Inline: failed.Inline, init: errors.New("no")}
	w.register("p", unwritten, wrong, failed)
	_, _, err := w.s.StateOf(t.Context(), "unwritten")
	if err == nil || err.Error() != "no ink" {
		t.Errorf("a state that cannot be written: %v", err)
	}
	var against *unit.ValueError
	if _, _, err := w.s.StateOf(t.Context(), "wrong"); !errors.As(err, &against) {
		t.Errorf("a state against its schema: %v", err)
	}
	var down *UnavailableError
	if _, _, err := w.s.StateOf(t.Context(), "failed"); !errors.As(err, &down) || down.Code != Faulted || down.Session != "s" || down.Key != "failed" {
		t.Errorf("a key that failed: %v", err)
	}
	rows, err := w.s.Checkpoint(t.Context())
	if err != nil || len(rows.Rows) != 0 {
		t.Errorf("rows are kept of them: %+v, %v", rows, err)
	}
}

// Views of host-only units are nobody's business: they may not even be there.
func TestTheViewOfAHostOnlyUnitIsNeverAskedFor(t *testing.T) {
	w := given(t, Options{})
	d := fakeplugin.HostOnly(fakeplugin.Counter("h", "a"))
	d.Inline = blind{Inline: d.Inline, view: errors.New("there is none")}
	w.register("p", d)
	w.listen()
	w.append("a", "a")
	if raw, seq, err := w.s.StateOf(t.Context(), "h"); err != nil || string(raw) != "2" || seq != 1 {
		t.Errorf("%s at %d, %v", raw, seq, err)
	}
	rows, err := w.s.Checkpoint(t.Context())
	if err != nil || string(rows.Rows["h"].Val) != "2" {
		t.Errorf("%+v, %v", rows, err)
	}
	_, rows, err = w.r.RestoreFrom(t.Context(), "", rows, w.log, 1)
	if err != nil || string(rows.Rows["h"].Val) != "2" {
		t.Errorf("restored: %+v, %v", rows, err)
	}
}

// A row is used as it stands, also one that stands on the first event or on the last; a state that the unit does not take back is no authority.
func TestWhatACellStartsFrom(t *testing.T) {
	evs := events("a", "a", "a")
	for name, c := range map[string]struct {
		seq    int64
		decode error
		want   string
	}{
		"the first event": {0, nil, "102"}, "the last event": {2, nil, "100"}, "a state that is not taken back": {1, errors.New("no"), "3"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := given(t, Options{ReadWait: time.Hour}, evs...)
				w.s.Detach(false)
				d := fakeplugin.Counter("n", "a")
				d.Inline = blind{Inline: d.Inline, decode: c.decode}
				b := w.register("p", d)[0].binding()
				w.attach(Rows{Session: "s", Incarnation: "s.1", Cut: 2, Rows: map[string]Row{
					"n": {Ver: 1, Def: b.Digest, Seq: c.seq, Val: json.RawMessage("100"), Anchor: event.Fingerprint(&evs[c.seq])},
				}})
				began := time.Now()
				w.values(2, "n", c.want)
				if waited := time.Since(began); waited > 0 {
					t.Errorf("a reader waited for %v", waited)
				}
			})
		})
	}
}

// What the builder tells is checked, and has its revision, as what is folded live.
func TestABuiltValueIsToldAsALiveOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{}, events("a", "a")...)
		right, wrong := fakeplugin.Counter("right", "a"), fakeplugin.Counter("wrong", "a")
		f := wrong.Inline.(fakeplugin.Fold)
		f.Look = func(s string) string {
			if s == "3" {
				return `"three"`
			}
			return s
		}
		wrong.Inline = f
		w.register("p", right, wrong)
		e := w.listen()
		open := w.shut()
		w.append("a")
		open()
		synctest.Wait()
		heard := e.changes()
		got := e.take()
		if len(got) != 2 || !contains(got, "s right@2=3") || !contains(got, "s wrong@1!faulted") {
			t.Errorf("feed: %q", got)
		}
		w.append("a")
		synctest.Wait()
		heard = append(heard, e.changes()...)
		b := w.values(3, "right", "4", "wrong", "!faulted")
		for _, c := range heard {
			if c.Rev == 0 || c.Key == "right" && c.Rev != b.Revs["right"] || c.Incarnation != "s.1" {
				t.Errorf("heard %+v; the revision is %d", c, b.Revs["right"])
			}
		}
	})
}

// lyingLog answers as it likes.
type lyingLog struct {
	*sampleLog
	give func(from, to int64) ([]event.Event, int64, error)
}

func (l lyingLog) ReadPage(_ context.Context, from, to int64, _ []string) ([]event.Event, int64, error) {
	return l.give(from, to)
}

func TestALogThatLiesIsRefused(t *testing.T) {
	at := func(seqs ...int64) (evs []event.Event) {
		for _, q := range seqs {
			evs = append(evs, event.Event{Type: "a", Seq: q})
		}
		return evs
	}
	for name, c := range map[string]struct {
		evs  []event.Event
		next int64
		ok   bool
	}{
		"all of it":                {at(2, 3, 4), 5, true},
		"a part":                   {at(2, 3), 4, true},
		"nothing, and moves":       {nil, 3, true},
		"nothing, and does not":    {nil, 2, false},
		"nothing, and goes back":   {nil, 0, false},
		"an event before":          {at(1, 2), 5, false},
		"an event twice":           {at(2, 2), 5, false},
		"in another order":         {at(3, 2), 5, false},
		"an event behind":          {at(2, 5), 6, false},
		"an event beyond the next": {at(2, 4), 4, false},
		"an error":                 {at(2), 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			if name == "an error" {
				err = errors.New("the disk is gone")
			}
			log := lyingLog{newSampleLog("s", events("a", "a", "a", "a", "a")...), func(int64, int64) ([]event.Event, int64, error) { return c.evs, c.next, err }}
			r := New(Options{})
			defer r.Close()
			s := r.Attach(log, "", 4, Rows{})
			evs, next, err := s.read(t.Context(), 2, 5, nil)
			if (err == nil) != c.ok || c.ok && (len(evs) != len(c.evs) || next != c.next) {
				t.Errorf("%d events, next %d, %v", len(evs), next, err)
			}
		})
	}
}

// A log that does not move is not asked for ever.
func TestALogThatDoesNotMoveEndsEveryRead(t *testing.T) {
	log := lyingLog{newSampleLog("s", events("a", "a", "a")...), nil}
	log.give = func(from, _ int64) ([]event.Event, int64, error) { return nil, from, nil }
	r := New(Options{})
	defer r.Close()
	register(t, r, "p", fakeplugin.Counter("n", "a"))
	s := r.Attach(log, "", 2, Rows{})
	for name, read := range map[string]func() error{
		"the past":      func() error { _, err := s.SnapshotAt(t.Context(), 1); return err },
		"the cold past": func() error { _, err := r.SnapshotAt(t.Context(), "", Rows{}, log, 1); return err },
		"a restore":     func() error { _, _, err := r.RestoreFrom(t.Context(), "", Rows{}, log, 2); return err },
		"the pull": func() (err error) {
			for _, e := range s.Changes(t.Context(), 0) {
				err = e
			}
			return err
		},
	} {
		if err := read(); err == nil {
			t.Errorf("%s has come to an end", name)
		}
	}
}

func TestNothingIsGivenOfADetachedSessionNorToWhoHasLeft(t *testing.T) {
	w := given(t, Options{})
	w.register("p", fakeplugin.Counter("n", "a"))
	w.append("a")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	calls := func(ctx context.Context) map[string]func() error {
		return map[string]func() error{
			"a snapshot":   func() error { _, err := w.s.Snapshot(ctx); return err },
			"a state":      func() error { _, _, err := w.s.StateOf(ctx, "n"); return err },
			"a checkpoint": func() error { _, err := w.s.Checkpoint(ctx); return err },
			"a retry":      func() error { _, err := w.s.Retry(ctx); return err },
			"the past":     func() error { _, err := w.s.SnapshotAt(ctx, 0); return err },
			"the pull": func() (err error) {
				for _, e := range w.s.Changes(ctx, 0) {
					err = e
				}
				return err
			},
		}
	}
	for name, call := range calls(gone) {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, to who has left: %v", name, err)
		}
	}
	w.s.Detach(false)
	for name, call := range calls(t.Context()) {
		if err := call(); !errors.Is(err, ErrDetached) {
			t.Errorf("%s, of a detached session: %v", name, err)
		}
	}
}

// Registrants with a variant are in the sets that name them, and in no other.
func TestAVariantAloneIsInNoSetThatDoesNotNameIt(t *testing.T) {
	w := given(t, Options{})
	if _, err := w.r.Register(Registrant{"p", "v"}, fakeplugin.Counter("n", "a")); err != nil {
		t.Fatal(err)
	}
	w.append("a")
	w.values(0)
	if keys := w.r.Keys(""); len(keys) != 0 {
		t.Errorf("keys %q", keys)
	}
}

// Whether nothing of a key has happened yet depends on what it folds now.
func TestAKeyThatFoldsOtherTypesNowKnowsWhatHasHappened(t *testing.T) {
	for name, now := range map[string]struct {
		types []string
		want  string
	}{"other types": {[]string{"b"}, "2"}, "every type": {nil, "3"}, "more types": {[]string{"a", "b"}, "2"}, "the same": {[]string{"a"}, "0"}} {
		t.Run(name, func(t *testing.T) {
			w := given(t, Options{})
			g := w.register("p", fakeplugin.Counter("n", "a"))[0]
			w.append("b", "b", "c")
			if err := w.r.Replace(g, fakeplugin.Counter("n", now.types...)); err != nil {
				t.Fatal(err)
			}
			w.values(2, "n", now.want)
		})
	}
}

func TestFoldedCountsEventsOfUnitsThatFoldEveryType(t *testing.T) {
	w := given(t, Options{})
	w.register("p", fakeplugin.Counter("n"), fakeplugin.Counter("m", "a"))
	w.append("a", "b", "c")
	if n := w.s.Folded(); n != 3 {
		t.Errorf("%d events", n)
	}
}

// Every read says of which generation and which epoch it is.
func TestEveryBlockHasItsGeneration(t *testing.T) {
	w := given(t, Options{Epoch: "e.1"})
	w.register("p", fakeplugin.Counter("n", "a"))
	w.append("a")
	live := w.snapshot()
	rows, err := w.s.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	past, err := w.s.SnapshotAt(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	restored, _, err := w.r.RestoreFrom(t.Context(), "", rows, w.log, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]Block{"live": live, "of the past": past, "restored": restored, "of rows": w.r.ViewRows("", rows)} {
		if b.Gen != live.Gen || b.Gen == 0 || b.Epoch != "e.1" || string(b.Values["n"]) != "1" || b.AsOfSeq != 0 {
			t.Errorf("%s: %+v", name, b)
		}
	}
}
