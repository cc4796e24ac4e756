package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
	"github.com/foldhost/foldhost/unit"
	"pgregory.net/rapid"
)

// pulled gives all changes from `from` on, one line each.
func pulled(t failer, s *Session, from int64) (lines []string) {
	t.Helper()
	for c, err := range s.Changes(context.Background(), from) {
		if err != nil {
			t.Fatalf("pull from %d: %v", from, err)
		}
		lines = append(lines, line(c))
	}
	return lines
}

func TestThePullGivesEveryChangeBySeqThenKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{}, events("a", "noise", "b", "a", "b")...)
		w.plugin("p", fakeplugin.Counter("y", "a"), fakeplugin.Constant("c", `1`), fakeplugin.HostOnly(fakeplugin.Counter("hidden")))
		w.register("q", fakeplugin.Counter("x", "a", "b"), fakeplugin.Last("z", "b"))
		same(t, "from 0", pulled(t, w.s, 0),
			"s x@0=1", "s y@0=1", "s x@2=2", `s z@2={"at":2}`, "s x@3=3", "s y@3=2", "s x@4=4", `s z@4={"at":4}`)
		same(t, "from 3", pulled(t, w.s, 3),
			"s x@3=3", "s y@3=2", "s x@4=4", `s z@4={"at":4}`)
		same(t, "from behind the head", pulled(t, w.s, 5))
	})
}

func TestWhatEqualsTheValueBeforeItIsNoChange(t *testing.T) {
	w := given(t, Options{})
	w.register("p", fakeplugin.Last("v", "a"))
	for _, data := range []string{"null", "1", "1", "2", "1"} {
		w.data("a", data)
	}
	same(t, "from 0", pulled(t, w.s, 0), "s v@1=1", "s v@3=2", "s v@4=1")
	same(t, "from 2", pulled(t, w.s, 2), "s v@3=2", "s v@4=1")
}

func TestThePullEndsAtTheHeadOfTheCall(t *testing.T) {
	w := given(t, Options{}, events("a", "a")...)
	w.register("p", fakeplugin.Counter("n", "a"))
	changes := w.s.Changes(t.Context(), 0)
	w.append("a")
	for range 2 {
		var got []string
		for c := range changes {
			got = append(got, line(c))
		}
		same(t, "a sequence made before the append", got, "s n@0=1", "s n@1=2")
	}
}

func TestThePullKnowsWhichSeqsThereAre(t *testing.T) {
	w := given(t, Options{}, events("a", "b")...)
	for _, from := range []int64{-1, 3} {
		var out *SeqRangeError
		for _, err := range w.s.Changes(t.Context(), from) {
			if !errors.As(err, &out) {
				t.Errorf("from %d: error = %v, want a *SeqRangeError", from, err)
			}
		}
		if out == nil {
			t.Errorf("from %d: no error", from)
		}
	}
	w.s.Detach(false)
	for _, err := range w.s.Changes(t.Context(), 0) {
		if !errors.Is(err, ErrDetached) {
			t.Errorf("detached: error = %v", err)
		}
	}
}

func TestThePullSendsEachEventOncePerInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var types []string
		for range 100 {
			types = append(types, "a", "noise", "b", "noise")
		}
		w := given(t, Options{BatchEvents: 16}, events(types...)...)
		p, _ := w.plugin("p", fakeplugin.Counter("x", "a"), fakeplugin.Counter("y", "a", "b"))
		w.log.page = 50
		if n := len(pulled(t, w.s, 0)); n != 300 {
			t.Errorf("%d changes, want 300", n)
		}
		if n := p.Counts(); n.Events != 200 || n.Types["noise"] != 0 {
			t.Errorf("the plugin got %d events, %d of them noise; want 200 and none", n.Events, n.Types["noise"])
		}
		if w.log.given["noise"] != 0 || w.log.given["a"] != 100 {
			t.Errorf("read %v", w.log.given)
		}
		synctest.Wait()
		if n := p.Process().Cells(); n != 0 {
			t.Errorf("%d cells are left", n)
		}
	})
}

