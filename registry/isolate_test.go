package registry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
)

// While a suspect is tried everybody else of its plugin waits. Whatever keeps it from being tried must not keep the others waiting.

// suspectIn makes the cells of w's session suspects: a process ends with a batch of theirs in flight, and the next one is not up yet.
func suspectIn(w *world, p *fakeplugin.Plugin, gs []*Registration) {
	p.OnDeath(nil)
	hold := make(chan struct{})
	defer close(hold)
	p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Once())
	w.append("a")
	synctest.Wait()
	p.Crash()
	for _, g := range gs {
		g.Suspend(Restarting, "it crashed")
	}
	synctest.Wait()
}

// suspected is a world whose session is suspectIn, and another session that waits for the same process.
func suspected(t *testing.T) (w *world, p *fakeplugin.Plugin, gs []*Registration, other *sampleLog, o *Session) {
	w = given(t, Options{ReadWait: time.Minute})
	p, gs = w.plugin("p", fakeplugin.Counter("n", "a"))
	other = newSampleLog("o")
	o = w.r.Attach(other, "", -1, Rows{})
	w.append("a")
	w.values(0, "n", "1")
	suspectIn(w, p, gs)
	return w, p, gs, other, o
}

func TestASuspectWhoseLogCannotBeReadKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p, gs, other, o := suspected(t)
		w.log.mu.Lock()
		w.log.err = errors.New("the disk is gone")
		w.log.mu.Unlock()
		gs[0].Resume(p.Start())
		evs := events("a")
		other.append(evs...)
		o.Publish(t.Context(), evs)
		b, err := o.Snapshot(t.Context())
		if err != nil || string(b.Values["n"]) != "1" {
			t.Errorf("the other session has %s, %+v, %v", b.Values, b.Unavailable, err)
		}
		w.log.mu.Lock()
		w.log.err = nil
		w.log.mu.Unlock()
		w.values(1, "n", "2")
	})
}

func TestASuspectThatIsBeingSucceededKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{BatchEvents: 4})
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"), fakeplugin.Counter("m", "b"))
		w.append("a", "a", "a", "a", "a", "a", "b")
		w.values(6, "n", "6", "m", "1")
		// The successor is as far as it takes to make the old one stop, and comes no further.
		a := w.fake(fakeplugin.Counter("n", "a"))
		never := make(chan struct{})
		defer close(never)
		a.Add(fakeplugin.Hold(fakeplugin.AtBatch, never).When(func(s fakeplugin.Site) bool {
			for _, ev := range s.Batch.Events {
				if ev.Seq >= 4 {
					return true
				}
			}
			return false
		}))
		hold := make(chan struct{})
		p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Once())
		w.append("a")
		def := a.Definition("n")
		def.StateSchema = []byte(`{"type":"integer","minimum":-1}`) // so that it folds by itself
		w.register("a", def)
		synctest.Wait()
		if !w.s.slots[1].cur.frozen {
			t.Fatal("the old cell does not wait for its successor")
		}
		p.Crash() // with n in flight
		close(hold)
		synctest.Wait()
		w.append("b")
		synctest.Wait()
		b, err := w.s.SnapshotWithin(t.Context(), time.Second, "m")
		if err != nil || string(b.Values["m"]) != "2" {
			t.Errorf("m is %s, %+v, %v", b.Values["m"], b.Unavailable["m"], err)
		}
	})
}

func TestASuspectThatMovesToAnotherProcessKeepsNobodyWaitingInTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{ReadWait: time.Minute})
		p, gs := w.plugin("p", fakeplugin.Counter("n", "a"), fakeplugin.Counter("m", "b"))
		w.append("a", "b")
		w.values(1, "n", "1", "m", "1")
		// n is a suspect in this process without its end: an answer makes no sense.
		p.Add(fakeplugin.Refuse(errors.New("makes no sense")).Once())
		hold := make(chan struct{})
		p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Once())
		w.append("a")
		synctest.Wait()
		second := p.Start()
		gs[0].Resume(second) // n alone
		synctest.Wait()
		close(hold)
		w.append("b")
		w.values(3, "n", "2", "m", "2")
	})
}

