package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
	"github.com/foldhost/foldhost/unit"
)

// A client takes a block of a generation as all that there is in it: keys that it does not name are removed.
func TestABlockHasAllKeysOfItsGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"))
		hold := make(chan struct{})
		p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Once())
		w.append("a")
		got := make(chan Block)
		go func() { got <- w.snapshot() }()
		synctest.Wait()
		w.register("q", fakeplugin.Constant("new", "7"))
		now := w.snapshot("new").Gen
		close(hold)
		if b := <-got; b.Gen >= now && b.Values["new"] == nil {
			t.Errorf("a block of generation %d does not have the key of generation %d", b.Gen, now)
		}
	})
}

func TestAKeyThatBecomesHostOnlyWhileItIsWaitedForIsAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		p, gs := w.plugin("p", fakeplugin.Counter("n", "a"), fakeplugin.Counter("m", "a"))
		hold := make(chan struct{})
		p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Once())
		w.append("a")
		got := make(chan Block)
		go func() { got <- w.snapshot() }()
		synctest.Wait()
		if err := w.r.Replace(gs[0], fakeplugin.HostOnly(fakeplugin.Counter("n", "a"))); err != nil {
			t.Fatal(err)
		}
		close(hold)
		b := <-got
		if _, down := b.Unavailable["n"]; down || b.Values["n"] != nil || string(b.Values["m"]) != "1" {
			t.Errorf("%s, %+v", b.Values, b.Unavailable)
		}
	})
}

// A busy session is never quite at its head. Who was told that a key trails is told its value all the same.
func TestAKeyThatWasLateFollowsAlsoInABusySession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{Window: 1})
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"))
		w.append("a")
		w.snapshot()
		e := w.listen()
		// Whenever an answer comes there is another event already.
		busy := p.Add(fakeplugin.Reply(func(b unit.Batch, _ *unit.Reply) {
			if len(b.Events) > 0 {
				w.append("a")
				time.Sleep(time.Millisecond) // the listener keeps up
			}
		}).Times(50))
		hold := make(chan struct{})
		p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Once())
		w.append("a")
		b, err := w.s.SnapshotWithin(t.Context(), 0)
		if err != nil || b.Unavailable["n"].Code != Behind {
			t.Fatalf("%+v, %v", b, err)
		}
		close(hold)
		time.Sleep(time.Second)
		synctest.Wait()
		if busy.Fired() != 50 {
			t.Fatalf("it was busy %d times", busy.Fired())
		}
		values := 0
		for _, c := range e.changes() {
			if c.Kind == KindValue {
				values++
			}
		}
		if values < 25 {
			t.Errorf("%d values of 51 were told", values)
		}
	})
}

// heardLate is what a listener hears who is busy with the first change of a session while the next come and something happens.
func heardLate(t *testing.T, happens func(*world)) (heard []string) {
	w := given(t, Options{})
	w.register("p", fakeplugin.Counter("n", "a"), fakeplugin.Counter("m", "a"))
	busy := make(chan struct{})
	defer w.r.OnChange(func(c Change) {
		<-busy
		heard = append(heard, line(c))
	})()
	w.append("a")
	synctest.Wait()
	w.append("a")
	happens(w)
	close(busy)
	synctest.Wait()
	return heard
}

func TestADeletedSessionIsNotHeardOfAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := heardLate(t, func(w *world) {
			w.s.Detach(true)
			// Another life of the same name, in which nothing has happened.
			w.log.mu.Lock()
			w.log.events = nil
			w.log.mu.Unlock()
			w.attach(Rows{})
		})
		if len(heard) != 1 {
			t.Errorf("heard %q; one may have been on its way, and no more", heard)
		}
	})
}

// The registration, the session and the listener may go from within the listener.
func TestAListenerMayChangeEverythingFromWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		g := w.register("p", fakeplugin.Counter("n", "a"))[0]
		var kinds []ChangeKind
		var remove func()
		remove = w.r.OnChange(func(c Change) {
			kinds = append(kinds, c.Kind)
			switch c.Kind {
			case KindValue:
				if _, err := w.r.Register(Registrant{Plugin: "q"}, fakeplugin.Counter("m", "a")); err != nil {
					t.Error(err)
				}
				w.snapshot()
				g.Release()
			case KindRemoved:
				w.s.Detach(false)
				remove()
			}
		})
		w.append("a")
		synctest.Wait()
		if _, err := w.s.Snapshot(t.Context()); err != ErrDetached {
			t.Errorf("heard %v, then %v", kinds, err)
		}
	})
}

