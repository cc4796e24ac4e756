package fakeplugin

import (
	"encoding/json"
	"errors"

	"github.com/foldhost/foldhost/unit"
)

// Place is a moment in the work of a process.
type Place uint8

const (
	// AtBatch: a batch is taken up.
	AtBatch Place = iota
	// AtOpen: a cell is about to be opened.
	AtOpen
	// AtEvent: an event is about to be applied to one cell.
	AtEvent
	// AtReply: the reply of a batch is complete.
	AtReply
	// atView: a view of one cell was made; see View.
	atView
)

// Fault is one way to misbehave. Make one with the functions below, narrow it with the methods, hand it to Plugin.Add. Not
// to be changed afterwards.
type Fault struct {
	plugin *Plugin
	place  Place
	match  []func(Site) bool
	left   int // how often it still fires; −1 is without end
	fired  int

	stop  stop
	cause error
	wait  <-chan struct{}
	view  json.RawMessage
	reply func(c *call, r unit.Reply)
}

// stop is what a fault does to the process or cell at its place.
type stop uint8

const (
	goOn stop = iota
	crash
	hang
	stall
	fail
	panics
	unknown
	refuse
)

// Add makes the plugin misbehave from now on. Of several faults that are due at one place the one added first fires.
func (p *Plugin) Add(f *Fault) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	f.plugin = p
	p.faults = append(p.faults, f)
	return f
}

// Heal takes all faults away.
func (p *Plugin) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = nil
}

// Fired says how often the fault did what it says.
func (f *Fault) Fired() int {
	f.plugin.mu.Lock()
	defer f.plugin.mu.Unlock()
	return f.fired
}

// Times bounds how often the fault fires; without it there is no end.
func (f *Fault) Times(n int) *Fault { f.left = n; return f }

// Once is Times(1).
func (f *Fault) Once() *Fault { return f.Times(1) }

// Key narrows to one unit. It means nothing AtBatch and AtReply.
func (f *Fault) Key(key string) *Fault { return f.When(func(s Site) bool { return s.Key == key }) }

// Seq narrows to one event: the one applied, or AtBatch and AtReply a batch that carries it.
func (f *Fault) Seq(seq int64) *Fault {
	return f.When(func(s Site) bool {
		if s.Event != nil {
			return s.Event.Seq == seq
		}
		for i := range s.Batch.Events {
			if s.Batch.Events[i].Seq == seq {
				return true
			}
		}
		return false
	})
}

// Gen narrows to one process.
func (f *Fault) Gen(gen int) *Fault { return f.When(func(s Site) bool { return s.Gen == gen }) }

// When narrows by what the test likes. It is called under the plugin's lock: look, do not call back.
func (f *Fault) When(match func(Site) bool) *Fault { f.match = append(f.match, match); return f }

func (f *Fault) due(s Site) bool {
	if f.place != s.Place || f.left == 0 {
		return false
	}
	for _, m := range f.match {
		if !m(s) {
			return false
		}
	}
	if f.left > 0 {
		f.left--
	}
	return true
}

func at(place Place) *Fault { return &Fault{place: place, left: -1} }

// Crash ends the process at the place, with every batch in flight.
func Crash(place Place) *Fault { f := at(place); f.stop = crash; return f }

// Hang stops the process at the place until it is crashed. Batches in flight are answered when their contexts end.
func Hang(place Place) *Fault { f := at(place); f.stop = hang; return f }

// Stall stops the process at the place until the context of the batch ends, which answers it; then the process goes on.
func Stall(place Place) *Fault { f := at(place); f.stop = stall; return f }

// Hold stops the process at the place until the channel is closed, or the process crashed.
func Hold(place Place, release <-chan struct{}) *Fault { f := at(place); f.wait = release; return f }

// Fail makes the unit answer with an error, AtOpen or AtEvent.
func Fail(place Place, message string) *Fault {
	f := at(place)
	f.stop, f.cause = fail, errors.New(message)
	return f
}

// Panic makes the unit panic AtEvent or AtOpen.
func Panic(place Place) *Fault { f := at(place); f.stop = panics; return f }

// ForgetCell makes the process forget the cell AtOpen (it is never made) or AtEvent.
func ForgetCell(place Place) *Fault { f := at(place); f.stop = unknown; return f }

// Refuse answers the batch with an error, without carrying it out.
func Refuse(err error) *Fault { f := at(AtBatch); f.stop, f.cause = refuse, err; return f }

// View puts another view in the place of the right one: against its schema, too large, not JSON.
func View(raw json.RawMessage) *Fault { f := at(atView); f.view = raw; return f }

// Reply hands the finished reply to a function that may change it. The slices are the reply's own.
func Reply(change func(b unit.Batch, r *unit.Reply)) *Fault {
	f := at(AtReply)
	f.reply = func(c *call, r unit.Reply) { change(c.batch, &r); c.answer(r) }
	return f
}

// Twice answers the batch twice.
func Twice() *Fault {
	f := at(AtReply)
	f.reply = func(c *call, r unit.Reply) { c.answer(r); c.answerAgain(r) }
	return f
}

// Late keeps the answer back until the channel is closed, while the process goes on: it overtakes itself. The answer then comes even when the
// batch was given up meanwhile (deadline, crash), so done is called once more than the contract says.
func Late(release <-chan struct{}) *Fault {
	f := at(AtReply)
	f.reply = func(c *call, r unit.Reply) {
		c.process.plugin.wg.Go(func() {
			<-release
			if !c.answer(r) {
				c.answerAgain(r)
			}
		})
	}
	return f
}

// Backwards gives the values of the batch in the wrong order. It changes nothing in a batch with less than two.
func Backwards() *Fault {
	return Reply(func(_ unit.Batch, r *unit.Reply) {
		for i, j := 0, len(r.Values)-1; i < j; i, j = i+1, j-1 {
			r.Values[i], r.Values[j] = r.Values[j], r.Values[i]
		}
	})
}

// Shift adds to the seq of every value: beyond what the batch was, before it, or of an event that is not the unit's.
func Shift(by int64) *Fault {
	return Reply(func(_ unit.Batch, r *unit.Reply) {
		for i := range r.Values {
			r.Values[i].Seq += by
		}
	})
}

// Foreign adds a value, a state and a fault of a cell that nobody opened.
func Foreign(cell unit.CellID) *Fault {
	return Reply(func(b unit.Batch, r *unit.Reply) {
		r.Values = append(r.Values, unit.Value{Cell: cell, Seq: b.Through, View: json.RawMessage(`"foreign"`)})
		r.States = append(r.States, unit.StateAt{Cell: cell, Seq: b.Through, State: json.RawMessage(`"foreign"`)})
		r.Faults = append(r.Faults, unit.Fault{Cell: cell, Seq: b.Through, Message: "foreign"})
	})
}

// State puts another state in the place of every state asked for.
func State(raw json.RawMessage) *Fault {
	return Reply(func(_ unit.Batch, r *unit.Reply) {
		for i := range r.States {
			r.States[i].State = raw
		}
	})
}

// Silent leaves the values out of the reply.
func Silent() *Fault { return Reply(func(_ unit.Batch, r *unit.Reply) { r.Values = nil }) }

// NoStates leaves the states out of the reply.
func NoStates() *Fault { return Reply(func(_ unit.Batch, r *unit.Reply) { r.States = nil }) }
