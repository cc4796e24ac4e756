package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
	"github.com/foldhost/foldhost/unit"
)

func many(n int, types ...string) (all []string) {
	for i := range n {
		all = append(all, types[i%len(types)])
	}
	return all
}

func TestAProcessGetsEachEventOnceAndOnlyWhatItsUnitsFold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		n, m := fakeplugin.Counter("n", "a"), fakeplugin.Chain("m", "a", "b")
		p, _ := w.plugin("p", n, m, fakeplugin.Constant("c", `1`), fakeplugin.HostOnly(fakeplugin.Counter("h", "b")))
		for range 20 {
			w.append("a", "x", "b", "x")
			synctest.Wait()
		}
		w.values(79, "n", "20", "m", want(t, m, w.log.events, 79), "c", "1")
		c := p.Counts()
		if c.Types["a"] != 20 || c.Types["b"] != 20 || c.Types["x"] != 0 {
			t.Errorf("events by type: %v", c.Types)
		}
		before := p.Counts().Batches
		w.append("x", "x", "x")
		synctest.Wait()
		w.values(82, "n", "20", "m", want(t, m, w.log.events, 82), "c", "1")
		if n := p.Counts().Batches - before; n != 0 {
			t.Errorf("%d messages for events that nobody folds", n)
		}
		for _, ev := range p.Messages() {
			for i := range ev.Batch.Events {
				if i > 0 && ev.Batch.Events[i].Seq <= ev.Batch.Events[i-1].Seq {
					t.Errorf("events out of order in %+v", ev.Batch)
				}
			}
		}
	})
}

func TestTheFeedOfAProcessTellsEveryChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		w.plugin("p", fakeplugin.Counter("n", "a"))
		e := w.listen()
		for i := range 5 {
			w.append("a", "x")
			synctest.Wait()
			same(t, "feed", e.take(), fmt.Sprintf("s n@%d=%d", 2*i, i+1))
		}
	})
}

func TestWhatWaitsForAStoppedProcessIsARangeNotAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{Window: 2, BatchDeadline: time.Hour})
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"))
		hold := make(chan struct{})
		p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold))
		for range 1000 {
			w.append("a")
		}
		synctest.Wait()
		if n := p.Counts().Batches; n > 2 {
			t.Errorf("%d batches in flight, the window is 2", n)
		}
		b, err := w.s.SnapshotWithin(t.Context(), time.Second)
		if err != nil || b.Unavailable["n"].Code != Behind || b.AsOfSeq != 999 {
			t.Errorf("while it is stopped: %+v, %v", b, err)
		}
		close(hold)
		w.values(999, "n", "1000")
	})
}

func TestASnapshotOfAProcessIsOneCutWhileAppendsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		n, m := fakeplugin.Chain("n", "a"), fakeplugin.Chain("m", "b")
		p, _ := w.plugin("p", n, m)
		in := fakeplugin.Chain("in", "a", "b")
		w.register("q", in)
		hold := make(chan struct{})
		p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Times(2))
		w.append(many(10, "a", "b")...)
		got := make(chan Block, 3)
		go func() { got <- w.snapshot() }()
		synctest.Wait()
		w.append(many(10, "a", "b")...)
		go func() { got <- w.snapshot() }()
		synctest.Wait()
		w.append(many(5, "a", "b")...)
		go func() { got <- w.snapshot() }() // shares the next pin with the one before
		synctest.Wait()
		close(hold)
		for range 3 {
			b := <-got
			for _, d := range []unit.Definition{n, m, in} {
				if v := string(b.Values[d.Key]); v != want(t, d, w.log.events, b.AsOfSeq) {
					t.Errorf("as of %d %s is %s", b.AsOfSeq, d.Key, v)
				}
			}
			if b.AsOfSeq != 9 && b.AsOfSeq != 24 {
				t.Errorf("a cut at %d", b.AsOfSeq)
			}
		}
	})
}

func TestACrashCostsAReplayAndNeverAValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		n := fakeplugin.Chain("n", "a")
		p, gs := w.plugin("p", n)
		p.OnDeath(nil)
		w.append(many(2500, "a", "x")...)
		w.values(2499, "n", want(t, n, w.log.events, 2499))
		rev := w.snapshot().Revs["n"]
		e := w.listen()
		p.Crash()
		synctest.Wait()
		gs[0].Suspend(Restarting, "it crashed")
		w.values(2499, "n", want(t, n, w.log.events, 2499)) // nothing has happened since
		w.append("x")
		w.values(2500, "n", want(t, n, w.log.events, 2500)) // nor has this
		same(t, "feed", e.take())
		w.append("a")
		b := w.values(2501, "n", "!restarting")
		if b.Unavailable["n"].Seq != 2500 {
			t.Errorf("reached %d", b.Unavailable["n"].Seq)
		}
		p.Forget()
		gs[0].Resume(p.Start())
		b = w.values(2501, "n", want(t, n, w.log.events, 2501))
		if b.Revs["n"] <= rev {
			t.Errorf("revision %d after %d", b.Revs["n"], rev)
		}
		synctest.Wait()
		same(t, "feed", e.take(), "s n@2500!restarting", "s n@2501="+want(t, n, w.log.events, 2501))
		if c := p.Counts(); c.Types["a"] > 1000 {
			t.Errorf("%d events were replayed", c.Types["a"])
		}
	})
}

func TestSuspendedKeysAreNotWaitedForAndStartingOnesAre(t *testing.T) {
	for code, waits := range map[UnavailableCode]bool{Starting: true, Restarting: false, Parked: false} {
		t.Run(string(code), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := given(t, Options{})
				p, gs := w.plugin("p", fakeplugin.Counter("n", "a"))
				gs[0].Suspend(code, "as the test says")
				w.append("a")
				begin := time.Now()
				b := w.values(0, "n", "!"+string(code))
				if b.Unavailable["n"].Message != "as the test says" || b.Unavailable["n"].Seq != -1 {
					t.Errorf("%+v", b.Unavailable["n"])
				}
				if took := time.Since(begin); (took == 2*time.Second) != waits || !waits && took != 0 {
					t.Errorf("waited %v", took)
				}
				go func() {
					time.Sleep(time.Second)
					gs[0].Resume(p.Start())
				}()
				if waits {
					w.values(0, "n", "1")
					if took := time.Since(begin); took != 3*time.Second {
						t.Errorf("it was there after %v", took)
					}
				}
				time.Sleep(5 * time.Second)
				w.values(0, "n", "1")
			})
		})
	}
}

func TestADeadlineIsTheEndOfAProcessAndNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{BatchDeadline: time.Second, ReadWait: 10 * time.Second})
		p, gs := w.plugin("p", fakeplugin.Counter("n", "a"))
		p.OnDeath(nil)
		hang := p.Add(fakeplugin.Hang(fakeplugin.AtEvent).Seq(1).Once())
		w.append("a")
		synctest.Wait()
		w.append("a")
		begin := time.Now()
		w.values(1, "n", "!behind")
		if took := time.Since(begin); took != time.Second {
			t.Errorf("gave up after %v; the deadline is all that is to be waited for", took)
		}
		w.values(1, "n", "!behind")
		if time.Since(begin) != time.Second || hang.Fired() != 1 {
			t.Errorf("waited again, or it did not hang (%d)", hang.Fired())
		}
		p.Crash()
		gs[0].Resume(p.Start())
		w.values(1, "n", "2")
	})
}

type poisoned struct {
	mu   sync.Mutex
	told []string
}

func (p *poisoned) tell(by Registrant, session, key string, seq int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, fmt.Sprintf("%s %s %s@%d", by.Plugin, session, key, seq))
}

func (p *poisoned) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.told...)
}

