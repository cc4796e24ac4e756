package plugintest

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// maxSplits bounds how often a log is folded again from the middle. 256: each split costs a fold of the rest, and a recorded log may
// have tens of thousands of events; a longer one is split at 256 places, evenly spread.
const maxSplits = 256

// Check folds a log with a unit and holds it against the laws. The definition must have an Inline. Events are in seq order; those
// that the unit does not fold are left out, as the host does.
func Check(def unit.Definition, events []event.Event) *Report {
	r := &Report{Key: def.Key}
	c, err := unit.Compile(def)
	switch {
	case err != nil:
		r.breaks(ValidDefinition, -1, "%v", err)
		return r
	case c.Inline == nil:
		r.breaks(ValidDefinition, -1, "it has no Inline; the harness folds in this process")
		return r
	}
	k := checker{Report: r, unit: c}
	for i := range events {
		if c.Folds(events[i].Type) {
			k.events = append(k.events, &events[i])
		}
	}
	if !k.straight() {
		return r
	}
	k.again()
	k.throughJSON()
	k.splits()
	k.unrelated()
	return r
}

// checker checks one unit over one log.
type checker struct {
	*Report
	unit   *unit.Compiled
	events []*event.Event // those that the unit folds, up to a fault
	marks  []mark         // the empty log, then one for each event
}

// mark is where the straight fold stood. Unchanged events share the bytes of the one before.
type mark struct {
	seq   int64
	state unit.State
	image image
}

// image is all that can be seen of a state.
type image struct{ state, view json.RawMessage }

func (k *checker) take(s unit.State) (im image, err error) {
	if im.state, err = k.unit.Inline.Encode(s); err != nil || k.unit.HostOnly() {
		return im, err
	}
	im.view, err = k.unit.Inline.View(s)
	return im, err
}

// differ says how an image differs from the right one; empty is not at all. A view that is not repeatable proves nothing.
func (k *checker) differ(got, want image) string {
	if !bytes.Equal(got.state, want.state) {
		return fmt.Sprintf("the state is %s, not %s", cut(got.state), cut(want.state))
	}
	if !bytes.Equal(got.view, want.view) && k.Broken(RepeatableView) == nil {
		return fmt.Sprintf("the view is %s, not %s", cut(got.view), cut(want.view))
	}
	return ""
}

// straight folds the log once from init, and looks at each state on its own and at the one before it.
func (k *checker) straight() bool {
	s, err := k.unit.Inline.Init()
	var im image
	if err == nil {
		im, err = k.look(-1, s)
	}
	if err != nil {
		k.breaks(NoFault, -1, "%v", err)
		return false
	}
	k.marks = append(k.marks, mark{-1, s, im})
	k.Steps = append(k.Steps, Step{Seq: -1, State: im.state, View: im.view})
	for n, ev := range k.events {
		before := k.marks[n]
		next, changed, err := k.unit.Inline.Apply(before.state, ev)
		if was, imErr := k.take(before.state); imErr == nil {
			if diff := k.differ(was, before.image); diff != "" {
				k.breaks(KeepsOldState, ev.Seq, "apply changed the state that it was given: afterwards %s; copy what the new state shares with the old one before writing to it", diff)
			}
		}
		here := mark{ev.Seq, before.state, before.image}
		if err == nil && changed {
			here.state = next
			here.image, err = k.look(ev.Seq, next)
		}
		if err != nil {
			k.breaks(NoFault, ev.Seq, "%s: %v", ev.Type, err)
			k.events = k.events[:n]
			return true
		}
		k.marks = append(k.marks, here)
		if changed {
			sent := !bytes.Equal(here.image.view, before.image.view)
			k.Steps = append(k.Steps, Step{Seq: ev.Seq, State: here.image.state, View: here.image.view, Sent: sent})
		}
	}
	return true
}

