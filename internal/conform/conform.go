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
	"slices"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// The laws.
const (
	// Answers: opening a cell and folding an event that it names gives no fault.
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
	// AnswersBatches: each batch is answered with what it asks for, whatever else it holds or does not hold: openings alone, events alone,
	// a question for states alone, drops alone, all together, one after the other or several in flight.
	AnswersBatches = "answers-batches"
	// BesideOthers: folding beside the other units of the plugin gives what folding alone does.
	BesideOthers = "beside-others"
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
	AnswersBatches: "a host opens cells, sends events, asks for states and drops cells in one batch or in batches of their own; each is answered with the value of every cell that it opens and every state that it asks for",
	BesideOthers:   "a host folds all units of a plugin over a session in the same batches; the usual reason: something that they share",
}

// maxSplits bounds how often a log is folded again from the middle.
const maxSplits = 16

// Check folds a log with each unit and holds it against the laws; the violations are in the order of the units, one for each law at most. Events are in seq
// order. The error says that the plugin did not answer, or ended with ctx.
func Check(ctx context.Context, in unit.Instance, units []*unit.Compiled, events []event.Event) ([]Violation, error) {
	var all []Violation
	var sound []*checker
	for _, u := range units {
		c := newChecker(ctx, in, u, events)
		whole := len(c.events)
		err := c.run()
		if all = append(all, c.violations...); err != nil {
			return all, fmt.Errorf("unit %q: %w", u.Key, err)
		}
		if len(c.violations) == 0 && len(c.events) == whole {
			sound = append(sound, c)
		}
	}
	broken, err := beside(&driver{ctx, in}, sound, events)
	return append(all, broken...), err
}

// checker checks one unit over one log.
type checker struct {
	driver
	u *unit.Compiled
	// events are those that the unit folds, up to a fault, and straight is what they gave at first.
	events     []event.Event
	straight   outcome
	violations []Violation
}

func newChecker(ctx context.Context, in unit.Instance, u *unit.Compiled, events []event.Event) *checker {
	c := &checker{driver: driver{ctx, in}, u: u}
	for i := range events {
		if u.Folds(events[i].Type) {
			c.events = append(c.events, events[i])
		}
	}
	return c
}

// breaks notes a violation; the first of each law counts.
func (c *checker) breaks(law string, seq int64, format string, args ...any) {
	if !slices.ContainsFunc(c.violations, func(v Violation) bool { return v.Law == law }) {
		c.violations = append(c.violations, Violation{c.u.Key, law, seq, fmt.Sprintf(format, args...)})
	}
}

// one folds with the checker's unit alone.
func (c *checker) one(state json.RawMessage, seq int64, events []event.Event, w way) (outcome, error) {
	if seq < 0 {
		state = nil
	}
	out, err := c.fold([]start{{c.u, state, seq}}, events, w)
	if err != nil {
		return outcome{}, err
	}
	return out[0], nil
}

// everyChange is how a log is folded first, and lastOnly how most of it is folded by a host.
var everyChange, lastOnly = way{mode: unit.EveryChange}, way{mode: unit.LastOnly}