// The registration of a plugin that comes first by name but never gets anywhere must not stop the one that serves.
func TestAnOldCellServesOnWhenItsSuccessorIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{BatchEvents: 4})
		w.register("q", fakeplugin.Counter("n", "a"))
		w.append(many(20, "a")...)
		w.values(19, "n", "20")
		a := w.fake(fakeplugin.Counter("n", "a"))
		hold := make(chan struct{})
		// It opens and folds up to 15, then it hangs.
		a.Add(fakeplugin.Hold(fakeplugin.AtEvent, hold).When(func(s fakeplugin.Site) bool { return s.Event.Seq == 18 }))
		def := a.Definition("n")
		def.StateSchema = []byte(`{"type":"integer","minimum":-1}`) // so that it folds by itself
		g := w.register("a", def)[0]
		synctest.Wait()
		if !w.s.slots[0].cur.frozen {
			t.Fatal("the old cell does not wait for its successor")
		}
		a.OnDeath(nil)
		a.Crash()
		g.Suspend(Parked, "it crashes again and again")
		close(hold)
		w.append("a")
		synctest.Wait()
		w.values(20, "n", "21")
	})
}

func TestAnotherVersionOfALivePluginTriesItsFaultedCellsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{ReadWait: time.Minute})
		p, gs := w.plugin("p", fakeplugin.Counter("n", "a"))
		bug := p.Add(fakeplugin.Fail(fakeplugin.AtEvent, "a bug").Seq(1))
		w.append("a", "a")
		w.values(1, "n", "!faulted")
		p.Crash() // the same plugin started again: it would only fail again
		synctest.Wait()
		w.values(1, "n", "!faulted")
		if bug.Fired() != 1 {
			t.Errorf("it failed %d times", bug.Fired())
		}
		p.Heal()
		gs[0].Resume(p.Start()) // mended
		w.values(1, "n", "2")
	})
}

// Many suspects of many sessions at once: nobody is convicted who is innocent, nobody waits for ever.
func TestManySuspectsOfManySessionsAllComeThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{ReadWait: time.Minute})
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"), fakeplugin.Counter("m", "a"))
		hold := make(chan struct{})
		p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Once())
		var all []*Session
		for range 50 {
			log := newSampleLog("s")
			evs := []event.Event{{Type: "a"}}
			s := w.r.Attach(log, "", -1, Rows{})
			log.append(evs...)
			s.Publish(t.Context(), evs)
			all = append(all, s)
		}
		synctest.Wait()
		p.Crash()
		close(hold)
		for i, s := range all {
			if i%5 == 0 {
				s.Detach(false)
			}
		}
		synctest.Wait() // until the next process is there, a reader is rightly told "restarting"
		for i, s := range all {
			if i%5 == 0 {
				continue
			}
			b, err := s.Snapshot(context.Background())
			if err != nil || string(b.Values["n"]) != "1" || string(b.Values["m"]) != "1" {
				t.Fatalf("session %d has %s, %+v, %v", i, b.Values, b.Unavailable, err)
			}
		}
	})
}

// A faulted cell does not know what has happened since. What a reader waits for must not be taken from it.
func TestARetryWhileAReaderWaitsServesNothingOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{ReadWait: time.Minute, BatchEvents: 1, Window: 1})
		n := fakeplugin.Counter("n", "a")
		p, _ := w.plugin("p", n)
		q, _ := w.plugin("q", fakeplugin.Counter("m", "a"))
		p.Add(fakeplugin.Fail(fakeplugin.AtEvent, "a bug").Seq(2).Once())
		w.append("a", "a", "a")
		w.values(2, "n", "!faulted", "m", "3")
		hold := make(chan struct{})
		q.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Once())
		w.append("a", "a", "a")
		got := make(chan Block)
		go func() { got <- w.snapshot() }()
		synctest.Wait()
		go func() { _, _ = w.s.Retry(t.Context(), "n") }()
		synctest.Wait()
		close(hold)
		if b := <-got; b.Values["n"] != nil && string(b.Values["n"]) != "6" {
			t.Errorf("n is %s as of %d", b.Values["n"], b.AsOfSeq)
		}
	})
}