// look takes the image of a state twice and holds it against the schemas.
func (k *checker) look(seq int64, s unit.State) (image, error) {
	im, err := k.take(s)
	if err != nil {
		return im, err
	}
	if err := k.unit.CheckState(im.state, 0); err != nil {
		k.breaks(MatchesSchema, seq, "%v", err)
	}
	if !k.unit.HostOnly() {
		if err := k.unit.CheckView(im.view, 0); err != nil {
			k.breaks(MatchesSchema, seq, "%v", err)
		}
	}
	twice, err := k.take(s)
	switch {
	case err != nil:
		return im, err
	case !bytes.Equal(twice.view, im.view):
		k.breaks(RepeatableView, seq, "the same state gives the view %s and then %s", cut(im.view), cut(twice.view))
	case !bytes.Equal(twice.state, im.state):
		k.breaks(KeepsOldState, seq, "view or encode changed the state that it was given from %s to %s", cut(im.state), cut(twice.state))
	}
	return im, nil
}

// again folds the same log once more, from another init. Where old states change, what was seen of them proves nothing.
func (k *checker) again() {
	if k.Broken(KeepsOldState) != nil {
		return
	}
	s, err := k.unit.Inline.Init()
	k.follow(Deterministic, 0, s, err, "folding the same log once more")
}

// follow folds on from s, which should be the state of mark number at, through to the end, and compares each step.
func (k *checker) follow(law Law, at int, s unit.State, err error, doing string) {
	var im image
	for n, changed := at, true; ; n++ {
		want := k.marks[n]
		if err == nil && changed {
			im, err = k.take(s)
		}
		if err != nil {
			k.breaks(law, want.seq, "%s fails: %v", doing, err)
			return
		}
		if diff := k.differ(im, want.image); diff != "" {
			k.breaks(law, want.seq, "%s: %s", doing, diff)
			return
		}
		if n == len(k.events) {
			return
		}
		var next unit.State
		if next, changed, err = k.unit.Inline.Apply(s, k.events[n]); changed {
			s = next
		}
	}
}

// throughJSON takes each state through its encoding.
func (k *checker) throughJSON() {
	for n, m := range k.marks {
		if n > 0 && bytes.Equal(m.image.state, k.marks[n-1].image.state) {
			continue
		}
		s, err := k.unit.Inline.Decode(m.image.state)
		var im image
		if err == nil {
			im, err = k.take(s)
		}
		if err != nil {
			k.breaks(SurvivesJSON, m.seq, "the state %s cannot be read back: %v", cut(m.image.state), err)
			return
		}
		if diff := k.differ(im, m.image); diff != "" {
			k.breaks(SurvivesJSON, m.seq, "read back from JSON, %s", diff)
			return
		}
	}
}

// splits folds the rest of the log from a row at each mark. A fold that differs by itself, or whose states do not survive JSON,
// would show here again.
func (k *checker) splits() {
	if k.Broken(Deterministic) != nil || k.Broken(SurvivesJSON) != nil || k.Broken(KeepsOldState) != nil {
		return
	}
	step := max(1, len(k.marks)/maxSplits)
	for n := 0; n < len(k.marks); n += step {
		m := k.marks[n]
		s, err := k.unit.Inline.Decode(m.image.state)
		k.follow(ResumesAnywhere, n, s, err, fmt.Sprintf("folding on from a row at seq %d", m.seq))
		if k.Broken(ResumesAnywhere) != nil {
			return
		}
	}
}

// unrelatedType is a type that no unit names.
const unrelatedType = "plugintest/unrelated"

// unrelated applies an event that the host would not even send to each state.
func (k *checker) unrelated() {
	if k.unit.Folds(unrelatedType) {
		return // a unit of every type has no unrelated events
	}
	for _, m := range k.marks {
		ev := event.Event{Type: unrelatedType, Seq: m.seq + 1, Data: json.RawMessage("{}")}
		_, changed, err := k.unit.Inline.Apply(m.state, &ev)
		if err != nil {
			k.breaks(IgnoresUnrelated, m.seq, "an event of another type is a fault: %v", err)
		}
		if changed {
			k.breaks(IgnoresUnrelated, m.seq, "an event of another type than %q changed the state", k.unit.Events)
		}
	}
}

// cut shortens JSON for a message.
func cut(raw json.RawMessage) string {
	const most = 200
	if len(raw) > most {
		return string(bytes.ToValidUTF8(raw[:most], nil)) + "…"
	}
	return string(raw)
}
