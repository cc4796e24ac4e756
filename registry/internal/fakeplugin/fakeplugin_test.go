package fakeplugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func marks(from, to int64) (evs []event.Event) {
	for s := from; s < to; s++ {
		evs = append(evs, event.Event{Type: "mark", Seq: s, Data: json.RawMessage(fmt.Sprintf("%d", s*10))})
	}
	return evs
}

// submit gives a channel of every answer to the batch.
func submit(ctx context.Context, in unit.Instance, b unit.Batch) <-chan unit.Reply {
	ch := make(chan unit.Reply, 8)
	in.Submit(ctx, b, func(r unit.Reply) { ch <- r })
	return ch
}

func opening(key string, cell unit.CellID, to int64, mode unit.Mode) unit.Batch {
	return unit.Batch{
		Open: []unit.Open{{Cell: cell, Key: key, Seq: -1}}, Cells: []unit.CellID{cell},
		Events: marks(0, to), Through: to - 1, Mode: mode, States: []unit.CellID{cell},
	}
}

func TestACellIsFoldedAsTheContractSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Counter("n", "mark"), Counter("none", "other"))
		defer p.Close()
		in := p.Process()

		r := <-submit(t.Context(), in, opening("n", 1, 3, unit.EveryChange))
		want(t, r.Values, "-1:0 0:1 1:2 2:3")
		if len(r.States) != 1 || string(r.States[0].State) != "3" || r.States[0].Seq != 2 {
			t.Errorf("states = %+v", r.States)
		}
		r = <-submit(t.Context(), in, opening("n", 1, 3, unit.LastOnly))
		want(t, r.Values, "2:3")
		r = <-submit(t.Context(), in, opening("none", 2, 3, unit.LastOnly))
		want(t, r.Values, "-1:0")
		r = <-submit(t.Context(), in, unit.Batch{Open: []unit.Open{{Cell: 3, Key: "n", State: json.RawMessage("8"), Seq: 4}}, Through: -1, Mode: unit.LastOnly})
		want(t, r.Values, "4:8")
		r = <-submit(t.Context(), in, unit.Batch{Cells: []unit.CellID{1}, Events: marks(1, 5), Through: 9, Mode: unit.EveryChange})
		want(t, r.Values, "3:4 4:5")
		r = <-submit(t.Context(), in, unit.Batch{Drop: []unit.CellID{1, 77}, Cells: []unit.CellID{1}, States: []unit.CellID{1}})
		if len(r.Unknown) != 1 || r.Unknown[0] != 1 {
			t.Errorf("unknown = %v", r.Unknown)
		}
		if n := in.Cells(); n != 2 {
			t.Errorf("%d cells are left, want 2", n)
		}
		if c := p.Counts(); c.Batches != 6 || c.Answers != 6 || c.Opened != 4 || c.Dropped != 2 || c.Types["mark"] != 13 {
			t.Errorf("counts = %+v", c)
		}
	})
}

func TestEveryFaultDoesWhatItSaysAndCounts(t *testing.T) {
	release := make(chan struct{})
	close(release)
	wrong := json.RawMessage(`"wrong"`)
	for name, c := range map[string]struct {
		fault *Fault
		look  func(t *testing.T, r unit.Reply)
	}{
		"crash at a batch":  {Crash(AtBatch), isGone},
		"crash in open":     {Crash(AtOpen).Key("n"), isGone},
		"crash at an event": {Crash(AtEvent).Seq(1), isGone},
		"crash at a reply":  {Crash(AtReply), isGone},
		"stall":             {Stall(AtEvent).Seq(1), isLate},
		"hang":              {Hang(AtBatch), isLate},
		"hold":              {Hold(AtBatch, release), func(t *testing.T, r unit.Reply) { want(t, r.Values, "-1:0 0:1 1:2 2:3") }},
		"late":              {Late(release), func(t *testing.T, r unit.Reply) { want(t, r.Values, "-1:0 0:1 1:2 2:3") }},
		"fault":             {Fail(AtEvent, "no").Seq(1), func(t *testing.T, r unit.Reply) { want(t, r.Values, "-1:0 0:1"); isFault(t, r, 1) }},
		"panic":             {Panic(AtEvent).Seq(2), func(t *testing.T, r unit.Reply) { want(t, r.Values, "-1:0 0:1 1:2"); isFault(t, r, 2) }},
		"fault in open":     {Fail(AtOpen, "no"), func(t *testing.T, r unit.Reply) { want(t, r.Values, ""); isFault(t, r, -1) }},
		"forget in open":    {ForgetCell(AtOpen), isUnknown},
		"forget at event":   {ForgetCell(AtEvent).Seq(1), isUnknown},
		"refuse": {Refuse(errors.New("bad protocol")), func(t *testing.T, r unit.Reply) {
			if r.Err == nil {
				t.Error("no error")
			}
		}},
		"wrong view": {View(wrong).Once(), func(t *testing.T, r unit.Reply) { want(t, r.Values, `-1:"wrong" 0:1 1:2 2:3`) }},
		"backwards":  {Backwards(), func(t *testing.T, r unit.Reply) { want(t, r.Values, "2:3 1:2 0:1 -1:0") }},
		"shift":      {Shift(5), func(t *testing.T, r unit.Reply) { want(t, r.Values, "4:0 5:1 6:2 7:3") }},
		"foreign":    {Foreign(99), func(t *testing.T, r unit.Reply) { want(t, r.Values, `-1:0 0:1 1:2 2:3 2:"foreign"`) }},
		"silent":     {Silent(), func(t *testing.T, r unit.Reply) { want(t, r.Values, "") }},
		"wrong state": {State(wrong), func(t *testing.T, r unit.Reply) {
			if len(r.States) != 1 || string(r.States[0].State) != string(wrong) {
				t.Errorf("states = %+v", r.States)
			}
		}},
		"no states": {NoStates(), func(t *testing.T, r unit.Reply) {
			if len(r.States) != 0 {
				t.Errorf("states = %+v", r.States)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := New(Counter("n", "mark"))
				defer p.Close()
				f := p.Add(c.fault)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				c.look(t, <-submit(ctx, p.Process(), opening("n", 1, 3, unit.EveryChange)))
				if f.Fired() == 0 {
					t.Error("the fault did not fire")
				}
			})
		})
	}
}

func TestTwiceAnswersTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Counter("n"))
		defer p.Close()
		p.Add(Twice())
		ch := submit(t.Context(), p.Process(), opening("n", 1, 1, unit.LastOnly))
		want(t, (<-ch).Values, "0:1")
		want(t, (<-ch).Values, "0:1")
	})
}

func TestALateAnswerComesAfterTheProcessIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Counter("n"))
		defer p.Close()
		release := make(chan struct{})
		p.Add(Late(release).Gen(1))
		first := submit(t.Context(), p.Process(), opening("n", 1, 1, unit.LastOnly))
		synctest.Wait()
		p.Crash()
		isGone(t, <-first)
		isGone(t, <-submit(t.Context(), p.Process(), opening("n", 1, 1, unit.LastOnly)))
		want(t, (<-submit(t.Context(), p.Start(), opening("n", 2, 1, unit.LastOnly))).Values, "0:1")
		close(release)
		want(t, (<-first).Values, "0:1")
	})
}

func TestACrashAnswersEverythingInFlightAndTellsTheSupervisor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Counter("n"))
		defer p.Close()
		next := make(chan *Process, 1)
		p.OnDeath(func(*Process) { next <- p.Start() })
		p.Add(Crash(AtBatch).Seq(1))
		hold := make(chan struct{})
		p.Add(Hold(AtBatch, hold).Once())
		one := submit(t.Context(), p.Process(), opening("n", 1, 1, unit.LastOnly))
		two := submit(t.Context(), p.Process(), opening("n", 2, 3, unit.LastOnly))
		three := submit(t.Context(), p.Process(), opening("n", 3, 1, unit.LastOnly))
		close(hold)
		want(t, (<-one).Values, "0:1")
		isGone(t, <-two)
		isGone(t, <-three)
		if pr := <-next; pr.Gen() != 2 || !pr.Alive() || pr.Cells() != 0 {
			t.Errorf("the next process is generation %d with %d cells", pr.Gen(), pr.Cells())
		}
		if d := p.Counts().Deaths; d != 1 {
			t.Errorf("%d deaths", d)
		}
	})
}

func want(t *testing.T, got []unit.Value, want string) {
	t.Helper()
	var s string
	for i, v := range got {
		if i > 0 {
			s += " "
		}
		s += fmt.Sprintf("%d:%s", v.Seq, v.View)
	}
	if s != want {
		t.Errorf("values = %s, want %s", s, want)
	}
}

func isGone(t *testing.T, r unit.Reply) {
	t.Helper()
	var gone *unit.GoneError
	if !errors.As(r.Err, &gone) {
		t.Errorf("error = %v, want a *unit.GoneError", r.Err)
	}
}

func isLate(t *testing.T, r unit.Reply) {
	t.Helper()
	var late *unit.DeadlineError
	if !errors.As(r.Err, &late) {
		t.Errorf("error = %v, want a *unit.DeadlineError", r.Err)
	}
}

func isFault(t *testing.T, r unit.Reply, seq int64) {
	t.Helper()
	if len(r.Faults) != 1 || r.Faults[0].Seq != seq || len(r.States) != 0 {
		t.Errorf("faults = %+v with states %v, want one at %d and no state", r.Faults, r.States, seq)
	}
}

func isUnknown(t *testing.T, r unit.Reply) {
	t.Helper()
	if len(r.Unknown) != 1 || len(r.States) != 0 {
		t.Errorf("unknown = %v with states %v", r.Unknown, r.States)
	}
}
