package registry

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
	"pgregory.net/rapid"
)

func TestSnapshotAtEverySeqIsTheFoldOfThePrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{Epoch: "e.1"}, events("a", "b", "noise", "c", "a", "b", "b", "noise", "a")...)
		defs := []string{"chain", "all"}
		chain, all := fakeplugin.Chain("chain", "a", "c"), fakeplugin.Chain("all")
		w.register("here", chain)
		w.plugin("there", all, fakeplugin.HostOnly(fakeplugin.Counter("hidden")))
		w.append("a", "c")
		w.snapshot()
		for seq := int64(-1); seq <= w.log.head(); seq++ {
			b, err := w.s.SnapshotAt(t.Context(), seq)
			if err != nil {
				t.Fatal(err)
			}
			for i, def := range []string{want(t, chain, w.log.events, seq), want(t, all, w.log.events, seq)} {
				if got := string(b.Values[defs[i]]); got != def {
					t.Errorf("%s at %d = %s, want %s", defs[i], seq, got, def)
				}
			}
			if b.AsOfSeq != seq || !b.Historical || len(b.Values) != 2 || len(b.Unavailable) != 0 || b.Epoch != "e.1" || b.Revs["chain"] == 0 {
				t.Errorf("block at %d = %s", seq, b.AppendJSON(nil))
			}
		}
		if b, err := w.s.SnapshotAt(t.Context(), 3, "all", "absent", "hidden"); err != nil || len(b.Values) != 1 || len(b.Unavailable) != 0 {
			t.Errorf("narrowed to all: %s (%v)", b.AppendJSON(nil), err)
		}
	})
}

func TestSnapshotAtKnowsWhichSeqsThereAre(t *testing.T) {
	w := given(t, Options{}, events("a", "b")...)
	for _, seq := range []int64{-2, 2, 1 << 60} {
		var out *SeqRangeError
		if _, err := w.s.SnapshotAt(t.Context(), seq); !errors.As(err, &out) || out.Head != 1 {
			t.Errorf("at %d: error = %v, want a *SeqRangeError with head 1", seq, err)
		}
	}
	w.s.Detach(false)
	if _, err := w.s.SnapshotAt(t.Context(), 0); !errors.Is(err, ErrDetached) {
		t.Errorf("detached: error = %v", err)
	}
}

func TestSnapshotAtLeavesTheLiveCellsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{}, events("a", "a", "a")...)
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"))
		w.values(2, "n", "3")
		before := p.Process().Cells()
		if _, err := w.s.SnapshotAt(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if after := p.Process().Cells(); after != before {
			t.Errorf("the plugin holds %d cells, held %d before", after, before)
		}
		w.append("a")
		w.values(3, "n", "4")
	})
}

func TestSnapshotAtStartsFromTheBestRow(t *testing.T) {
	w := given(t, Options{})
	def := fakeplugin.Counter("n", "a")
	w.register("p", def)
	b := w.r.setBindings("")[0]
	for range 100 {
		w.append("a")
	}
	row := w.log.row(b, 59, "60", "60")
	w.s.Detach(false)
	for name, x := range map[string]struct {
		rows Rows
		read int
	}{
		"a sound row":             {Rows{Session: "s", Incarnation: "s.1", Rows: map[string]Row{"n": row}}, 20 + 1},
		"a row of another life":   {Rows{Session: "s", Incarnation: "s.0", Rows: map[string]Row{"n": row}}, 80},
		"a row of another branch": {Rows{Session: "s", Incarnation: "s.1", Rows: map[string]Row{"n": w.log.row(b, 200, "9", "9")}}, 80},
	} {
		t.Run(name, func(t *testing.T) {
			log := w.log.clone()
			s := w.r.Attach(log, "", log.head(), x.rows)
			defer s.Detach(false)
			block, err := s.SnapshotAt(t.Context(), 79)
			if err != nil || string(block.Values["n"]) != "80" {
				t.Errorf("block = %s (%v), want n = 80", block.AppendJSON(nil), err)
			}
			if log.given["a"] != x.read {
				t.Errorf("read %d events, want %d", log.given["a"], x.read)
			}
		})
	}
}

func TestAPluginThatHangsDelaysOnlyItsOwnPast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{ScratchWait: time.Second}, events("a", "a", "a")...)
		bad, _ := w.plugin("bad", fakeplugin.Counter("bad", "a"))
		w.plugin("good", fakeplugin.Counter("good", "a"))
		w.register("here", fakeplugin.Counter("here", "a"))
		release := make(chan struct{})
		hold := bad.Add(fakeplugin.Hold(fakeplugin.AtEvent, release).Key("bad"))
		b, err := w.s.SnapshotAt(t.Context(), 2)
		if err != nil || string(b.Values["good"]) != "3" || string(b.Values["here"]) != "3" {
			t.Errorf("block = %s (%v)", b.AppendJSON(nil), err)
		}
		if u := b.Unavailable["bad"]; u.Code != Behind || u.Seq != -1 || hold.Fired() == 0 {
			t.Errorf("bad is unavailable by %+v, want behind at -1", u)
		}
		close(release)
		synctest.Wait()
		if !bad.Process().Alive() || bad.Process().Gen() != 1 {
			t.Error("the reader who gave up took the process with it")
		}
		w.values(2, "bad", "3", "good", "3", "here", "3")
	})
}

func TestAReaderOfThePastWhoLeavesHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{}, events("a", "a", "a")...)
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"))
		w.values(2, "n", "3")
		release := make(chan struct{})
		hold := p.Add(fakeplugin.Hold(fakeplugin.AtEvent, release))
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := w.s.SnapshotAt(ctx, 1)
			failed <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) || hold.Fired() == 0 {
			t.Errorf("error = %v after %d holds", err, hold.Fired())
		}
		close(release)
		synctest.Wait()
		if g := p.Process().Gen(); g != 1 || !p.Process().Alive() {
			t.Errorf("the process is generation %d", g)
		}
		w.append("a")
		w.values(3, "n", "4")
	})
}

func TestOnlySoManyLookIntoThePastAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{MaxScratch: 2, ScratchWait: time.Second}, events("a")...)
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"))
		w.values(0, "n", "1")
		release := make(chan struct{})
		p.Add(fakeplugin.Hold(fakeplugin.AtEvent, release))
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _, _ = w.s.SnapshotAt(t.Context(), 0) })
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := w.s.SnapshotAt(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with both places taken the error is %v, want the context's", err)
		}
		wg.Wait()
		close(release)
		synctest.Wait()
		if b, err := w.s.SnapshotAt(t.Context(), 0); err != nil || string(b.Values["n"]) != "1" {
			t.Errorf("after they left: %s (%v)", b.AppendJSON(nil), err)
		}
		w.r.scratches <- struct{}{}
		w.r.scratches <- struct{}{}
		var busy *BusyError
		if _, err := w.s.SnapshotAt(t.Context(), 0); !errors.As(err, &busy) {
			t.Errorf("with both places taken for long the error is %v, want a *BusyError", err)
		}
		<-w.r.scratches
		<-w.r.scratches
	})
}

// A live cell that is faulted at an event shows its past up to there, and reading it does not run into the event again.
func TestThePastOfAFaultedKeyEndsBeforeItsFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{}, events("a", "a", "a", "a", "a")...)
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"))
		fail := p.Add(fakeplugin.Fail(fakeplugin.AtEvent, "no").Seq(3))
		w.values(4, "n", "!faulted")
		p.Heal()
		if b, err := w.s.SnapshotAt(t.Context(), 2); err != nil || string(b.Values["n"]) != "3" {
			t.Errorf("before the fault: %s (%v)", b.AppendJSON(nil), err)
		}
		for _, seq := range []int64{3, 4} {
			b, err := w.s.SnapshotAt(t.Context(), seq)
			if u := b.Unavailable["n"]; err != nil || u.Code != Faulted || u.FailedAt != 3 {
				t.Errorf("at %d: %s (%v)", seq, b.AppendJSON(nil), err)
			}
		}
		if fail.Fired() != 1 {
			t.Errorf("the event was folded %d times", fail.Fired())
		}
	})
}

// A process that dies of an event of a cold session dies of it three times at most, however often the session is read; then the
// fault of the key is known. The other keys have their values as soon as there is a process again.
func TestReadsDoNotEndAProcessAgainAndAgain(t *testing.T) {
	for name, fault := range map[string]func() *fakeplugin.Fault{
		"at an event": func() *fakeplugin.Fault { return fakeplugin.Crash(fakeplugin.AtEvent).Key("bad").Seq(7) },
		"at opening":  func() *fakeplugin.Fault { return fakeplugin.Crash(fakeplugin.AtOpen).Key("bad") },
		"by hanging":  func() *fakeplugin.Fault { return fakeplugin.Hang(fakeplugin.AtEvent).Key("bad").Seq(7) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var poisoned []int64
				w := given(t, Options{Poisoned: func(_ Registrant, session, key string, seq int64) {
					mu.Lock()
					defer mu.Unlock()
					if session != "cold" || key != "bad" {
						t.Errorf("poisoned: %s of %s", key, session)
					}
					poisoned = append(poisoned, seq)
				}})
				p, _ := w.plugin("p", fakeplugin.Counter("bad", "a"), fakeplugin.Counter("good", "a"))
				crash := p.Add(fault())
				log := newSampleLog("cold", events("a", "a", "a", "a", "a", "a", "a", "a", "a", "a")...)
				var last Block
				for range 10 {
					deaths := crash.Fired()
					b, _, err := w.r.RestoreFrom(t.Context(), "", Rows{}, log, 9)
					if err != nil {
						t.Fatal(err)
					}
					if _, ok := b.Values["bad"]; ok {
						t.Fatalf("bad has a value: %s", b.AppendJSON(nil))
					}
					last = b
					if name == "by hanging" && crash.Fired() > deaths {
						p.Crash() // what a supervisor does with a process that missed its deadline
					}
					synctest.Wait()
				}
				if u := last.Unavailable["bad"]; u.Code != Faulted || string(last.Values["good"]) != "10" {
					t.Errorf("in the end: %s", last.AppendJSON(nil))
				}
				if n := crash.Fired(); n < 2 || n > 3 {
					t.Errorf("the process died of it %d times, want twice or three times", n)
				}
				mu.Lock()
				defer mu.Unlock()
				if len(poisoned) != 1 {
					t.Errorf("told of poison at %v, want once", poisoned)
				}
			})
		})
	}
}

func TestASuspectThatGetsThroughIsCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"))
		p.Add(fakeplugin.Crash(fakeplugin.AtEvent).Seq(1).Once())
		log := newSampleLog("cold", events("a", "a", "a")...)
		for i, want := range []string{"", "3", "3"} {
			b, _, err := w.r.RestoreFrom(t.Context(), "", Rows{}, log, 2)
			if err != nil || string(b.Values["n"]) != want {
				t.Errorf("read %d: %s (%v), want %q", i, b.AppendJSON(nil), err, want)
			}
			synctest.Wait()
		}
		if n := len(w.r.poison.records); n != 0 {
			t.Errorf("%d records are left", n)
		}
	})
}

// Somebody kills the process at every step at which the cell is tried, once each. That is nobody's fault: the cell is never convicted and comes
// to its value.
func TestAColdCellIsNotConvictedByKillsFromOutside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{Poisoned: func(_ Registrant, session, key string, seq int64) {
			t.Errorf("%s of %s is convicted at %d", key, session, seq)
		}})
		p, _ := w.plugin("p", fakeplugin.Chain("n", "a"))
		const n = 12
		log := newSampleLog("cold", events(many(n, "a")...)...)
		// Twice at the opening: with others, and alone.
		kills := []*fakeplugin.Fault{p.Add(fakeplugin.Crash(fakeplugin.AtOpen).Times(2))}
		for seq := range int64(n) {
			kills = append(kills, p.Add(fakeplugin.Crash(fakeplugin.AtEvent).Seq(seq).Once()))
		}
		states := func(s fakeplugin.Site) bool { return len(s.Batch.States) > 0 }
		kills = append(kills, p.Add(fakeplugin.Crash(fakeplugin.AtReply).When(states).Once()))
		want := want(t, fakeplugin.Chain("n", "a"), log.events, n-1)
		var last Block
		for range 2 + n + 1 + 1 {
			b, _, err := w.r.RestoreFrom(t.Context(), "", Rows{}, log, n-1)
			if err != nil {
				t.Fatal(err)
			}
			if u, ok := b.Unavailable["n"]; ok && u.Code != Restarting {
				t.Fatalf("unavailable: %+v", u)
			}
			last = b
			synctest.Wait()
		}
		if string(last.Values["n"]) != want {
			t.Errorf("in the end: %s, want %s", last.AppendJSON(nil), want)
		}
		for i, k := range kills {
			if k.Fired() == 0 {
				t.Errorf("kill %d did not happen", i)
			}
		}
		if n := len(w.r.poison.records); n != 0 {
			t.Errorf("%d records are left", n)
		}
	})
}

func TestSnapshotAtIsTheFoldWhateverTheLog(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		log := drawLog(rt, "types")
		r, p, defs := zoo(t, Options{BatchEvents: 2})
		defer p.Close()
		defer r.Close()
		s := r.Attach(log, "", log.head(), Rows{})
		defer s.Detach(false)
		seq := rapid.Int64Range(-1, log.head()).Draw(rt, "seq")
		b, err := s.SnapshotAt(t.Context(), seq)
		if err != nil {
			rt.Fatal(err)
		}
		for _, def := range defs {
			if view, _ := folded(rt, def, log.events, seq); def.ViewSchema != nil && string(b.Values[def.Key]) != view {
				rt.Fatalf("%s at %d = %s, want %s", def.Key, seq, b.Values[def.Key], view)
			}
		}
	})
}

func TestARetryForgetsWhatEndedAProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{}, events("a", "a", "a")...)
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"))
		crash := p.Add(fakeplugin.Crash(fakeplugin.AtEvent).Seq(1))
		for range 4 {
			if _, err := w.s.SnapshotAt(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if b, err := w.s.SnapshotAt(t.Context(), 2); err != nil || b.Unavailable["n"].Code != Faulted || b.Unavailable["n"].FailedAt != 1 || crash.Fired() != 3 {
			t.Errorf("after %d deaths: %s (%v)", crash.Fired(), b.AppendJSON(nil), err)
		}
		p.Heal()
		if _, err := w.s.Retry(t.Context()); err != nil {
			t.Fatal(err)
		}
		if b, err := w.s.SnapshotAt(t.Context(), 2); err != nil || string(b.Values["n"]) != "3" {
			t.Errorf("after the retry: %s (%v)", b.AppendJSON(nil), err)
		}
	})
}