func TestAPoisonousEventIsFoundAndTakesNothingFromTheOthers(t *testing.T) {
	for name, fault := range map[string]*fakeplugin.Fault{
		"crash": fakeplugin.Crash(fakeplugin.AtEvent).Key("n").Seq(6),
		"hang":  fakeplugin.Hang(fakeplugin.AtEvent).Key("n").Seq(6),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var found poisoned
				w := given(t, Options{Poisoned: found.tell, BatchDeadline: time.Second, ReadWait: time.Minute})
				n, m := fakeplugin.Chain("n", "a"), fakeplugin.Chain("m", "a", "b")
				p, gs := w.plugin("p", n, m)
				// A hang is ended by the supervisor, at the deadline.
				if name == "hang" {
					go func() {
						for range 30 {
							time.Sleep(1100 * time.Millisecond)
							if d := gs[0].binding(); d != nil {
								if _, down := d.process(); down != nil {
									p.Crash()
								}
							}
						}
					}()
				}
				other := newSampleLog("o")
				o := w.r.Attach(other, "", -1, Rows{})
				f := p.Add(fault)
				evs := events(many(12, "a", "b", "a")...)
				w.append(many(12, "a", "b", "a")...)
				other.append(evs[:5]...)
				o.Publish(t.Context(), evs[:5])
				time.Sleep(40 * time.Second)
				b := w.snapshot()
				if u := b.Unavailable["n"]; u.Code != Faulted || u.FailedAt != 6 {
					t.Errorf("n is %+v with %s", u, b.Values["n"])
				}
				if v := string(b.Values["m"]); v != want(t, m, w.log.events, 11) {
					t.Errorf("m is %s (%+v)", v, b.Unavailable["m"])
				}
				ob, err := o.Snapshot(t.Context())
				if err != nil || string(ob.Values["n"]) != want(t, n, evs, 4) || string(ob.Values["m"]) != want(t, m, evs, 4) {
					t.Errorf("the other session has %s, %+v, %v", ob.Values, ob.Unavailable, err)
				}
				if f.Fired() < 2 {
					t.Errorf("the fault fired %d times", f.Fired())
				}
				same(t, "poisoned", found.all(), "p s n@6")
				if d := p.Counts().Deaths; d > 3 {
					t.Errorf("%d deaths for one event", d)
				}
				w.append(many(3, "a", "b", "a")...)
				b = w.snapshot()
				if v := string(b.Values["m"]); v != want(t, m, w.log.events, 14) || b.Unavailable["n"].Code != Faulted {
					t.Errorf("later m is %s, n %+v", v, b.Unavailable["n"])
				}
				deaths := p.Counts().Deaths
				p.Heal()
				if b, err := w.s.Retry(t.Context(), "n"); err != nil || string(b.Values["n"]) != want(t, n, w.log.events, 14) {
					t.Errorf("after a retry n is %s (%+v), %v", b.Values["n"], b.Unavailable, err)
				}
				if p.Counts().Deaths != deaths {
					t.Error("the retry killed it again")
				}
			})
		})
	}
}

func TestDeathInOpenEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found poisoned
		w := given(t, Options{Poisoned: found.tell, ReadWait: time.Minute})
		n := fakeplugin.Chain("n", "a")
		p, _ := w.plugin("p", n, fakeplugin.Counter("m", "a"))
		row := p.Add(fakeplugin.Crash(fakeplugin.AtOpen).Key("n").When(func(s fakeplugin.Site) bool {
			for _, o := range s.Batch.Open {
				if o.Cell == s.Cell && o.State != nil {
					return true
				}
			}
			return false
		}))
		w.append(many(1500, "a")...)
		w.values(1499, "n", want(t, n, w.log.events, 1499), "m", "1500")
		p.Crash() // they are opened from rows from now on
		time.Sleep(time.Second)
		w.append("a")
		w.values(1500, "n", want(t, n, w.log.events, 1500), "m", "1501")
		if row.Fired() == 0 {
			t.Error("nothing was opened from a row")
		}
		same(t, "poisoned", found.all())
		all := p.Add(fakeplugin.Crash(fakeplugin.AtOpen).Key("n"))
		p.Crash()
		time.Sleep(time.Second)
		w.append("a")
		b := w.values(1501, "n", "!faulted", "m", "1502")
		if all.Fired() == 0 || len(found.all()) != 1 || b.Unavailable["n"].Seq != -1 {
			t.Errorf("fired %d, told %v, %+v", all.Fired(), found.told, b.Unavailable)
		}
	})
}

