package plugintest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/sdk/plugintest"
	"github.com/foldhost/foldhost/unit"
)

// bag is a state with parts that can be made wrong: n is what add adds up, hidden is not encoded.
type bag struct {
	n, hidden int
}

// adder is a right unit, written against the host's contract, of which each wrong one changes one function. Its value is {"n": sum}.
type adder struct {
	init   func() (unit.State, error)
	apply  func(s unit.State, ev *event.Event) (unit.State, bool, error)
	view   func(s unit.State) (json.RawMessage, error)
	encode func(s unit.State) (json.RawMessage, error)
	decode func(raw json.RawMessage) (unit.State, error)
}

func (a *adder) Init() (unit.State, error) { return a.init() }
func (a *adder) Apply(s unit.State, ev *event.Event) (unit.State, bool, error) {
	return a.apply(s, ev)
}
func (a *adder) View(s unit.State) (json.RawMessage, error)     { return a.view(s) }
func (a *adder) Encode(s unit.State) (json.RawMessage, error)   { return a.encode(s) }
func (a *adder) Decode(raw json.RawMessage) (unit.State, error) { return a.decode(raw) }
func by(ev *event.Event) (n int)                                { json.Unmarshal(ev.Data, &n); return n }
func object(n int) (json.RawMessage, error)                     { return json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)), nil }
func add(n int) event.Event                                     { return event.Event{Type: "add", Data: json.RawMessage(fmt.Sprint(n))} }
func definition(change func(d *unit.Definition, a *adder)) unit.Definition {
	a := &adder{
		init: func() (unit.State, error) { return &bag{}, nil },
		apply: func(s unit.State, ev *event.Event) (unit.State, bool, error) {
			if ev.Type != "add" {
				return s, false, nil
			}
			return &bag{n: s.(*bag).n + by(ev)}, by(ev) != 0, nil
		},
		view:   func(s unit.State) (json.RawMessage, error) { return object(s.(*bag).n) },
		encode: func(s unit.State) (json.RawMessage, error) { return object(s.(*bag).n) },
		decode: func(raw json.RawMessage) (unit.State, error) {
			var v struct{ N int }
			err := json.Unmarshal(raw, &v)
			return &bag{n: v.N}, err
		},
	}
	d := unit.Definition{
		Key: "adder", Events: []string{"add"}, Inline: a,
		StateSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
		ViewSchema:  json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":1000}},"required":["n"]}`),
	}
	change(&d, a)
	return d
}

func log(events ...event.Event) []event.Event {
	for i := range events {
		events[i].Seq = int64(i)
	}
	return events
}

func ones(n int) []event.Event {
	events := make([]event.Event, n)
	for i := range events {
		events[i] = add(1)
	}
	return log(events...)
}