// What is said of a key that failed: what it did reach, and separately where it failed.
func TestAFaultedKeySaysWhatItReachedAndWhereItFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, register := range map[string]func(w *world){
			"in process": func(w *world) { w.register("p", picky("n")) },
			"a plugin":   func(w *world) { w.plugin("p", picky("n")) },
		} {
			w := given(t, Options{}, events("x")...)
			register(w)
			e := w.listen()
			w.append("a", "x", "bad", "a")
			time.Sleep(time.Second)
			synctest.Wait()
			check := func(how string, u Unavailable) {
				t.Helper()
				if u.Code != Faulted || u.Seq != 2 || u.FailedAt != 3 {
					t.Errorf("%s, %s: %+v", name, how, u)
				}
			}
			check("snapshot", w.snapshot().Unavailable["n"])
			at, err := w.s.SnapshotAt(t.Context(), 4)
			if err != nil {
				t.Fatal(err)
			}
			check("past", at.Unavailable["n"])
			cold, _, err := w.r.RestoreFrom(t.Context(), "", Rows{}, w.log, 4)
			if err != nil {
				t.Fatal(err)
			}
			check("cold", cold.Unavailable["n"])
			told := 0
			for _, c := range e.changes() {
				if c.Kind == KindUnavailable {
					told++
					check("feed", *c.Unavailable)
					if c.Seq != 2 {
						t.Errorf("%s: told at %d", name, c.Seq)
					}
				}
			}
			for c, err := range w.s.Changes(t.Context(), 0) {
				if err != nil {
					t.Fatal(err)
				}
				if c.Kind == KindUnavailable {
					told++
					check("pull", *c.Unavailable)
				}
			}
			if told != 2 {
				t.Errorf("%s: told %d times", name, told)
			}
			w.s.Detach(false)
		}
	})
}

// Close, while everything else goes on, waits for all of it and leaves nothing behind.
func TestCloseDuringEverything(t *testing.T) {
	for range 30 {
		r := New(Options{BatchEvents: 2})
		p := fakeplugin.New(fakeplugin.Chain("n", "a"))
		p.OnDeath(func(*fakeplugin.Process) {})
		g := register(t, r, "p", p.Definitions()...)[0]
		register(t, r, "q", fakeplugin.Chain("m", "a"))
		r.OnChange(func(Change) {})
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				log := newSampleLog(fmt.Sprint("s", i))
				s := r.Attach(log, "", -1, Rows{})
				for seq := range int64(20) {
					ev := event.Event{Type: "a", Seq: seq, Data: json.RawMessage("{}")}
					log.append(ev)
					s.Publish(context.Background(), []event.Event{ev})
					switch seq % 6 {
					case 1:
						wg.Go(func() { _, _ = s.SnapshotWithin(context.Background(), time.Millisecond) })
					case 2:
						wg.Go(func() { _, _ = s.SnapshotAt(context.Background(), seq) })
					case 3:
						wg.Go(func() { _, _ = s.Checkpoint(context.Background()) })
					case 4:
						wg.Go(func() { _, _, _ = r.RestoreFrom(context.Background(), "", Rows{}, log, seq) })
					}
				}
				s.Detach(i == 0)
			})
		}
		wg.Go(func() { g.Resume(p.Start()) })
		wg.Go(p.Crash)
		wg.Go(func() { _ = r.Replace(g, fakeplugin.Version(fakeplugin.Chain("n"), 2)) })
		wg.Go(r.Close)
		wg.Go(r.Close)
		wg.Wait()
		p.Close()
	}
}

// A session may be deleted and made again under its id: what is told of it says which life it is about.
func TestChangesNameTheLifeThatTheyAreAbout(t *testing.T) {
	w := given(t, Options{})
	told := make(chan Change, 8)
	defer w.r.OnChange(func(c Change) { told <- c })()
	w.register("p", fakeplugin.Counter("n", "a"))
	w.append("a")
	want := map[ChangeKind]string{KindUnitAdded: "", KindValue: w.log.Incarnation()}
	for range want {
		c := <-told
		if life, known := want[c.Kind]; !known || c.Incarnation != life {
			t.Errorf("%v of incarnation %q, want %q", c.Kind, c.Incarnation, life)
		}
	}
}

// Who listens hears at once that a key trails, and once: whether the process was away before the event or died of it.
func TestAKeyThatTrailsForWantOfAProcessIsToldOnce(t *testing.T) {
	for name, lose := range map[string]func(w *world, p *fakeplugin.Plugin, g *Registration){
		"away before": func(w *world, p *fakeplugin.Plugin, g *Registration) {
			g.Suspend(Restarting, "it is away")
			w.append("a")
		},
		"gone with the event": func(w *world, p *fakeplugin.Plugin, g *Registration) {
			hold := make(chan struct{})
			defer close(hold)
			p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Once())
			w.append("a")
			synctest.Wait()
			p.Crash()
			g.Suspend(Restarting, "it crashed")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := given(t, Options{})
				p, gs := w.plugin("p", fakeplugin.Counter("n", "a"))
				p.OnDeath(nil)
				w.append("a")
				w.values(0, "n", "1")
				e := w.listen()
				lose(w, p, gs[0])
				synctest.Wait()
				same(t, "feed", e.take(), "s n@0!restarting")
				w.append("a")
				synctest.Wait()
				same(t, "feed after another event", e.take())
				gs[0].Resume(p.Start())
				synctest.Wait()
				// What it folds one by one may be told one by one.
				if got := e.take(); len(got) == 0 || got[len(got)-1] != "s n@2=3" {
					t.Errorf("feed after its return: %q", got)
				}
			})
		})
	}
}