func TestAnInstanceThatLiesIsNotBelievedAndHarmsItsKeysAlone(t *testing.T) {
	release := make(chan struct{})
	close(release)
	for name, c := range map[string]struct {
		fault *fakeplugin.Fault
		// want is what n comes to: its value, or a code.
		want string
	}{
		"twice":                 {fakeplugin.Twice(), ""},
		"late":                  {fakeplugin.Late(release), ""},
		"foreign cells":         {fakeplugin.Foreign(9999), ""},
		"backwards once":        {fakeplugin.Backwards().Once(), ""},
		"shifted once":          {fakeplugin.Shift(5).Once(), ""},
		"shifted always":        {fakeplugin.Shift(1_000_000), "!faulted"},
		"silent once":           {fakeplugin.Silent().Once(), ""},
		"silent always":         {fakeplugin.Silent(), "!faulted"},
		"forgets once":          {fakeplugin.ForgetCell(fakeplugin.AtEvent).Seq(3).Once(), ""},
		"forgets in open":       {fakeplugin.ForgetCell(fakeplugin.AtOpen).Once(), ""},
		"forgets always":        {fakeplugin.ForgetCell(fakeplugin.AtOpen), "!faulted"},
		"refuses once":          {fakeplugin.Refuse(errors.New("what?")).Once(), ""},
		"refuses always":        {fakeplugin.Refuse(errors.New("what?")), "!faulted"},
		"fails at an event":     {fakeplugin.Fail(fakeplugin.AtEvent, "no").Seq(3), "!faulted"},
		"panics at an event":    {fakeplugin.Panic(fakeplugin.AtEvent).Seq(3), "!faulted"},
		"fails in open":         {fakeplugin.Fail(fakeplugin.AtOpen, "no"), "!faulted"},
		"view of another shape": {fakeplugin.View(json.RawMessage(`"x"`)), "!faulted"},
		"view that is not JSON": {fakeplugin.View(json.RawMessage(`{"n":`)), "!faulted"},
		"view too large":        {fakeplugin.View(json.RawMessage(`"` + strings.Repeat("x", 2<<20) + `"`)), "!faulted"},
	} {
		for _, listening := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, listening %v", name, listening), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := given(t, Options{})
					n, in := fakeplugin.Chain("n", "a"), fakeplugin.Chain("in", "a")
					p := w.fake(n)
					w.register("p", p.Definitions()...)
					w.register("q", in)
					w.r.o.ReadWait = time.Minute
					if listening {
						w.listen()
					}
					f := p.Add(c.fault)
					w.append("a", "a", "a", "a", "a", "a", "x")
					wanted := c.want
					if wanted == "" {
						wanted = want(t, n, w.log.events, 6)
					}
					w.values(6, "n", wanted, "in", want(t, in, w.log.events, 6))
					w.append("a")
					if c.want == "" {
						wanted = want(t, n, w.log.events, 7)
					}
					w.values(7, "n", wanted, "in", want(t, in, w.log.events, 7))
					if f.Fired() == 0 {
						t.Error("the fault did not fire")
					}
					if p.Counts().Batches > 100 {
						t.Errorf("it took %d batches", p.Counts().Batches)
					}
				})
			})
		}
	}
}

func TestStatesOfAProcessAreTakenAtTheCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		n, h := fakeplugin.Chain("n", "a"), fakeplugin.HostOnly(fakeplugin.Chain("h", "b"))
		p, _ := w.plugin("p", n, h)
		for i := range 30 {
			w.append("a", "b", "x")
			rows, err := w.s.Checkpoint(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			at := int64(3*i + 2)
			for _, d := range []unit.Definition{n, h} {
				view, state := folded(t, d, w.log.events, at)
				r := rows.Rows[d.Key]
				if r.Seq > at || string(r.Val) != state || d.ViewSchema != nil && string(r.View) != view {
					t.Errorf("row of %s at %d is %+v, want %s", d.Key, at, r, state)
				}
			}
		}
		raw, seq, err := w.s.StateOf(t.Context(), "h")
		if _, state := folded(t, h, w.log.events, seq); err != nil || seq != 89 || string(raw) != state {
			t.Errorf("state %s at %d, %v", raw, seq, err)
		}
		p.Add(fakeplugin.State(json.RawMessage(`"wrong"`)))
		w.append("a", "b")
		rows, err := w.s.Checkpoint(t.Context())
		if _, ok := rows.Rows["n"]; ok || err != nil {
			t.Errorf("a state against its schema became the row %+v, %v", rows.Rows["n"], err)
		}
	})
}

func TestTakeoverBetweenProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		mk := func(prefix string) unit.Definition { return fakeplugin.Prefixed("n", prefix, "a") }
		_, as := w.plugin("a", mk("A"))
		w.plugin("b", mk("B"))
		w.register("c", mk("C"))
		w.append(many(50, "a")...)
		w.values(49, "n", `{"by":"A","data":{"at":49}}`)
		e := w.listen()
		as[0].Release()
		synctest.Wait()
		w.values(49, "n", `{"by":"B","data":{"at":49}}`)
		w.append("a", "x")
		synctest.Wait()
		w.values(51, "n", `{"by":"B","data":{"at":50}}`)
		same(t, "feed", e.take(), `s n@49={"by":"B","data":{"at":49}}`, `s n@50={"by":"B","data":{"at":50}}`)
		w.r.SetMembers("", []Registrant{{Plugin: "c"}})
		synctest.Wait()
		w.values(51, "n", `{"by":"C","data":{"at":50}}`)
		w.r.SetMembers("", []Registrant{{Plugin: "c"}, {Plugin: "b"}})
		synctest.Wait()
		w.values(51, "n", `{"by":"B","data":{"at":50}}`)
	})
}

func TestAnUpgradeOfALiveProcessLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		n := fakeplugin.Chain("n", "a")
		p, gs := w.plugin("p", n)
		p.OnDeath(nil)
		w.append(many(30, "a")...)
		w.values(29, "n", want(t, n, w.log.events, 29))
		old := p.Process()
		hold := make(chan struct{})
		p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Gen(1))
		w.append(many(30, "a")...)
		synctest.Wait()
		gs[0].Resume(p.Start())
		w.values(59, "n", want(t, n, w.log.events, 59))
		close(hold)
		old.Crash("drained")
		w.append("a")
		w.values(60, "n", want(t, n, w.log.events, 60))
	})
}

func TestABusySessionCannotKeepAReplacementAwayForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		g := w.register("p", fakeplugin.Counter("n", "a"))[0]
		w.append(many(2000, "a")...)
		w.values(1999, "n", "2000")
		def := fakeplugin.Version(fakeplugin.Chain("n", "a"), 2)
		p := w.fake(def)
		// Each batch of the new one is answered only after another event was appended.
		p.Add(fakeplugin.Reply(func(unit.Batch, *unit.Reply) { w.append("a") }).Times(500))
		if err := w.r.Replace(g, p.Definition("n")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if w.s.slots[0].next != nil {
			t.Errorf("after %d events the old one still serves", w.log.head()+1)
		}
		b := w.snapshot()
		if v := string(b.Values["n"]); v != want(t, def, w.log.events, b.AsOfSeq) {
			t.Errorf("n is %s (%+v)", v, b.Unavailable)
		}
	})
}

func TestDetachDropsTheCells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"), fakeplugin.Counter("m", "b"))
		w.append("a", "b")
		w.values(1, "n", "1", "m", "1")
		if n := p.Process().Cells(); n != 2 {
			t.Fatalf("%d cells", n)
		}
		w.s.Detach(false)
		synctest.Wait()
		if n := p.Process().Cells(); n != 0 {
			t.Errorf("%d cells are left", n)
		}
		w.attach(Rows{})
		w.values(1, "n", "1", "m", "1")
	})
}

