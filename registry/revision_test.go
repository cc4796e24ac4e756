package registry

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
	"github.com/foldhost/foldhost/unit"
)

// Of all that is said about a key of a session, later words count as newer: by revision, then by seq.

func TestAColdSetThatNobodyOpenedGetsANewRevisionAtATakeover(t *testing.T) {
	r := New(Options{})
	defer r.Close()
	register(t, r, "b", fakeplugin.Prefixed("n", "b", "a"))
	log := newSampleLog("s", events("a")...)
	cold := func() int64 {
		t.Helper()
		block, _, err := r.RestoreFrom(t.Context(), "nobody's", Rows{}, log, 0)
		if err != nil {
			t.Fatal(err)
		}
		return block.Revs["n"]
	}
	first := cold()
	a := register(t, r, "a", fakeplugin.Prefixed("n", "a", "a"))
	second := cold()
	a[0].Release()
	third := cold()
	if first >= second || second >= third {
		t.Errorf("revisions %d, %d, %d", first, second, third)
	}
}

// While a takeover is pending the one before serves on, and what it says then may have a new revision.
func TestWhoWasStillWaitingToTakeOverWhenTheSessionWentColdIsNewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		w.plugin("q", fakeplugin.Prefixed("n", "q", "a"))
		w.append("a")
		w.snapshot()
		p := w.fake(fakeplugin.Prefixed("n", "p", "a"))
		hold := make(chan struct{})
		p.Add(fakeplugin.Hold(fakeplugin.AtBatch, hold).Once())
		w.register("p", p.Definitions()...)
		synctest.Wait()
		w.s.mu.Lock()
		w.s.renew(w.s.slots[0].cur) // as after a crash and a recovery of q
		told := w.s.slots[0].cur.rev
		w.s.mu.Unlock()
		w.s.Detach(false)
		w.attach(Rows{})
		close(hold)
		if b := w.snapshot(); b.Revs["n"] <= told {
			t.Errorf("%s has revision %d, after one of %d", b.Values["n"], b.Revs["n"], told)
		}
	})
}

// hooked calls something while a state is encoded, which a takeover does.
type hooked struct {
	unit.Inline
	hook func()
}

func (h hooked) Encode(s unit.State) (json.RawMessage, error) {
	h.hook()
	return h.Inline.Encode(s)
}

func TestAKeyThatComesBackIsNewerThanItsRemoval(t *testing.T) {
	w := given(t, Options{})
	generation := func() int64 {
		w.r.mu.Lock()
		defer w.r.mu.Unlock()
		return w.r.gen
	}
	back := make(chan struct{})
	var once sync.Once
	a := fakeplugin.Counter("a", "x")
	a.Inline = hooked{a.Inline, func() {
		once.Do(func() {
			// Key a changes hands. Key b is about to be told as gone, and is there again before that.
			before := generation()
			go func() {
				defer close(back)
				w.r.SetMembers("", []Registrant{{Plugin: "o"}, {Plugin: "q"}})
			}()
			for generation() == before {
				time.Sleep(time.Microsecond)
			}
		})
	}}
	w.register("q", a, fakeplugin.Counter("b", "x"))
	w.register("o", fakeplugin.Counter("a", "x"))
	w.r.SetMembers("", []Registrant{{Plugin: "q"}})
	w.append("x")
	w.snapshot()
	removed := make(chan int64, 1)
	defer w.r.OnChange(func(c Change) {
		if c.Kind == KindRemoved {
			removed <- c.Rev
		}
	})()
	w.r.SetMembers("", []Registrant{{Plugin: "o"}})
	<-back
	if block, gone := w.snapshot("b"), <-removed; block.Revs["b"] <= gone {
		t.Errorf("revision %d, after a removal of %d", block.Revs["b"], gone)
	}
}

// A cold read that takes long must not end up newer than the session that has become live meanwhile.
func TestAColdReadIsAsOldAsItsBeginning(t *testing.T) {
	w := given(t, Options{}, events("a")...)
	g := w.register("p", fakeplugin.Counter("n", "a"))[0]
	w.s.Detach(false)
	open := w.shut()
	block := make(chan Block)
	go func() {
		b, _, err := w.r.RestoreFrom(context.Background(), "", Rows{}, w.gatedLog, 0)
		if err != nil {
			t.Error(err)
		}
		block <- b
	}()
	for w.atGate.Load() == 0 {
		time.Sleep(time.Microsecond)
	}
	w.attach(Rows{})
	w.s.mu.Lock()
	live := w.s.newCell(g.binding(), 0).rev
	w.s.mu.Unlock()
	g.binding().raise(w.r.revs.Add(1)) // as by a recovery in another session
	open()
	if b := <-block; b.Revs["n"] > live {
		t.Errorf("revision %d, and that of the live session is %d", b.Revs["n"], live)
	}
}

// What a session said of a key after a recovery must not be outdone by what was stored before.
func TestAColdReadIsNotOlderThanARecovery(t *testing.T) {
	w := given(t, Options{})
	sick := true
	d := fakeplugin.Counter("n", "a")
	f := d.Inline.(fakeplugin.Fold)
	on := f.On
	f.On = func(s string, ev *event.Event) (string, error) {
		if sick {
			return "", errors.New("no")
		}
		return on(s, ev)
	}
	d.Inline = f
	w.register("p", d)
	w.append("a")
	w.values(0, "n", "!faulted")
	sick = false
	told, err := w.s.Retry(t.Context())
	if err != nil || string(told.Values["n"]) != "1" {
		t.Fatalf("%s, %+v, %v", told.Values, told.Unavailable, err)
	}
	rows, err := w.s.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.s.Detach(false)
	if b := w.r.ViewRows("", rows); b.Revs["n"] < told.Revs["n"] {
		t.Errorf("revision %d, after one of %d", b.Revs["n"], told.Revs["n"])
	}
}