func TestAKeyThatFailsInThePullEndsAndTheOthersGoOn(t *testing.T) {
	for name, x := range map[string]struct {
		fault *fakeplugin.Fault
		want  []string
	}{
		"a fault":            {fakeplugin.Fail(fakeplugin.AtEvent, "no").Seq(2), []string{"s bad@0=1", "s bad@1=2", "s bad@1!faulted"}},
		"a crash":            {fakeplugin.Crash(fakeplugin.AtEvent).Seq(2), []string{"s bad@0=1", "s bad@1=2", "s bad@1!restarting"}},
		"a hang":             {fakeplugin.Hang(fakeplugin.AtEvent).Seq(3), []string{"s bad@0=1", "s bad@1=2", "s bad@1!behind"}},
		"a view against it":  {fakeplugin.View(json.RawMessage(`"x"`)).Seq(2), []string{"s bad@0=1", "s bad@1=2", "s bad@1!faulted"}},
		"out of order":       {fakeplugin.Backwards().Seq(2), []string{"s bad@0=1", "s bad@1=2", "s bad@1!behind"}},
		"beyond the batch":   {fakeplugin.Shift(2).Seq(2), []string{"s bad@0=1", "s bad@1=2", "s bad@1!behind"}},
		"a forgotten cell":   {fakeplugin.ForgetCell(fakeplugin.AtEvent).Seq(2).Once(), []string{"s bad@0=1", "s bad@1=2", "s bad@2=3", "s bad@3=4", "s bad@4=5"}},
		"always forgotten":   {fakeplugin.ForgetCell(fakeplugin.AtEvent).Seq(2), []string{"s bad@0=1", "s bad@1=2", "s bad@1!behind"}},
		"a foreign cell":     {fakeplugin.Foreign(777), []string{"s bad@0=1", "s bad@1=2", "s bad@2=3", "s bad@3=4", "s bad@4=5"}},
		"a fault at opening": {fakeplugin.Fail(fakeplugin.AtOpen, "no"), []string{"s bad@-1!faulted"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := given(t, Options{BatchEvents: 2}, events("a", "a", "a", "a", "a")...)
				w.log.page = 10
				bad := fakeplugin.New(fakeplugin.Counter("bad", "a"))
				defer bad.Close()
				w.register("bad", bad.Definitions()...)
				w.plugin("good", fakeplugin.Counter("good", "a"))
				w.register("here", fakeplugin.Counter("here", "a"))
				bad.Add(x.fault)
				of := map[string][]string{}
				last := int64(-1)
				for c, err := range w.s.Changes(t.Context(), 0) {
					if err != nil {
						t.Fatal(err)
					}
					if c.Seq < last {
						t.Errorf("%s comes after seq %d", line(c), last)
					}
					last = c.Seq
					of[c.Key] = append(of[c.Key], line(c))
				}
				if x.fault.Fired() == 0 {
					t.Error("the fault did not fire")
				}
				same(t, "bad", of["bad"], x.want...)
				for _, key := range []string{"good", "here"} {
					same(t, key, of[key], "s "+key+"@0=1", "s "+key+"@1=2", "s "+key+"@2=3", "s "+key+"@3=4", "s "+key+"@4=5")
				}
				w.r.Close()
			})
		})
	}
}

func TestAnInProcessUnitThatFailsInThePullEndsAtItsEvent(t *testing.T) {
	def := fakeplugin.Counter("bad", "a")
	f := def.Inline.(fakeplugin.Fold)
	on := f.On
	f.On = func(state string, ev *event.Event) (string, error) {
		if ev.Seq == 2 {
			panic("two")
		}
		return on(state, ev)
	}
	def.Inline = f
	w := given(t, Options{}, events("a", "a", "a", "a")...)
	w.register("p", def, fakeplugin.Counter("good", "a"))
	same(t, "pull", pulled(t, w.s, 0), "s bad@0=1", "s good@0=1", "s bad@1=2", "s bad@1!faulted", "s good@1=2", "s good@2=3", "s good@3=4")
}