func TestALongBuildDoesNotDelayTheLiveCells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{BatchEvents: 10}, events(many(1000, "a")...)...)
		p := w.fake(fakeplugin.Counter("live", "b"), fakeplugin.Counter("late", "a"))
		w.register("p", p.Definition("live"))
		w.append("b")
		w.values(1000, "live", "1")
		w.register("p", p.Definition("late"))
		step := make(chan struct{})
		p.Add(fakeplugin.Hold(fakeplugin.AtBatch, step))
		go func() { _, _ = w.s.Snapshot(context.Background(), "late") }()
		synctest.Wait()
		e := w.listen()
		w.append("b")
		for range 6 {
			step <- struct{}{}
			synctest.Wait()
		}
		same(t, "feed", e.take(), "s live@1001=2")
		close(step)
		w.values(1001, "live", "2", "late", "1000")
	})
}

func TestAStateThatEndsTheProcessIsFoundToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var found poisoned
		w := given(t, Options{Poisoned: found.tell})
		n := fakeplugin.Chain("n", "a")
		p, _ := w.plugin("p", n, fakeplugin.Chain("m", "b"))
		w.append("a", "b", "a")
		w.values(2, "n", want(t, n, w.log.events, 2), "m", want(t, fakeplugin.Chain("m", "b"), w.log.events, 2))
		open := map[unit.CellID]bool{}
		f := p.Add(fakeplugin.Crash(fakeplugin.AtBatch).When(func(s fakeplugin.Site) bool {
			for _, o := range s.Batch.Open {
				open[o.Cell] = o.Key == "n"
			}
			for _, id := range s.Batch.States {
				if of, known := open[id]; of || !known {
					return true
				}
			}
			return false
		}))
		if _, err := w.s.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		rows, err := w.s.Checkpoint(t.Context())
		if _, ok := rows.Rows["n"]; ok || err != nil {
			t.Errorf("rows %+v, %v", rows, err)
		}
		w.values(2, "n", "!faulted", "m", want(t, fakeplugin.Chain("m", "b"), w.log.events, 2))
		if f.Fired() < 2 || f.Fired() > 3 {
			t.Errorf("it died %d times", f.Fired())
		}
		same(t, "poisoned", found.all(), "p s n@2")
	})
}

// A unit for which a batch was too slow gets smaller ones, so that a long build does not end its process each time.
func TestABatchThatWasTooSlowIsHalvedFromThenOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{BatchEvents: 8, Window: 1, BatchDeadline: time.Second}, events(many(64, "a")...)...)
		w.log.page = 64
		p, gs := w.plugin("p", fakeplugin.Counter("n", "a"))
		for _, most := range []int{4, 2} {
			p.Forget()
			p.Add(fakeplugin.Stall(fakeplugin.AtReply).When(func(s fakeplugin.Site) bool { return len(s.Batch.Events) > 0 }).Once())
			w.s.Detach(false)
			w.attach(Rows{})
			if _, err := w.s.SnapshotWithin(t.Context(), time.Minute); err != nil { // the deadline ends in this time
				t.Fatal(err)
			}
			gs[0].Suspend(Restarting, "it was too slow")
			gs[0].Resume(p.Start())
			w.values(63, "n", "64")
			first, later := 0, 0
			for _, m := range p.Messages() {
				if n := len(m.Batch.Events); first == 0 {
					first = n
				} else {
					later = max(later, n)
				}
			}
			if first != 2*most {
				t.Errorf("the batch that was too slow had %d events, want %d", first, 2*most)
			}
			if later < most || later > 2*most {
				t.Errorf("then one had %d events, want %d", later, most)
			}
			if got := w.s.slots[0].cur.b.batchEvents(8); got != most {
				t.Errorf("a batch may have %d events, want %d", got, most)
			}
		}
	})
}

