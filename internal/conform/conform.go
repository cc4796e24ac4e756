// Package conform holds a unit in a process against the laws of its contract, over the unit.Instance that a host would drive: no host, no
// session, no luck involved. It is what `foldhost plugin validate` and `plugin test` run.
//
// It only asks what any plugin must answer, and believes nothing: a law that is broken is a Violation, a plugin that does not answer
// ends the check. The package holds no state.
package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// The laws.
const (
	// Answers: opening a cell and folding an event it names gives no fault.
	Answers = "answers"
	// TrueToSchema: states and views pass their schemas.
	TrueToSchema = "true-to-schema"
	// Repeatable: the same log gives the same bytes twice.
	Repeatable = "repeatable"
	// SplitsAnywhere: folding in two parts through a state equals folding in one.
	SplitsAnywhere = "splits-anywhere"
	// LastIsLast: asking for the last value only gives the last of all values.
	LastIsLast = "last-is-last"
	// Indifferent: an event of a type that the unit does not name changes nothing.
	Indifferent = "indifferent"
)

// Violation is one law that a unit breaks. Seq is where, −1 for the empty log.
type Violation struct {
	Key, Law string
	Seq      int64
	Reason   string
}

func (v Violation) Error() string {
	return fmt.Sprintf("unit %q breaks %s at seq %d: %s", v.Key, v.Law, v.Seq, v.Reason)
}

// Explain says what a law asks for, and what the usual reason is when a unit breaks it. It is empty for a law that is not of this package.
func Explain(law string) string { return explanations[law] }

var explanations = map[string]string{
	Answers:        "a unit folds every event that it names, and has a state and a value after it",
	TrueToSchema:   "states and values pass the schemas that the plugin gave for them",
	Repeatable:     "the same log gives the same bytes; the usual reasons: a clock, randomness, or the order of a map in the fold",
	SplitsAnywhere: "folding on from the stored state gives the same; the usual reason: something that the state's JSON does not hold",
	LastIsLast:     "the value does not depend on how often it is asked for; the usual reason: a view that writes to the state",
	Indifferent:    "an event of a type that the unit does not name changes nothing",
}

// maxSplits bounds how often a log is folded again from the middle.
const maxSplits = 16

// firstCell: ids far from those of a registry, which counts from 1.
var lastCell atomic.Uint64

func newCell() unit.CellID { return unit.CellID(1<<48 + lastCell.Add(1)) }

// Check folds a log with each unit and holds it against the laws; the violations are in the order of the units. Events are in seq order. The error says
// that the plugin did not answer, or ended with ctx.
func Check(ctx context.Context, in unit.Instance, units []*unit.Compiled, events []event.Event) ([]Violation, error) {
	var all []Violation
	for _, u := range units {
		c := &checker{ctx: ctx, in: in, u: u}
		for i := range events {
			if u.Folds(events[i].Type) {
				c.events = append(c.events, events[i])
			}
		}
		err := c.run()
		if all = append(all, c.violations...); err != nil {
			return all, fmt.Errorf("unit %q: %w", u.Key, err)
		}
	}
	return all, nil
}

type checker struct {
	ctx        context.Context
	in         unit.Instance
	u          *unit.Compiled
	events     []event.Event
	violations []Violation
}

func (c *checker) breaks(law string, seq int64, format string, args ...any) {
	c.violations = append(c.violations, Violation{c.u.Key, law, seq, fmt.Sprintf(format, args...)})
}

// outcome is what folding a stretch gave.
type outcome struct {
	values []unit.Value
	state  json.RawMessage
	fault  *unit.Fault
}

func (o outcome) view() json.RawMessage {
	if len(o.values) == 0 {
		return nil
	}
	return o.values[len(o.values)-1].View
}

func (c *checker) run() error {
	straight, err := c.fold(nil, -1, c.events, unit.EveryChange)
	if err != nil {
		return err
	}
	if f := straight.fault; f != nil {
		c.breaks(Answers, f.Seq, "%s", f.Message)
		// A fault is the unit's right; what came before it is held against the laws all the same.
		n := 0
		for n < len(c.events) && c.events[n].Seq < f.Seq {
			n++
		}
		if c.events = c.events[:n]; f.Seq < 0 {
			return nil
		}
		if straight, err = c.fold(nil, -1, c.events, unit.EveryChange); err != nil || straight.fault != nil {
			return err
		}
	}
	if !c.sound(straight) {
		return nil
	}
	again, err := c.fold(nil, -1, c.events, unit.EveryChange)
	if err != nil {
		return err
	}
	c.same(Repeatable, c.last(), again, straight)
	only, err := c.fold(nil, -1, c.events, unit.LastOnly)
	if err != nil {
		return err
	}
	c.same(LastIsLast, c.last(), only, straight)
	for i := range min(maxSplits, len(c.events)+1) {
		at := i * (len(c.events) + 1) / min(maxSplits, len(c.events)+1)
		if err := c.split(at, straight); err != nil {
			return err
		}
	}
	return c.unrelated(straight)
}