func TestAPullThatIsLeftEarlyReleasesEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{}, events("a", "a", "a")...)
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"))
		for range w.s.Changes(t.Context(), 0) {
			break
		}
		synctest.Wait()
		if n := p.Process().Cells(); n != 0 {
			t.Errorf("%d cells are left", n)
		}
	})
}

func TestAPullEndsWithItsContextAndWithTheLog(t *testing.T) {
	w := given(t, Options{BatchEvents: 1}, events("a", "a", "a", "a", "a", "a")...)
	w.register("p", fakeplugin.Counter("n", "a"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errs []error
	for _, err := range w.s.Changes(ctx, 0) {
		errs = append(errs, err)
		cancel()
	}
	if len(errs) != 2 || !errors.Is(errs[1], context.Canceled) {
		t.Errorf("errors = %v, want one change and the context's", errs)
	}
	w.log.err = errors.New("disk")
	for _, err := range w.s.Changes(t.Context(), 0) {
		if !errors.Is(err, w.log.err) {
			t.Errorf("error = %v, want the log's", err)
		}
	}
}

func TestProgressReachesTheHead(t *testing.T) {
	for _, n := range []int{0, 1, 10} {
		var types []string
		for i := range n {
			types = append(types, []string{"a", "noise", "noise"}[i%3])
		}
		w := given(t, Options{}, events(types...)...)
		w.register("p", fakeplugin.Counter("n", "a"))
		last := int64(-1)
		for range w.s.ChangesProgress(t.Context(), 0, func(reached, head int64) {
			if reached <= last || head != int64(n)-1 {
				t.Errorf("progress %d of %d after %d", reached, head, last)
			}
			last = reached
		}) {
		}
		if last != int64(n)-1 {
			t.Errorf("of %d events progress reached %d", n, last)
		}
	}
}

// The pull from anywhere is what the model says, and so is the feed of a listener that keeps up.
func TestThePullIsTheFeedAndTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			r, p, defs := zoo(t, Options{BatchEvents: 3})
			defer p.Close()
			defer r.Close()
			log := drawLog(rt, "types")
			all := log.events
			log.events = nil
			s := r.Attach(log, "", -1, Rows{})
			defer s.Detach(false)
			var feed []string
			remove := r.OnChange(func(c Change) {
				if c.Kind == KindValue {
					feed = append(feed, line(c))
				}
			})
			defer remove()
			for i := range all {
				log.append(all[i])
				s.Publish(t.Context(), all[i:i+1])
				synctest.Wait() // the listener keeps up
			}
			model := modelChanges(rt, defs, all, 0)
			slices.Sort(feed)
			sorted := slices.Sorted(slices.Values(model))
			if fmt.Sprint(feed) != fmt.Sprint(sorted) {
				rt.Fatalf("feed  %q\nmodel %q", feed, sorted)
			}
			from := rapid.Int64Range(0, int64(len(all))).Draw(rt, "from")
			if got, want := pulled(rt, s, from), modelChanges(rt, defs, all, from); fmt.Sprint(got) != fmt.Sprint(want) {
				rt.Fatalf("pull from %d %q\nmodel %q", from, got, want)
			}
		})
	})
}

// modelChanges is the pull by folding every prefix from scratch.
func modelChanges(t failer, defs []unit.Definition, evs []event.Event, from int64) (lines []string) {
	defs = slices.Clone(defs)
	slices.SortFunc(defs, func(a, b unit.Definition) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	for seq := from; seq < int64(len(evs)); seq++ {
		for _, def := range defs {
			if def.ViewSchema == nil {
				continue
			}
			before, _ := folded(t, def, evs, seq-1)
			if now, _ := folded(t, def, evs, seq); now != before {
				lines = append(lines, fmt.Sprintf("s %s@%d=%s", def.Key, seq, now))
			}
		}
	}
	return lines
}