// Definitions of one registrant that name one instance are one process, as long as one of them is there.
func TestAProcessIsSharedUntilItsLastRegistrationIsReleased(t *testing.T) {
	w := given(t, Options{})
	p := w.fake(fakeplugin.Counter("n", "a"), fakeplugin.Counter("m", "a"), fakeplugin.Counter("k", "a"))
	serving := func(g *Registration) *process {
		pr, _ := g.binding().process()
		return pr
	}
	n := w.register("p", p.Definition("n"))[0]
	m := w.register("p", p.Definition("m"))[0]
	shared := serving(n)
	n.Release()
	k := w.register("p", p.Definition("k"))[0]
	if serving(m) != shared || serving(k) != shared {
		t.Error("one instance is several processes")
	}
	k.Resume(p.Process())
	if serving(k) != shared {
		t.Error("it is another process when it is named again")
	}
	if n := len(w.r.procs); n != 1 {
		t.Errorf("%d processes are known", n)
	}
	m.Release()
	k.Release()
	if n := len(w.r.procs); n != 0 {
		t.Errorf("%d processes are known, and nobody is registered", n)
	}
}

func TestAnInlineRegistrationHasNoProcess(t *testing.T) {
	w := given(t, Options{})
	p := w.fake(fakeplugin.Counter("other", "a"))
	g := w.register("p", fakeplugin.Counter("n", "a"))[0]
	g.Suspend(Parked, "it is parked")
	g.Resume(p.Process())
	w.append("a")
	w.values(0, "n", "1")
	if pr, down := g.binding().process(); pr != nil || down != nil {
		t.Errorf("%v, %+v", pr, down)
	}
}

// A successor of a live process may be named while sessions are open that have no cell of it, or not even the key.
func TestASuccessorIsNamedWhereNobodyHasACell(t *testing.T) {
	w := given(t, Options{})
	p := w.fake(fakeplugin.Counter("n", "a"))
	g := w.register("p", p.Definitions()...)[0]
	w.r.SetMembers("empty", nil)
	w.r.Attach(newSampleLog("o"), "empty", -1, Rows{})
	w.r.SetMembers("others", []Registrant{{Plugin: "q"}})
	w.register("q", fakeplugin.Counter("m", "a"))
	w.r.Attach(newSampleLog("o2"), "others", -1, Rows{})
	w.append("x")
	g.Resume(p.Start())
	w.append("a")
	w.values(1, "n", "1", "m", "1")
}

// A cell that is replaced before it has a value is dropped where it was opened.
func TestACellThatIsReplacedOnItsWayIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{ReadWait: time.Minute})
		p := w.fake(fakeplugin.Counter("n", "a"))
		g := w.register("p", p.Definitions()...)[0]
		hold := make(chan struct{})
		p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Once())
		w.append("a")
		synctest.Wait()
		if err := w.r.Replace(g, fakeplugin.Counter("n", "a")); err != nil {
			t.Fatal(err)
		}
		close(hold)
		w.values(0, "n", "1")
		synctest.Wait()
		if c := p.Counts(); c.Opened != 1 || c.Dropped != 1 {
			t.Errorf("%d cells were opened and %d dropped", c.Opened, c.Dropped)
		}
	})
}

// Of two that wait to take over in turn, the one that is not needed any more is dropped as well.
func TestASuccessorThatIsReplacedIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		g := w.register("p", fakeplugin.Counter("n", "a"))[0]
		w.append("a")
		w.values(0, "n", "1")
		p := w.fake(fakeplugin.Version(fakeplugin.Counter("n", "a"), 2))
		hold := make(chan struct{})
		p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Once())
		if err := w.r.Replace(g, p.Definitions()[0]); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.values(0, "n", "1")
		if err := w.r.Replace(g, fakeplugin.Version(fakeplugin.Counter("n", "a"), 3)); err != nil {
			t.Fatal(err)
		}
		close(hold)
		synctest.Wait()
		w.values(0, "n", "1")
		if c := p.Counts(); c.Opened != 1 || c.Dropped != 1 {
			t.Errorf("%d cells were opened and %d dropped", c.Opened, c.Dropped)
		}
	})
}