func (c *checker) last() int64 {
	if len(c.events) == 0 {
		return -1
	}
	return c.events[len(c.events)-1].Seq
}

// sound checks what came against the schemas.
func (c *checker) sound(o outcome) bool {
	before := len(c.violations)
	for _, v := range o.values {
		if err := c.u.CheckView(v.View, 0); err != nil {
			c.breaks(TrueToSchema, v.Seq, "%v", err)
			return false
		}
	}
	if !c.u.HostOnly() && len(o.values) == 0 {
		c.breaks(Answers, -1, "there is no value of a cell that was opened")
	}
	if o.state == nil {
		c.breaks(Answers, c.last(), "a state was asked for and did not come")
	} else if err := c.u.CheckState(o.state, 0); err != nil {
		c.breaks(TrueToSchema, c.last(), "%v", err)
	}
	return len(c.violations) == before
}

func (c *checker) same(law string, seq int64, got, want outcome) {
	switch {
	case got.fault != nil:
		c.breaks(law, got.fault.Seq, "it fails: %s", got.fault.Message)
	case !bytes.Equal(got.state, want.state):
		c.breaks(law, seq, "the state is %s, not %s", cut(got.state), cut(want.state))
	case !bytes.Equal(got.view(), want.view()):
		c.breaks(law, seq, "the value is %s, not %s", cut(got.view()), cut(want.view()))
	}
}

func (c *checker) split(at int, straight outcome) error {
	head, err := c.fold(nil, -1, c.events[:at], unit.LastOnly)
	if err != nil {
		return err
	}
	seq := int64(-1)
	if at > 0 {
		seq = c.events[at-1].Seq
	}
	if head.fault != nil || head.state == nil {
		c.breaks(SplitsAnywhere, seq, "the first part gives no state")
		return nil
	}
	from := head.state
	if seq < 0 {
		from = nil
	}
	tail, err := c.fold(from, seq, c.events[at:], unit.LastOnly)
	if err != nil {
		return err
	}
	c.same(SplitsAnywhere, seq, tail, straight)
	return nil
}

// stranger is the type of an event that nobody names.
const stranger = "foldhost/conformance-stranger"

func (c *checker) unrelated(straight outcome) error {
	if c.u.Events == nil || straight.state == nil {
		return nil
	}
	seq := c.last()
	from := straight.state
	if seq < 0 {
		from = nil
	}
	o, err := c.fold(from, seq, []event.Event{{Type: stranger, Seq: seq + 1, Data: json.RawMessage(`{"any":["thing"]}`)}}, unit.LastOnly)
	if err != nil {
		return err
	}
	c.same(Indifferent, seq+1, o, straight)
	return nil
}

// batchEvents is how many events go into one batch: fewer than a host sends, so that a short log has several.
const batchEvents = 64

// fold folds events from a state (nil: init), and asks for the state at the end.
func (c *checker) fold(state json.RawMessage, seq int64, events []event.Event, mode unit.Mode) (o outcome, err error) {
	id := newCell()
	b := unit.Batch{Open: []unit.Open{{Cell: id, Key: c.u.Key, State: state, Seq: seq}}, Mode: mode}
	for {
		n := min(len(events), batchEvents)
		b.Cells, b.Events, events = []unit.CellID{id}, events[:n], events[n:]
		if n > 0 {
			seq = b.Events[n-1].Seq
		}
		b.Through = seq
		if len(events) == 0 {
			b.States = []unit.CellID{id}
		}
		r, err := c.ask(b)
		if err != nil {
			return o, err
		}
		o.values = append(o.values, r.Values...)
		if len(r.Faults) > 0 {
			o.fault = &r.Faults[0]
			break
		}
		if len(r.Unknown) > 0 {
			return o, fmt.Errorf("it does not know a cell that it has just opened")
		}
		if len(events) == 0 {
			if len(r.States) > 0 {
				o.state = r.States[0].State
			}
			break
		}
		b = unit.Batch{Mode: mode}
	}
	_, err = c.ask(unit.Batch{Drop: []unit.CellID{id}, Through: -1})
	return o, err
}

func (c *checker) ask(b unit.Batch) (unit.Reply, error) {
	got := make(chan unit.Reply, 1)
	c.in.Submit(c.ctx, b, func(r unit.Reply) { got <- r })
	r := <-got
	return r, r.Err
}

func cut(raw json.RawMessage) string {
	const most = 200
	if len(raw) == 0 {
		return "absent"
	}
	if len(raw) > most {
		return string(bytes.ToValidUTF8(raw[:most], nil)) + "…"
	}
	return string(raw)
}