func TestAKeyThatBecomesHostOnlyIsToldAsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		g := w.register("p", fakeplugin.Counter("n", "a"))[0]
		w.append("a")
		w.values(0, "n", "1")
		e := w.listen()
		if err := w.r.Replace(g, fakeplugin.HostOnly(fakeplugin.Counter("n", "a"))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		same(t, "feed", e.take(), "replaced n", "s n removed")
	})
}

// A reader who is behind another one's cut may leave without taking that away.
func TestAReaderWhoLeavesTheNextCutLeavesThePresentOneAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{ReadWait: time.Minute})
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"))
		hold := make(chan struct{})
		p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Once())
		w.append("a")
		first := make(chan Block)
		go func() { first <- w.snapshot() }()
		synctest.Wait()
		w.append("a", "a")
		ctx, cancel := context.WithCancel(t.Context())
		second := make(chan error)
		go func() { _, err := w.s.Snapshot(ctx); second <- err }()
		synctest.Wait()
		cancel()
		if err := <-second; err == nil {
			t.Error("a reader who left has a block")
		}
		close(hold)
		if b := <-first; b.AsOfSeq != 0 || string(b.Values["n"]) != "1" {
			t.Errorf("as of %d: %s, %+v", b.AsOfSeq, b.Values, b.Unavailable)
		}
		if w.s.pin != nil || w.s.nextPin != nil {
			t.Error("a pin is left")
		}
		w.values(2, "n", "3")
	})
}

// Who waits for a key that fails waits no longer.
func TestAReaderWaitsForNoKeyThatHasFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{ReadWait: time.Hour})
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"))
		hold := make(chan struct{})
		p.Add(fakeplugin.Fail(fakeplugin.AtEvent, "no"))
		p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Once())
		w.append("a")
		got := make(chan Block)
		began := time.Now()
		go func() { got <- w.snapshot() }()
		synctest.Wait()
		close(hold)
		if b := <-got; b.Unavailable["n"].Code != Faulted {
			t.Errorf("%s, %+v", b.Values, b.Unavailable)
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("it was waited for %v more", waited)
		}
	})
}

// What has been told of a session that goes cold is still heard.
func TestAListenerHearsTheLastOfASessionThatGoesCold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := heardLate(t, func(w *world) { w.s.Detach(false) })
		if !contains(heard, "s n@1=2") || !contains(heard, "s m@1=2") {
			t.Errorf("heard %q", heard)
		}
	})
}

// Who takes a key over in an idle session is heard of without anybody asking, and what is gone is newer than what was said of it.
func TestAnIdleSessionTellsWhoTakesOverAndWhatGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		b := w.register("b", fakeplugin.Prefixed("n", "B", "a"))[0]
		w.data("a", "1")
		w.values(0, "n", `{"by":"B","data":1}`)
		e := w.listen()
		a := w.register("a", fakeplugin.Prefixed("n", "A", "a"))[0]
		synctest.Wait()
		rev := e.changes()[len(e.changes())-1].Rev
		if got := e.take(); !contains(got, `s n@0={"by":"A","data":1}`) {
			t.Errorf("feed: %q", got)
		}
		b.Release()
		a.Release()
		synctest.Wait()
		for _, c := range e.changes() {
			if c.Kind == KindRemoved && c.Rev > rev {
				return
			}
		}
		t.Errorf("heard %+v; want a removal newer than revision %d", e.changes(), rev)
	})
}

// Who waits for a key that is released waits no longer, and who waits for the next cut gets it as soon as there is one.
func TestNobodyWaitsLongerThanThereIsSomethingToWaitFor(t *testing.T) {
	for name, then := range map[string]func(g *Registration, hold chan struct{}){
		"released": func(g *Registration, _ chan struct{}) { g.Release() },
		"there":    func(_ *Registration, hold chan struct{}) { close(hold) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := given(t, Options{ReadWait: time.Hour, BatchDeadline: 2 * time.Hour})
				p := w.fake(fakeplugin.Counter("n", "a"))
				g := w.register("p", p.Definitions()...)[0]
				hold := make(chan struct{})
				p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Once())
				got := make(chan Block, 2)
				for range 2 {
					w.append("a")
					go func() { got <- w.snapshot() }()
					synctest.Wait()
				}
				began := time.Now()
				then(g, hold)
				for range 2 {
					if b := <-got; len(b.Unavailable) != 0 {
						t.Errorf("as of %d: %+v", b.AsOfSeq, b.Unavailable)
					}
				}
				if waited := time.Since(began); waited > 0 {
					t.Errorf("readers waited for %v more", waited)
				}
				if name == "released" {
					close(hold)
				}
			})
		})
	}
}