// The successor of a live process may be another program and is given the faulted cells. After a crash they stay as they are, and so they do
// where the same process is named again.
func TestOnlyTheSuccessorOfALiveProcessTriesFaultedCellsAgain(t *testing.T) {
	for name, c := range map[string]struct {
		next func(p *fakeplugin.Plugin, g *Registration)
		want string
	}{
		"a successor":    {func(p *fakeplugin.Plugin, g *Registration) { g.Resume(p.Start()) }, "1"},
		"the same again": {func(p *fakeplugin.Plugin, g *Registration) { g.Resume(p.Process()) }, "!faulted"},
		"after a crash": {func(p *fakeplugin.Plugin, g *Registration) {
			p.Crash()
			g.Suspend(Restarting, "it crashed")
			g.Resume(p.Start())
		}, "!faulted"},
		"after a crash that nobody reported": {func(p *fakeplugin.Plugin, g *Registration) {
			pr, _ := g.binding().process()
			p.Crash()
			pr.die(Restarting, "it is gone")
			g.Resume(p.Start())
		}, "!faulted"},
		"after a pause": {func(p *fakeplugin.Plugin, g *Registration) {
			g.Suspend(Starting, "it is not ready")
			g.Resume(p.Process())
		}, "!faulted"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := given(t, Options{})
				p, gs := w.plugin("p", fakeplugin.Counter("n", "a"))
				p.OnDeath(nil)
				p.Add(fakeplugin.Fail(fakeplugin.AtEvent, "no").Once())
				w.append("a")
				w.values(0, "n", "!faulted")
				c.next(p, gs[0])
				synctest.Wait()
				w.values(0, "n", c.want)
			})
		})
	}
}

// A retry of what ended a process begins where it ended: it need not be found a second time among all that was in flight.
func TestARetryOfWhatEndedAProcessGoesOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{ReadWait: time.Hour})
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"))
		p.Add(fakeplugin.Crash(fakeplugin.AtEvent).Seq(5))
		w.append(many(10, "a")...)
		synctest.Wait()
		w.values(9, "n", "!faulted")
		before := p.Counts().Deaths
		if _, err := w.s.Retry(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if b := w.values(9, "n", "!faulted"); b.Unavailable["n"].FailedAt != 5 {
			t.Errorf("%+v", b.Unavailable["n"])
		}
		if n := p.Counts().Deaths - before; n != 2 {
			t.Errorf("the retry ended %d processes, want the two that convict", n)
		}
	})
}

func TestReleasedCellsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		p := w.fake(fakeplugin.Counter("n", "a"), fakeplugin.Counter("m", "a"))
		gs := w.register("p", p.Definitions()...)
		w.append("a")
		w.values(0, "n", "1", "m", "1")
		gs[0].Release()
		synctest.Wait()
		w.append("a")
		w.values(1, "m", "2")
		if c := p.Counts(); c.Opened != 2 || c.Dropped != 1 {
			t.Errorf("%d cells were opened and %d dropped", c.Opened, c.Dropped)
		}
	})
}

// A look into the past says why a plugin cannot be asked.
func TestThePastOfAPluginThatIsAwaySaysWhy(t *testing.T) {
	w := given(t, Options{})
	p := w.fake(fakeplugin.Counter("n", "a"))
	g := w.register("p", p.Definitions()...)[0]
	w.append("a")
	g.Suspend(Parked, "it was parked")
	b, err := w.s.SnapshotAt(t.Context(), 0)
	if u := b.Unavailable["n"]; err != nil || u.Code != Parked || u.Message != "it was parked" || u.Seq != -1 {
		t.Errorf("%+v, %v", b, err)
	}
}

// A state against its schema is no row to start from again.
func TestAStateAgainstItsSchemaIsNotFoldedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"))
		w.append("a", "a", "a")
		w.values(2, "n", "3")
		lie := p.Add(fakeplugin.State(json.RawMessage("-5")).Once())
		rows, err := w.s.Checkpoint(t.Context())
		if _, kept := rows.Rows["n"]; err != nil || kept || lie.Fired() != 1 {
			t.Errorf("%+v, %v", rows, err)
		}
		p.Crash()
		synctest.Wait()
		w.append("a")
		synctest.Wait()
		w.values(3, "n", "4")
	})
}
