package plugintest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/sdk/plugintest"
	"github.com/foldhost/foldhost/unit"
)

// recorder is a TB that remembers.
type recorder struct {
	errors  []string
	cleanup []func()
}

type fatal struct{}

func (r *recorder) Helper()                   {}
func (r *recorder) Errorf(f string, a ...any) { r.errors = append(r.errors, fmt.Sprintf(f, a...)) }
func (r *recorder) Fatalf(f string, a ...any) { r.Errorf(f, a...); panic(fatal{}) }
func (r *recorder) Cleanup(f func())          { r.cleanup = append(r.cleanup, f) }

// failures runs a case of its own and returns what it complained of.
func failures(t *testing.T, do func(tb plugintest.TB)) []string {
	t.Helper()
	r := &recorder{}
	func() {
		defer func() {
			if v := recover(); v != nil && v != (fatal{}) {
				panic(v)
			}
		}()
		do(r)
	}()
	for _, f := range r.cleanup {
		f()
	}
	t.Log(strings.Join(r.errors, "\n"))
	return r.errors
}

func TestWhatIsSaidIsHeldAgainstWhatIs(t *testing.T) {
	right := sdk.Raw(definition(func(*unit.Definition, *adder) {}))
	faulty := sdk.Raw(definition(func(_ *unit.Definition, a *adder) {
		apply := a.apply
		a.apply = func(s unit.State, ev *sdk.Event) (unit.State, bool, error) {
			if by(ev) == 7 {
				panic("seven")
			}
			return apply(s, ev)
		}
	}))
	placed := sdk.Raw(definition(func(_ *unit.Definition, a *adder) {
		a.apply = func(s unit.State, ev *sdk.Event) (unit.State, bool, error) {
			if ev.Type != "add" {
				return s, false, nil
			}
			return &bag{n: s.(*bag).n*100 + int(ev.Seq)*10 + int(ev.Time)}, true, nil
		}
	}))
	refused := right
	refused.Key = ""
	add := func(n int) plugintest.Input { return plugintest.Event("add", n) }
	for _, c := range []struct {
		name string
		do   func(tb plugintest.TB)
		want int // complaints
	}{
		{"the value, as Go", func(tb plugintest.TB) { plugintest.Unit(tb, right).Given(add(1), add(2)).Then(map[string]int{"n": 3}) }, 0},
		{"the value, as JSON in another order and spelling", func(tb plugintest.TB) {
			plugintest.Unit(tb, right).Given(add(3)).Then(plugintest.JSON(` {"n": 3.0} `))
		}, 0},
		{"another value", func(tb plugintest.TB) { plugintest.Unit(tb, right).Given(add(1)).Then(map[string]int{"n": 3}) }, 1},
		{"a Go string is no JSON", func(tb plugintest.TB) { plugintest.Unit(tb, right).Given(add(1)).Then(`{"n":1}`) }, 1},
		{"a value that JSON cannot carry", func(tb plugintest.TB) { plugintest.Unit(tb, right).Given().Then(make(chan int)) }, 1},
		{"an event that JSON cannot carry", func(tb plugintest.TB) { plugintest.Unit(tb, right).Given(plugintest.Event("add", make(chan int))) }, 1},
		{"the value of a host-only unit", func(tb plugintest.TB) {
			hostOnly := sdk.Raw(definition(func(d *unit.Definition, a *adder) { d.ViewSchema, a.view = nil, nil }))
			plugintest.Unit(tb, hostOnly).Given(add(1)).ThenState(plugintest.JSON(`{"n":1}`)).Then(nil)
		}, 1},
		{"the state", func(tb plugintest.TB) {
			plugintest.Unit(tb, right).Given(add(1)).ThenState(plugintest.JSON(`{"n":1}`)).Then(plugintest.JSON(`{"n":1}`))
		}, 0},
		{"another state", func(tb plugintest.TB) {
			plugintest.Unit(tb, right).Given(add(1)).ThenState(plugintest.JSON(`{"n":2}`))
		}, 1},
		{"what was sent", func(tb plugintest.TB) {
			plugintest.Unit(tb, right).Given(add(1), add(0), plugintest.Event("other", nil), add(2)).ThenSent(plugintest.JSON(`{"n":1}`), plugintest.JSON(`{"n":3}`))
		}, 0},
		{"nothing was sent", func(tb plugintest.TB) { plugintest.Unit(tb, right).Given(add(0)).ThenSent() }, 0},
		{"more was sent", func(tb plugintest.TB) { plugintest.Unit(tb, right).Given(add(1)).ThenSent() }, 1},
		{"something else was sent", func(tb plugintest.TB) {
			plugintest.Unit(tb, right).Given(add(1)).ThenSent(plugintest.JSON(`{"n":2}`))
		}, 1},
		{"what was sent and more", func(tb plugintest.TB) {
			plugintest.Unit(tb, right).Given(add(1)).ThenSent().ThenSent(plugintest.JSON(`{"n":1}`)).Then(plugintest.JSON(`{"n":1}`))
		}, 1},
		{"what nothing was said of", func(tb plugintest.TB) { plugintest.Unit(tb, right).Given().Then(plugintest.JSON(`{"n":0}`)).ThenSent() }, 0},
		{"a fault that nobody expected", func(tb plugintest.TB) { plugintest.Unit(tb, faulty).Given(add(1), add(7)) }, 1},
		{"a fault, and the value before it", func(tb plugintest.TB) {
			plugintest.Unit(tb, faulty).Given(add(1), add(7)).ThenFault(1).Then(plugintest.JSON(`{"n":1}`))
		}, 0},
		{"a fault elsewhere", func(tb plugintest.TB) { plugintest.Unit(tb, faulty).Given(add(1), add(7)).ThenFault(0) }, 1},
		{"no fault", func(tb plugintest.TB) { plugintest.Unit(tb, right).Given(add(1)).ThenFault(0) }, 1},
		{"a definition that is refused", func(tb plugintest.TB) { plugintest.Unit(tb, refused).Given(add(1)) }, 1},
		{"seqs and times", func(tb plugintest.TB) {
			plugintest.Unit(tb, placed).Given(add(1), add(1)).Then(plugintest.JSON(`{"n":11}`))
		}, 0},
		{"a broken law", func(tb plugintest.TB) { plugintest.Unit(tb, right).Given(add(2000)) }, 1},
		{"a recorded log", func(tb plugintest.TB) {
			plugintest.Unit(tb, right).GivenLog([]sdk.Event{{Type: "add", Seq: 7, Data: json.RawMessage("4")}}).Then(plugintest.JSON(`{"n":4}`))
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := failures(t, c.do); len(got) != c.want {
				t.Errorf("%d complaints, want %d: %q", len(got), c.want, got)
			}
		})
	}
}