// The live counterpart of TestAColdCellIsNotConvictedByKillsFromOutside.
func TestACellIsNotConvictedByKillsFromOutside(t *testing.T) {
	for name, rows := range map[string]bool{"from init": false, "from a row": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := given(t, Options{ReadWait: time.Minute, Poisoned: func(_ Registrant, session, key string, seq int64) {
					t.Errorf("%s of %s is convicted at %d", key, session, seq)
				}})
				p, _ := w.plugin("p", fakeplugin.Chain("n", "a"))
				n := int64(6)
				w.append(many(int(n), "a")...)
				if rows {
					n += rowEvery
					w.append(many(rowEvery, "a")...)
				}
				w.values(n-1, "n", want(t, fakeplugin.Chain("n", "a"), w.log.events, n-1))
				var kills []*fakeplugin.Fault
				for seq := n; seq < n+8; seq++ {
					kills = append(kills, p.Add(fakeplugin.Crash(fakeplugin.AtEvent).Seq(seq).Once()))
				}
				again := func(s fakeplugin.Site) bool { return s.Gen > 3 }
				kills = append(kills, p.Add(fakeplugin.Crash(fakeplugin.AtOpen).When(again).Once()))
				w.append(many(8, "a")...)
				synctest.Wait() // until the next process is there, a reader is rightly told "restarting"
				w.values(n+7, "n", want(t, fakeplugin.Chain("n", "a"), w.log.events, n+7))
				for i, k := range kills {
					if k.Fired() == 0 {
						t.Errorf("kill %d did not happen", i)
					}
				}
			})
		})
	}
}

// A session may go cold while its suspect is tried; who waits for that goes on.
func TestASuspectWhoseSessionIsDetachedKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p, gs, other, o := suspected(t)
		open := w.shut()
		defer open()
		gs[0].Resume(p.Start())
		synctest.Wait()
		evs := events("a")
		other.append(evs...)
		o.Publish(t.Context(), evs)
		synctest.Wait()
		if b, err := o.SnapshotWithin(t.Context(), 0); err != nil || b.Unavailable["n"].Code != Behind {
			t.Errorf("while a suspect is to be tried: %s, %v", b.Values, err)
		}
		w.s.Detach(false)
		began := time.Now()
		b, err := o.Snapshot(t.Context())
		if err != nil || string(b.Values["n"]) != "1" || time.Since(began) > 0 {
			t.Errorf("the other session has %s, %+v, %v after %v", b.Values, b.Unavailable, err, time.Since(began))
		}
	})
}

// A suspect is tried alone: while its batch is out nobody else's is, or the next death would speak against both.
func TestNothingElseIsInFlightWhileASuspectIsTried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p, gs, other, o := suspected(t)
		hold := make(chan struct{})
		p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Once())
		p.Forget()
		gs[0].Resume(p.Start())
		synctest.Wait()
		evs := events("a")
		other.append(evs...)
		o.Publish(t.Context(), evs)
		synctest.Wait()
		in, _ := gs[0].binding().process()
		in.mu.Lock()
		flights, suspects := len(in.flights), len(in.suspects)
		in.mu.Unlock()
		if n := p.Counts().Batches; n != 1 || flights != 1 || suspects != 1 {
			t.Errorf("%d batches are out beside %d suspects; the process was sent %d", flights, suspects, n)
		}
		close(hold)
		b, err := o.Snapshot(t.Context())
		if err != nil || string(b.Values["n"]) != "1" {
			t.Errorf("the other session has %s, %+v, %v", b.Values, b.Unavailable, err)
		}
		w.values(1, "n", "2")
	})
}