// TestEachWrongUnitBreaksItsLawAlone has a unit for each law, wrong in that alone.
func TestEachWrongUnitBreaksItsLawAlone(t *testing.T) {
	for _, c := range []struct {
		name   string
		law    plugintest.Law // empty: none
		seq    int64
		events []event.Event
		change func(d *unit.Definition, a *adder)
	}{
		{"a right one", "", 0, log(add(1), add(0), add(2), event.Event{Type: "other", Data: json.RawMessage(`1`)}, add(-3)), func(*unit.Definition, *adder) {}},
		{"a right one, no event", "", 0, nil, func(*unit.Definition, *adder) {}},
		{"a right one, host-only", "", 0, ones(3), func(d *unit.Definition, a *adder) { d.ViewSchema, a.view = nil, nil }},
		{"a right one of every type", "", 0, ones(3), func(d *unit.Definition, _ *adder) { d.Events = nil }},
		{"a right one that counts events of every type", "", 0, log(add(1), event.Event{Type: "other", Data: json.RawMessage("1")}), func(d *unit.Definition, a *adder) {
			d.Events = nil
			a.apply = func(s unit.State, _ *event.Event) (unit.State, bool, error) {
				return &bag{n: s.(*bag).n + 1}, true, nil
			}
		}},
		{"a right one of no type", "", 0, ones(3), func(d *unit.Definition, _ *adder) { d.Events = []string{} }},

		{"a definition that is refused", plugintest.ValidDefinition, -1, ones(1), func(d *unit.Definition, _ *adder) { d.Key = "" }},
		{"a definition without an Inline", plugintest.ValidDefinition, -1, ones(1), func(d *unit.Definition, _ *adder) { d.Inline, d.Instance = nil, &unit.Local{} }},

		{"init fails", plugintest.NoFault, -1, ones(3), func(_ *unit.Definition, a *adder) {
			a.init = func() (unit.State, error) { return nil, errors.New("no") }
		}},
		{"apply fails", plugintest.NoFault, 1, log(add(1), add(7), add(1)), func(_ *unit.Definition, a *adder) {
			right := a.apply
			a.apply = func(s unit.State, ev *event.Event) (unit.State, bool, error) {
				if by(ev) == 7 {
					return nil, true, errors.New("seven")
				}
				return right(s, ev)
			}
		}},
		{"view panics", plugintest.NoFault, 1, ones(3), func(_ *unit.Definition, a *adder) {
			right := a.view
			a.view = func(s unit.State) (json.RawMessage, error) {
				if s.(*bag).n == 2 {
					panic("two")
				}
				return right(s)
			}
		}},

		{"the view of the empty log is not its schema's", plugintest.MatchesSchema, -1, nil, func(d *unit.Definition, _ *adder) {
			d.ViewSchema = json.RawMessage(`{"properties":{"n":{"minimum":1}}}`)
		}},
		{"a later view is not its schema's", plugintest.MatchesSchema, 1, log(add(1000), add(1), add(-1)), func(*unit.Definition, *adder) {}},
		{"a later state is not its schema's", plugintest.MatchesSchema, 1, ones(3), func(d *unit.Definition, _ *adder) {
			d.StateSchema = json.RawMessage(`{"properties":{"n":{"maximum":1}}}`)
		}},
		{"a view is not lossless", plugintest.MatchesSchema, 1, ones(3), func(_ *unit.Definition, a *adder) {
			right := a.view
			a.view = func(s unit.State) (json.RawMessage, error) {
				if s.(*bag).n == 2 {
					return json.RawMessage(`{"n":2,"n":2}`), nil
				}
				return right(s)
			}
		}},

		{"a view that counts its calls", plugintest.RepeatableView, -1, ones(3), func(_ *unit.Definition, a *adder) {
			calls := 0
			a.view = func(s unit.State) (json.RawMessage, error) {
				calls++
				return object(calls % 7)
			}
		}},

		{"apply changes the old state and returns it", plugintest.KeepsOldState, 0, ones(3), func(_ *unit.Definition, a *adder) {
			a.apply = func(s unit.State, ev *event.Event) (unit.State, bool, error) {
				s.(*bag).n += by(ev)
				return s, by(ev) != 0, nil
			}
		}},
		{"apply changes the old state and says unchanged", plugintest.KeepsOldState, 1, log(add(1), add(0), add(2)), func(_ *unit.Definition, a *adder) {
			right := a.apply
			a.apply = func(s unit.State, ev *event.Event) (unit.State, bool, error) {
				if by(ev) == 0 {
					s.(*bag).n = 5
				}
				return right(s, ev)
			}
		}},
		{"view changes the state", plugintest.KeepsOldState, 0, ones(2), func(_ *unit.Definition, a *adder) {
			a.view = func(s unit.State) (json.RawMessage, error) {
				n := s.(*bag).n
				if n == 1 {
					s.(*bag).n = 2
				}
				return object(min(n, 1))
			}
		}},

		{"a fold that depends on what came before it in the process", plugintest.Deterministic, 0, ones(3), func(_ *unit.Definition, a *adder) {
			inits := 0
			a.init = func() (unit.State, error) { inits++; return &bag{hidden: inits}, nil }
			a.apply = func(s unit.State, ev *event.Event) (unit.State, bool, error) {
				old := s.(*bag)
				return &bag{n: old.n + old.hidden, hidden: old.hidden}, ev.Type == "add", nil
			}
		}},
		{"a fold with a clock", plugintest.Deterministic, 0, ones(3), func(_ *unit.Definition, a *adder) {
			clock := 0
			a.apply = func(s unit.State, ev *event.Event) (unit.State, bool, error) {
				clock++
				return &bag{n: clock}, ev.Type == "add", nil
			}
		}},

		{"a state that cannot be read back", plugintest.SurvivesJSON, 0, ones(3), func(_ *unit.Definition, a *adder) {
			right := a.decode
			a.decode = func(raw json.RawMessage) (unit.State, error) {
				if string(raw) == `{"n":1}` {
					return nil, errors.New("no")
				}
				return right(raw)
			}
		}},
		{"a state that is read back as another", plugintest.SurvivesJSON, 1, ones(3), func(_ *unit.Definition, a *adder) {
			right := a.decode
			a.decode = func(raw json.RawMessage) (unit.State, error) {
				s, err := right(raw)
				if b := s.(*bag); b.n == 2 {
					b.n = 3
				}
				return s, err
			}
		}},
		{"a view of what is not encoded", plugintest.SurvivesJSON, 0, ones(3), func(_ *unit.Definition, a *adder) {
			a.apply = func(s unit.State, ev *event.Event) (unit.State, bool, error) {
				return &bag{n: s.(*bag).n + 1, hidden: 1}, ev.Type == "add", nil
			}
			a.view = func(s unit.State) (json.RawMessage, error) { return object(s.(*bag).hidden) }
		}},

		{"a fold that needs what is not encoded", plugintest.ResumesAnywhere, 3, ones(5), func(_ *unit.Definition, a *adder) {
			a.apply = func(s unit.State, ev *event.Event) (unit.State, bool, error) { // n shows two events later
				old := s.(*bag)
				return &bag{n: max(0, old.hidden-2), hidden: old.hidden + 1}, ev.Type == "add", nil
			}
		}},

		{"another type counts as well", plugintest.IgnoresUnrelated, -1, ones(2), func(_ *unit.Definition, a *adder) {
			a.apply = func(s unit.State, _ *event.Event) (unit.State, bool, error) {
				return &bag{n: s.(*bag).n + 1}, true, nil
			}
		}},
		{"another type is an error", plugintest.IgnoresUnrelated, -1, ones(2), func(_ *unit.Definition, a *adder) {
			right := a.apply
			a.apply = func(s unit.State, ev *event.Event) (unit.State, bool, error) {
				if ev.Type != "add" {
					return s, false, errors.New("what is this?")
				}
				return right(s, ev)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := plugintest.Check(definition(c.change), c.events)
			t.Log(r)
			if c.law == "" {
				if !r.OK() || r.String() != `unit "adder" keeps the contract` {
					t.Errorf("a right unit breaks a law: %s", r)
				}
				return
			}
			if len(r.Violations) != 1 || r.Violations[0].Law != c.law || r.Violations[0].Seq != c.seq {
				t.Fatalf("violations are %v, want %s at %d alone", r.Violations, c.law, c.seq)
			}
			v, at := r.Violations[0], fmt.Sprintf("after event %d", c.seq)
			if c.seq < 0 {
				at = "on the empty log"
			}
			if want := fmt.Sprintf("%s, %s: %s", c.law, at, v.Detail); v.Detail == "" || v.String() != want || !strings.Contains(r.String(), want) {
				t.Errorf("the report does not say %q: %s", want, r)
			}
		})
	}
}

func TestALongLogIsSplitAtASpreadOfPlaces(t *testing.T) {
	// The fold forgets, on its way through JSON, that it saw event 300; only a split behind that shows it, at event 2999.
	d := definition(func(_ *unit.Definition, a *adder) {
		a.apply = func(s unit.State, ev *event.Event) (unit.State, bool, error) {
			next := *s.(*bag)
			switch ev.Seq {
			case 300:
				next.hidden = 1
			case 2999:
				next.n += next.hidden
			}
			return &next, ev.Type == "add", nil
		}
	})
	if r := plugintest.Check(d, ones(3000)); r.Broken(plugintest.ResumesAnywhere) == nil || len(r.Violations) != 1 {
		t.Errorf("report: %s", r)
	}
}

func TestStepsAreTheEmptyLogAndEachChange(t *testing.T) {
	d := definition(func(_ *unit.Definition, a *adder) {
		a.view = func(s unit.State) (json.RawMessage, error) { return object(s.(*bag).n / 10) }
	})
	r := plugintest.Check(d, log(add(5), add(0), add(5), add(1)))
	var got bytes.Buffer
	for _, s := range r.Steps {
		fmt.Fprintf(&got, "%d %s %s %t\n", s.Seq, s.State, s.View, s.Sent)
	}
	want := "-1 {\"n\":0} {\"n\":0} false\n0 {\"n\":5} {\"n\":0} false\n2 {\"n\":10} {\"n\":1} true\n3 {\"n\":11} {\"n\":1} false\n"
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
}
