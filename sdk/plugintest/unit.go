package plugintest

import (
	"bytes"
	"encoding/json"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/unit"
)

// TB is what the harness needs of a *testing.T.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// Fixture is a unit under test.
type Fixture struct {
	t   TB
	def unit.Definition
	// check is Check, or the same through a process.
	check func(unit.Definition, []event.Event) *Report
}

// Unit puts a unit under test: a sdk.ProjectionDefinition, or a sdk.Raw. A definition that is refused ends the test.
func Unit(t TB, u sdk.Unit) *Fixture {
	t.Helper()
	def, err := u.Definition()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return &Fixture{t: t, def: def, check: Check}
}

// Given folds these events, which get the seqs 0, 1, 2 and so on, and the same as their times, and checks the laws over them. GivenLog
// takes events with times of their own.
func (f *Fixture) Given(given ...Input) *Outcome {
	f.t.Helper()
	events := make([]event.Event, 0, len(given))
	for i, in := range given {
		data, err := event.Encode(in.data())
		if err != nil {
			f.t.Fatalf("event %d (%s): %v", i, in.Type, err)
		}
		events = append(events, event.Event{Type: in.Type, Seq: int64(i), Time: int64(i), Data: data})
	}
	return f.GivenLog(events)
}

// GivenLog is Given for events that were committed already, such as those of a recorded session.
func (f *Fixture) GivenLog(events []sdk.Event) *Outcome {
	f.t.Helper()
	o := &Outcome{t: f.t, Report: f.check(f.def, events)}
	for _, v := range o.Report.Violations {
		if v.Law != NoFault {
			f.t.Errorf("unit %q: %s", f.def.Key, v)
		}
	}
	f.t.Cleanup(func() {
		if v := o.Report.Broken(NoFault); v != nil && !o.claimed {
			f.t.Errorf("unit %q: %s", f.def.Key, v)
		}
	})
	return o
}

// Input is an event that is given to a unit.
type Input struct {
	Type string
	// Data is JSON, json.RawMessage, or any value that encoding/json can write.
	Data any
}

// Event makes an Input.
func Event(typ string, data any) Input { return Input{Type: typ, Data: data} }

func (in Input) data() any { return fromJSON(in.Data) }

// JSON is JSON text, where a Go string would be taken for a value.
type JSON string

func fromJSON(v any) any {
	if text, ok := v.(JSON); ok {
		return json.RawMessage(text)
	}
	return v
}

// Outcome is a unit after the events that were given.
type Outcome struct {
	t TB
	// Report is what Check found.
	Report  *Report
	claimed bool
}

// Then says what the value is after the last event: a Go value, JSON or json.RawMessage. Values are compared as JSON: the order of
// keys does not matter. The null of a nil slice is not the [] of an empty one.
func (o *Outcome) Then(want any) *Outcome {
	o.t.Helper()
	if o.last().State != nil && o.last().View == nil {
		o.t.Errorf("unit %q: it is host-only and has no value; say ThenState", o.Report.Key)
		return o
	}
	o.compare("value", o.last().View, want)
	return o
}

// ThenState is Then for the state.
func (o *Outcome) ThenState(want any) *Outcome {
	o.t.Helper()
	o.compare("state", o.last().State, want)
	return o
}

// ThenSent says which values were sent to clients, in order. The value of the empty log is not sent: it is in every baseline.
func (o *Outcome) ThenSent(want ...any) *Outcome {
	o.t.Helper()
	var sent []Step
	for _, s := range o.Report.Steps {
		if s.Sent {
			sent = append(sent, s)
		}
	}
	if len(sent) != len(want) {
		views := make([]json.RawMessage, len(sent))
		for i, s := range sent {
			views[i] = s.View
		}
		o.t.Errorf("unit %q: %d values were sent, want %d: %s", o.Report.Key, len(sent), len(want), bytes.Join(toBytes(views), []byte(", ")))
		return o
	}
	for i, s := range sent {
		o.compare("value sent", s.View, want[i])
	}
	return o
}

// ThenFault says that the unit fails at the event with this seq. What else is said is about the state before it.
func (o *Outcome) ThenFault(seq int64) *Outcome {
	o.t.Helper()
	o.claimed = true
	switch v := o.Report.Broken(NoFault); {
	case v == nil:
		o.t.Errorf("unit %q: no event is a fault, want seq %d", o.Report.Key, seq)
	case v.Seq != seq:
		o.t.Errorf("unit %q: the fault is at seq %d, want %d: %s", o.Report.Key, v.Seq, seq, v.Detail)
	}
	return o
}

func (o *Outcome) last() Step {
	if n := len(o.Report.Steps); n > 0 {
		return o.Report.Steps[n-1]
	}
	return Step{Seq: -1}
}

func (o *Outcome) compare(what string, got json.RawMessage, want any) {
	o.t.Helper()
	w, err := event.Encode(fromJSON(want))
	if err != nil {
		o.t.Fatalf("unit %q: the %s that is wanted: %v", o.Report.Key, what, err)
	}
	if !event.Equal(got, w) {
		o.t.Errorf("unit %q: the %s after event %d is %s, want %s", o.Report.Key, what, o.last().Seq, got, w)
	}
}

func toBytes(raws []json.RawMessage) [][]byte {
	out := make([][]byte, len(raws))
	for i, r := range raws {
		out[i] = r
	}
	return out
}