func (c *checker) run() (err error) {
	if c.straight, err = c.one(nil, -1, c.events, everyChange); err != nil {
		return err
	}
	if f := c.straight.fault; f != nil {
		c.breaks(Answers, f.Seq, "%s", f.Message)
		if f.Seq < 0 {
			return nil
		}
		// What came before it is held against the laws all the same.
		c.events = before(c.events, f.Seq)
		if c.straight, err = c.one(nil, -1, c.events, everyChange); err != nil || c.straight.fault != nil {
			return err
		}
	}
	if !c.sound() {
		return nil
	}
	again, err := c.one(nil, -1, c.events, everyChange)
	if err != nil {
		return err
	}
	c.same(Repeatable, c.last(), again)
	only, err := c.one(nil, -1, c.events, lastOnly)
	if err != nil {
		return err
	}
	c.same(LastIsLast, c.last(), only)
	for _, step := range []func() error{c.oneByOne, c.splits, c.unrelated, c.piecemeal} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// before are the events below a seq.
func before(events []event.Event, seq int64) []event.Event {
	n := 0
	for n < len(events) && events[n].Seq < seq {
		n++
	}
	return events[:n]
}

func (c *checker) last() int64 {
	if len(c.events) == 0 {
		return -1
	}
	return c.events[len(c.events)-1].Seq
}

// sound checks what came at first by itself.
func (c *checker) sound() bool {
	o := &c.straight
	if o.wrong != "" {
		c.breaks(AnswersBatches, o.wrongSeq, "%s", o.wrong)
		return false
	}
	for _, v := range o.values {
		if err := c.u.CheckView(v.View, 0); err != nil {
			c.breaks(TrueToSchema, v.Seq, "%v", err)
			return false
		}
	}
	if err := c.u.CheckState(o.state, 0); err != nil {
		c.breaks(TrueToSchema, c.last(), "%v", err)
		return false
	}
	return true
}

// same holds what came against what came at first.
func (c *checker) same(law string, seq int64, got outcome) {
	switch want := &c.straight; {
	case got.wrong != "":
		c.breaks(AnswersBatches, got.wrongSeq, "%s", got.wrong)
	case got.fault != nil:
		c.breaks(law, got.fault.Seq, "it fails: %s", got.fault.Message)
	case !bytes.Equal(got.state, want.state):
		c.breaks(law, seq, "the state is %s, not %s", cut(got.state), cut(want.state))
	case !bytes.Equal(got.view(), want.view()):
		c.breaks(law, seq, "the value is %s, not %s", cut(got.view()), cut(want.view()))
	}
}

// maxOneByOne bounds how many events are sent one by one: 1,000 take a fifth of a second.
const maxOneByOne = 1000

// oneByOne folds in batches of one event: their last values are every change.
func (c *checker) oneByOne() error {
	events := c.events[:min(len(c.events), maxOneByOne)]
	if len(events) == 0 {
		return nil
	}
	got, err := c.one(nil, -1, events, way{mode: unit.LastOnly, apart: true, each: true, ahead: true})
	if err != nil {
		return err
	}
	if got.over() {
		c.same(LastIsLast, c.last(), got)
		return nil
	}
	upTo := events[len(events)-1].Seq
	each, all := got.changes(upTo), c.straight.changes(upTo)
	for i := range max(len(each), len(all)) {
		switch {
		case i == len(all) || i < len(each) && each[i].Seq < all[i].Seq:
			c.breaks(LastIsLast, each[i].Seq, "the value %s of this event is missing where every change is asked for", cut(each[i].View))
		case i == len(each) || all[i].Seq < each[i].Seq:
			c.breaks(LastIsLast, all[i].Seq, "the value %s of this event is missing where it is the last that is asked for", cut(all[i].View))
		case !bytes.Equal(each[i].View, all[i].View):
			c.breaks(LastIsLast, all[i].Seq, "the value is %s, and of every change it was %s", cut(each[i].View), cut(all[i].View))
		default:
			continue
		}
		break
	}
	return nil
}

// splits folds in two parts at many places.
func (c *checker) splits() error {
	places := min(maxSplits, len(c.events)+1)
	for i := range places {
		at := i * (len(c.events) + 1) / places
		seq := int64(-1)
		if at > 0 {
			seq = c.events[at-1].Seq
		}
		head, err := c.one(nil, -1, c.events[:at], lastOnly)
		switch want := c.straight.viewAt(seq); {
		case err != nil:
			return err
		case head.wrong != "":
			c.breaks(AnswersBatches, head.wrongSeq, "%s", head.wrong)
			return nil
		case head.fault != nil:
			c.breaks(SplitsAnywhere, seq, "the first part fails: %s", head.fault.Message)
			return nil
		case !bytes.Equal(head.view(), want):
			c.breaks(LastIsLast, seq, "the value is %s, and of every change the last was %s", cut(head.view()), cut(want))
		}
		tail, err := c.one(head.state, seq, c.events[at:], lastOnly)
		if err != nil {
			return err
		}
		c.same(SplitsAnywhere, seq, tail)
	}
	return nil
}

// stranger is the type of an event that nobody names.
const stranger = "foldhost/conformance-stranger"

func (c *checker) unrelated() error {
	if c.u.Events == nil {
		return nil
	}
	seq := c.last()
	o, err := c.one(c.straight.state, seq, []event.Event{{Type: stranger, Seq: seq + 1, Data: json.RawMessage(`{"any":["thing"]}`)}}, lastOnly)
	if err != nil {
		return err
	}
	c.same(Indifferent, seq+1, o)
	return nil
}

// piecemeals are the ways to send a log in batches that are nothing but openings, events, a question for states, drops.
var piecemeals = []way{
	{mode: unit.EveryChange, apart: true},
	{mode: unit.LastOnly, apart: true},
	{mode: unit.EveryChange, apart: true, ahead: true},
}

// piecemeal folds with batches of each kind by itself: from init, and from the last state.
func (c *checker) piecemeal() error {
	for _, w := range piecemeals {
		o, err := c.one(nil, -1, c.events, w)
		if err != nil {
			return err
		}
		c.same(AnswersBatches, c.last(), o)
	}
	o, err := c.one(c.straight.state, c.last(), nil, piecemeals[0])
	if err != nil {
		return err
	}
	c.same(AnswersBatches, c.last(), o)
	return nil
}

// beside folds with all units at once, as a host does, those that came to no harm alone. The error is that of Check.
func beside(d *driver, units []*checker, events []event.Event) (all []Violation, err error) {
	if len(units) < 2 {
		return nil, nil
	}
	var from []start
	for _, c := range units {
		from = append(from, start{c.u, nil, -1})
	}
	some := slices.DeleteFunc(slices.Clone(events), func(ev event.Event) bool {
		return !slices.ContainsFunc(units, func(c *checker) bool { return c.u.Folds(ev.Type) })
	})
	for _, w := range append([]way{everyChange, lastOnly}, piecemeals...) {
		out, err := d.fold(from, some, w)
		if err != nil {
			return all, fmt.Errorf("all units beside each other: %w", err)
		}
		for i, c := range units {
			c.same(BesideOthers, c.last(), out[i])
		}
	}
	for _, c := range units {
		all = append(all, c.violations...)
	}
	return all, nil
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
