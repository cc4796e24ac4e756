package unit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func local(t testing.TB, defs ...unit.Definition) *unit.Local {
	t.Helper()
	l, err := unit.NewLocal(defs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func do(t testing.TB, l *unit.Local, b unit.Batch) unit.Reply {
	t.Helper()
	got := make(chan unit.Reply, 2)
	l.Submit(context.Background(), b, func(r unit.Reply) { got <- r })
	return <-got
}

func mark(seq int64, names ...string) event.Event {
	data, _ := json.Marshal(map[string]any{"marks": append([]string{}, names...)})
	return event.Event{Type: "test/mark", Seq: seq, Data: data}
}

func other(seq int64) event.Event {
	return event.Event{Type: "turn/start", Seq: seq, Data: json.RawMessage(`{}`)}
}

// text writes a reply as the tables want it: values, states, faults and unknown cells in order.
func text(r unit.Reply) string {
	var parts []string
	for _, v := range r.Values {
		parts = append(parts, fmt.Sprintf("%d@%d=%s", v.Cell, v.Seq, v.View))
	}
	for _, s := range r.States {
		parts = append(parts, fmt.Sprintf("state %d@%d=%s", s.Cell, s.Seq, s.State))
	}
	for _, f := range r.Faults {
		parts = append(parts, fmt.Sprintf("fault %d@%d", f.Cell, f.Seq))
	}
	for _, u := range r.Unknown {
		parts = append(parts, fmt.Sprintf("unknown %d", u))
	}
	if r.Err != nil {
		parts = append(parts, fmt.Sprintf("%T", r.Err))
	}
	return strings.Join(parts, " ")
}

// bad makes the fold of the marks fail: at an event that names "error" or "panic", and at a view of "no view".
func bad() unit.Definition {
	d := marks()
	d.Key = "test/bad"
	d.Inline = badFold{d.Inline.(rawFold)}
	return d
}

type badFold struct{ rawFold }

func (f badFold) Apply(s unit.State, ev *event.Event) (unit.State, bool, error) {
	switch {
	case strings.Contains(string(ev.Data), `"error"`):
		return "half done", true, errors.New("no")
	case strings.Contains(string(ev.Data), `"panic"`):
		panic("no")
	}
	return f.rawFold.Apply(s, ev)
}

func (f badFold) View(s unit.State) (json.RawMessage, error) {
	if strings.Contains(s.(string), `"no view"`) {
		return nil, errors.New("no")
	}
	return f.rawFold.View(s)
}

func (f badFold) Encode(s unit.State) (json.RawMessage, error) {
	if strings.Contains(s.(string), `"no state"`) {
		return nil, errors.New("no")
	}
	return f.rawFold.Encode(s)
}

func (f badFold) Decode(raw json.RawMessage) (unit.State, error) {
	if string(raw) == `"no"` {
		return nil, errors.New("no")
	}
	return f.rawFold.Decode(raw)
}

func TestBatches(t *testing.T) {
	open := func(cell unit.CellID) unit.Open { return unit.Open{Cell: cell, Key: "test/marks", Seq: -1} }
	openBad := func(cell unit.CellID) unit.Open { return unit.Open{Cell: cell, Key: "test/bad", Seq: -1} }
	for _, c := range []struct {
		name    string
		batches []unit.Batch
		want    []string
	}{
		{"opening gives the view of the empty log",
			[]unit.Batch{{Open: []unit.Open{open(1)}}, {Open: []unit.Open{open(1)}, Mode: unit.LastOnly}},
			[]string{`1@-1={"marks":[]}`, `1@-1={"marks":[]}`}},
		{"opening from a state gives its view at its seq",
			[]unit.Batch{{Open: []unit.Open{{Cell: 1, Key: "test/marks", State: json.RawMessage(`{"marks":["a"]}`), Seq: 7}}, States: []unit.CellID{1}}},
			[]string{`1@7={"marks":["a"]} state 1@7={"marks":["a"]}`}},
		{"every change is a value, in order",
			[]unit.Batch{{Open: []unit.Open{open(1)}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "a"), other(1), mark(2, "b")}, Through: 2}},
			[]string{`1@-1={"marks":[]} 1@0={"marks":["a"]} 1@2={"marks":["b"]}`}},
		{"the last only",
			[]unit.Batch{{Open: []unit.Open{open(1)}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "a"), mark(1, "b"), other(2)}, Through: 2, Mode: unit.LastOnly}},
			[]string{`1@1={"marks":["b"]}`}},
		{"the last only, where nothing changed, is the view of opening, and nothing for a cell that was there",
			[]unit.Batch{
				{Open: []unit.Open{open(1)}, Cells: []unit.CellID{1}, Events: []event.Event{other(0)}, Through: 0, Mode: unit.LastOnly},
				{Cells: []unit.CellID{1}, Events: []event.Event{other(1)}, Through: 1, Mode: unit.LastOnly}},
			[]string{`1@-1={"marks":[]}`, ``}},
		{"an equal state sends nothing",
			[]unit.Batch{{Open: []unit.Open{open(1)}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "a"), mark(1, "a")}, Through: 1}},
			[]string{`1@-1={"marks":[]} 1@0={"marks":["a"]}`}},
		{"another state with an equal view sends nothing, from the view of opening on",
			[]unit.Batch{
				{Open: []unit.Open{open(1)}},
				{Cells: []unit.CellID{1}, Events: []event.Event{mark(0)}, Through: 0, States: []unit.CellID{1}},
				{Cells: []unit.CellID{1}, Events: []event.Event{mark(1, "a"), mark(2)}, Through: 2, Mode: unit.LastOnly}},
			[]string{`1@-1={"marks":[]}`, `state 1@0={"marks":[]}`, ``}},
		{"the last only, of a cell opened here whose view came back, is the view of opening",
			[]unit.Batch{{Open: []unit.Open{open(1)}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0)}, Through: 0, Mode: unit.LastOnly}},
			[]string{`1@-1={"marks":[]}`}},
		{"an event at or below where a cell stands is skipped, also when its type was not the cell's",
			[]unit.Batch{
				{Open: []unit.Open{open(1)}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "a")}, Through: 5},
				{Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "x"), mark(5, "y"), mark(6, "b"), mark(6, "c")}, Through: 6}},
			[]string{`1@-1={"marks":[]} 1@0={"marks":["a"]}`, `1@6={"marks":["b"]}`}},
		{"a cell that is named twice is driven once",
			[]unit.Batch{{Open: []unit.Open{{Cell: 1, Key: "test/count", Seq: -1}}, Cells: []unit.CellID{1, 1}, Events: []event.Event{other(0), other(1)}, Through: 1, States: []unit.CellID{1}}},
			[]string{`state 1@1=2`}},
		{"a host-only unit has states and no values",
			[]unit.Batch{{Open: []unit.Open{{Cell: 1, Key: "test/count", Seq: -1}}, Cells: []unit.CellID{1}, Events: []event.Event{other(0), mark(1, "a")}, Through: 3, States: []unit.CellID{1}}},
			[]string{`state 1@3=2`}},
		{"cells of one batch are told apart",
			[]unit.Batch{
				{Open: []unit.Open{open(1), open(2)}},
				{Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "a")}, Through: 0},
				{Cells: []unit.CellID{2, 1}, Events: []event.Event{mark(0, "b"), mark(1, "c")}, Through: 1}},
			[]string{`1@-1={"marks":[]} 2@-1={"marks":[]}`, `1@0={"marks":["a"]}`, `2@0={"marks":["b"]} 2@1={"marks":["c"]} 1@1={"marks":["c"]}`}},
		{"drop, then open, then drive",
			[]unit.Batch{
				{Open: []unit.Open{open(1)}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "a")}, Through: 0},
				{Drop: []unit.CellID{1, 9}, Open: []unit.Open{open(1)}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "b")}, Through: 0}},
			[]string{`1@-1={"marks":[]} 1@0={"marks":["a"]}`, `1@-1={"marks":[]} 1@0={"marks":["b"]}`}},
		{"opening again makes anew",
			[]unit.Batch{
				{Open: []unit.Open{open(1)}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "a")}, Through: 0},
				{Open: []unit.Open{open(1)}, States: []unit.CellID{1}}},
			[]string{`1@-1={"marks":[]} 1@0={"marks":["a"]}`, `1@-1={"marks":[]} state 1@-1=null`}},
		{"unknown cells, each once",
			[]unit.Batch{{Cells: []unit.CellID{1, 2, 1}, States: []unit.CellID{2, 3}}, {Drop: []unit.CellID{4}}},
			[]string{`unknown 1 unknown 2 unknown 3`, ``}},
		{"a dropped cell is unknown",
			[]unit.Batch{{Open: []unit.Open{open(1)}}, {Drop: []unit.CellID{1}}, {Cells: []unit.CellID{1}}},
			[]string{`1@-1={"marks":[]}`, ``, `unknown 1`}},
		{"an unknown key is a fault of its cell",
			[]unit.Batch{{Open: []unit.Open{{Cell: 1, Key: "test/none", Seq: 4}, open(2)}, Cells: []unit.CellID{1}}},
			[]string{`2@-1={"marks":[]} fault 1@4`}},
		{"a state that does not decode is a fault where the cell was to stand",
			[]unit.Batch{{Open: []unit.Open{{Cell: 1, Key: "test/bad", State: json.RawMessage(`"no"`), Seq: 4}}}, {Cells: []unit.CellID{1}, States: []unit.CellID{1}}},
			[]string{`fault 1@4`, ``}},
		{"a view that fails at opening is a fault there",
			[]unit.Batch{{Open: []unit.Open{{Cell: 1, Key: "test/bad", State: json.RawMessage(`{"marks":["no view"]}`), Seq: 4}}, Mode: unit.LastOnly}},
			[]string{`fault 1@4`}},
		{"an error faults its cell alone, at the event, and the cell is driven no further",
			[]unit.Batch{
				{Open: []unit.Open{openBad(1), open(2)}, Cells: []unit.CellID{1, 2}, Events: []event.Event{mark(0, "a"), mark(1, "error"), mark(2, "b")}, Through: 2, States: []unit.CellID{1, 2}},
				{Cells: []unit.CellID{1, 2}, Events: []event.Event{mark(3, "c")}, Through: 3}},
			[]string{`1@-1={"marks":[]} 2@-1={"marks":[]} 1@0={"marks":["a"]} 2@0={"marks":["a"]} 2@1={"marks":["error"]} 2@2={"marks":["b"]} state 2@2={"marks":["b"]} fault 1@1`,
				`2@3={"marks":["c"]}`}},
		{"a panic is as an error",
			[]unit.Batch{{Open: []unit.Open{openBad(1)}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "panic"), mark(1, "a")}, Through: 1}},
			[]string{`1@-1={"marks":[]} fault 1@0`}},
		{"the last only, up to a fault",
			[]unit.Batch{{Open: []unit.Open{openBad(1)}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "a"), mark(1, "error")}, Through: 1, Mode: unit.LastOnly}},
			[]string{`1@0={"marks":["a"]} fault 1@1`}},
		{"a view that fails is a fault at the event that changed the state",
			[]unit.Batch{{Open: []unit.Open{openBad(1)}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "a"), mark(1, "no view"), mark(2, "b")}, Through: 2}},
			[]string{`1@-1={"marks":[]} 1@0={"marks":["a"]} fault 1@1`}},
		{"a view that fails at the end of the last only, where the one before was never shown",
			[]unit.Batch{{Open: []unit.Open{openBad(1)}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "a"), mark(1, "no view"), other(2)}, Through: 2, Mode: unit.LastOnly}},
			[]string{`1@-1={"marks":[]} fault 1@1`}},
		{"one fault for one cell, the first",
			[]unit.Batch{{Open: []unit.Open{openBad(1)}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "no view"), mark(1, "error")}, Through: 1, Mode: unit.LastOnly}},
			[]string{`1@-1={"marks":[]} fault 1@0`}},
		{"a state that does not encode is a fault where the cell stands",
			[]unit.Batch{{Open: []unit.Open{openBad(1)}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "no state")}, Through: 3, States: []unit.CellID{1}}},
			[]string{`1@-1={"marks":[]} 1@0={"marks":["no state"]} fault 1@3`}},
		{"a faulted cell is opened again",
			[]unit.Batch{
				{Open: []unit.Open{openBad(1)}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "error")}, Through: 0},
				{Open: []unit.Open{openBad(1)}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "a")}, Through: 0}},
			[]string{`1@-1={"marks":[]} fault 1@0`, `1@-1={"marks":[]} 1@0={"marks":["a"]}`}},
		{"an empty batch", []unit.Batch{{}}, []string{``}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := local(t, marks(), count(), bad())
			for i, b := range c.batches {
				if got := text(do(t, l, b)); got != c.want[i] {
					t.Errorf("batch %d:\n got %s\nwant %s", i, got, c.want[i])
				}
			}
		})
	}
}

// careless gives a next state also where it says that nothing has changed.
type careless struct{ rawFold }

func (f careless) Apply(s unit.State, ev *event.Event) (unit.State, bool, error) {
	next, changed, err := f.rawFold.Apply(s, ev)
	if ev.Type != "test/mark" {
		return "null", false, nil
	}
	return next, changed, err
}

// What an Apply returns as the next state counts only if it says that there is one.
func TestAStateThatHasNotChangedIsKept(t *testing.T) {
	d := marks()
	d.Events, d.Inline = nil, careless{d.Inline.(rawFold)}
	l := local(t, d)
	got := text(do(t, l, unit.Batch{Open: []unit.Open{{Cell: 1, Key: d.Key, Seq: -1}}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "a"), other(1)}, Through: 1, States: []unit.CellID{1}}))
	if want := `1@-1={"marks":[]} 1@0={"marks":["a"]} state 1@1={"marks":["a"]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A batch may be given up at every step of it.
func TestABatchThatIsGivenUpSaysSo(t *testing.T) {
	u, err := unit.Compile(marks())
	if err != nil {
		t.Fatal(err)
	}
	batch := unit.Batch{Drop: []unit.CellID{3}, Open: []unit.Open{{Cell: 1, Key: u.Key, Seq: -1}, {Cell: 2, Key: u.Key, Seq: -1}}, Cells: []unit.CellID{1, 2},
		Events: []event.Event{mark(0, "a"), mark(1, "b")}, Through: 1, States: []unit.CellID{1, 2}}
	enough := errors.New("enough")
	for steps := 0; ; steps++ {
		b := unit.NewBench(func(string) *unit.Compiled { return u })
		asked := 0
		r, err := b.CarryOut(&batch, func() error {
			if asked++; asked > steps {
				return enough
			}
			return nil
		})
		if asked <= steps {
			if err != nil || len(r.States) != 2 {
				t.Errorf("carried out, it gives %s, %v", text(r), err)
			}
			if asked < 1+len(batch.Open)+len(batch.Events)+len(batch.States) {
				t.Errorf("it was asked %d times whether to go on", asked)
			}
			break
		}
		if err != enough || text(r) != "" {
			t.Errorf("given up after %d steps, it gives %s, %v", steps, text(r), err)
		}
		b.Abandon(&batch)
		if r, err := b.CarryOut(&unit.Batch{Cells: []unit.CellID{1, 2}}, func() error { return nil }); err != nil || text(r) != "unknown 1 unknown 2" {
			t.Errorf("abandoned after %d steps, it gives %s, %v", steps, text(r), err)
		}
	}
}

func TestAbandoningForgetsTheCellsThatWereToBeDroppedToo(t *testing.T) {
	u, err := unit.Compile(marks())
	if err != nil {
		t.Fatal(err)
	}
	b := unit.NewBench(func(string) *unit.Compiled { return u })
	goOn := func() error { return nil }
	if _, err := b.CarryOut(&unit.Batch{Open: []unit.Open{{Cell: 1, Key: u.Key, Seq: -1}}}, goOn); err != nil {
		t.Fatal(err)
	}
	b.Abandon(&unit.Batch{Drop: []unit.CellID{1}})
	if r, err := b.CarryOut(&unit.Batch{Cells: []unit.CellID{1}}, goOn); err != nil || text(r) != "unknown 1" {
		t.Errorf("got %s, %v", text(r), err)
	}
}

func TestLocalTakesOnlyWhatItCanFold(t *testing.T) {
	notInline := marks()
	notInline.Inline, notInline.Instance = nil, &unit.Local{}
	wrong := marks()
	wrong.Key = ""
	for name, c := range map[string]struct {
		defs []unit.Definition
		rule string
	}{
		"no Inline":       {[]unit.Definition{count(), notInline}, "fold"},
		"one key twice":   {[]unit.Definition{marks(), count(), marks()}, "key"},
		"not a right one": {[]unit.Definition{wrong}, "key"},
	} {
		_, err := unit.NewLocal(c.defs...)
		var refused *unit.DefinitionError
		if !errors.As(err, &refused) || refused.Rule != c.rule || refused.Key != c.defs[len(c.defs)-1].Key {
			t.Errorf("%s: error %v, want rule %s", name, err, c.rule)
		}
	}
}

// gate is a unit of the marks whose fold waits until it is let through.
func gate() (d unit.Definition, entered chan struct{}, pass chan struct{}) {
	entered, pass = make(chan struct{}), make(chan struct{})
	d = marks()
	d.Inline = rawFold{init: "null", view: marksView, on: func(_ string, ev *event.Event) string {
		entered <- struct{}{}
		<-pass
		return string(ev.Data)
	}}
	return d, entered, pass
}

func TestBatchesAreCarriedOutInTheOrderOfTheirSubmission(t *testing.T) {
	l := local(t, marks())
	const n = 200
	var mu sync.Mutex
	var order []int
	all := make(chan struct{})
	for i := range n {
		b := unit.Batch{Cells: []unit.CellID{1}, Events: []event.Event{mark(int64(i), fmt.Sprint(i))}, Through: int64(i)}
		if i == 0 {
			b.Open = []unit.Open{{Cell: 1, Key: "test/marks", Seq: -1}}
		}
		l.Submit(context.Background(), b, func(r unit.Reply) {
			mu.Lock()
			defer mu.Unlock()
			if len(r.Unknown) > 0 || len(r.Values) == 0 {
				t.Errorf("batch %d gives %s", i, text(r))
			}
			if order = append(order, i); len(order) == n {
				close(all)
			}
		})
	}
	<-all
	if !slices.IsSorted(order) {
		t.Errorf("answered in the order %v", order)
	}
}

func TestABatchWhoseContextEndsIsAnsweredAtOnceAndItsCellsAreUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, entered, pass := gate()
		l, err := unit.NewLocal(d)
		if err != nil {
			t.Fatal(err)
		}
		do(t, l, unit.Batch{Open: []unit.Open{{Cell: 1, Key: d.Key, Seq: -1}, {Cell: 2, Key: d.Key, Seq: -1}}})

		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		replies := make(chan unit.Reply, 9)
		answer := func(r unit.Reply) { replies <- r }
		// One that hangs, one that waits behind it, and one behind both whose context lives.
		l.Submit(ctx, unit.Batch{Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "a"), mark(1, "b")}, Through: 1}, answer)
		<-entered
		l.Submit(ctx, unit.Batch{Cells: []unit.CellID{2}, Events: []event.Event{mark(0, "a")}, Through: 0}, answer)
		var late *unit.DeadlineError
		for range 2 {
			if r := <-replies; !errors.As(r.Err, &late) {
				t.Errorf("answered with %s, want *DeadlineError", text(r))
			}
		}
		l.Submit(context.Background(), unit.Batch{Cells: []unit.CellID{1, 2}, Events: []event.Event{mark(2, "c")}, Through: 2}, answer)
		pass <- struct{}{} // the hanging event ends; the one after it is not folded, nor the batch that waited
		if got, want := text(<-replies), "unknown 1 unknown 2"; got != want {
			t.Errorf("afterwards %s, want %s", got, want)
		}
		l.Close()
		if n := len(replies); n != 0 {
			t.Errorf("%d more answers than batches", n)
		}
	})
}

func TestABatchThatEndsWithItsContextIsNotHalfTrue(t *testing.T) {
	// The context ends during the last event: nobody asks any more before the end. The answer was given already, so the cell must go.
	synctest.Test(t, func(t *testing.T) {
		d, entered, pass := gate()
		l, err := unit.NewLocal(d)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		do(t, l, unit.Batch{Open: []unit.Open{{Cell: 1, Key: d.Key, Seq: -1}}})
		ctx, cancel := context.WithCancel(context.Background())
		reply := make(chan unit.Reply, 2)
		l.Submit(ctx, unit.Batch{Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "a")}, Through: 0}, func(r unit.Reply) { reply <- r })
		<-entered
		cancel()
		<-reply
		pass <- struct{}{}
		if got := text(do(t, l, unit.Batch{Cells: []unit.CellID{1}})); got != "unknown 1" {
			t.Errorf("afterwards %s, want the cell unknown", got)
		}
	})
}

// ending is a context that has ended for who asks, while who waits for it does not know yet.
type ending struct {
	context.Context
	ended atomic.Bool
}

func (c *ending) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return nil
}

// The goroutine may see the end of a context before the watcher does. The batch is half done then, and later ones must not go on from there.
func TestABatchThatIsCutShortLeavesItsCellsUnknown(t *testing.T) {
	live, cancel := context.WithCancel(context.Background())
	ctx := &ending{Context: live}
	d := marks()
	d.Inline = rawFold{init: "null", view: marksView, on: func(_ string, ev *event.Event) string {
		ctx.ended.Store(ev.Seq == 0)
		return string(ev.Data)
	}}
	l := local(t, d)
	got := make(chan unit.Reply, 1)
	l.Submit(ctx, unit.Batch{Open: []unit.Open{{Cell: 1, Key: d.Key, Seq: -1}}, Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "a"), mark(1, "b")}, Through: 1},
		func(r unit.Reply) { got <- r })
	if r := <-got; text(r) != "*unit.DeadlineError" {
		t.Errorf("answered with %s", text(r))
	}
	if got := text(do(t, l, unit.Batch{Cells: []unit.CellID{1}, Events: []event.Event{mark(2, "c")}, Through: 2})); got != "unknown 1" {
		t.Errorf("afterwards %s", got)
	}
	cancel()
}

func TestAContextThatHasEndedAlready(t *testing.T) {
	l := local(t, marks())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	inSubmit := true
	var mu sync.Mutex
	mu.Lock()
	got := make(chan unit.Reply, 2)
	l.Submit(ctx, unit.Batch{Open: []unit.Open{{Cell: 1, Key: "test/marks", Seq: -1}}}, func(r unit.Reply) {
		mu.Lock() // done within Submit would hang here
		defer mu.Unlock()
		if inSubmit {
			t.Error("done was called from within Submit")
		}
		got <- r
	})
	inSubmit = false
	mu.Unlock()
	if r := <-got; text(r) != "*unit.DeadlineError" {
		t.Errorf("got %s", text(r))
	}
	if got := text(do(t, l, unit.Batch{Cells: []unit.CellID{1}})); got != "unknown 1" {
		t.Errorf("afterwards %s", got)
	}
}

func TestCloseWaitsForTheRunningCallAndAnswersEverythingWithGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, entered, pass := gate()
		l, err := unit.NewLocal(d)
		if err != nil {
			t.Fatal(err)
		}
		do(t, l, unit.Batch{Open: []unit.Open{{Cell: 1, Key: d.Key, Seq: -1}}})
		replies := make(chan unit.Reply, 9)
		answer := func(r unit.Reply) { replies <- r }
		batch := unit.Batch{Cells: []unit.CellID{1}, Events: []event.Event{mark(0, "a"), mark(1, "b")}, Through: 1}
		l.Submit(context.Background(), batch, answer)
		<-entered
		l.Submit(context.Background(), unit.Batch{}, answer)
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			l.Close()
		}()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("Close did not wait for the fold")
		default:
		}
		pass <- struct{}{} // the event after it is not folded
		<-closed
		l.Submit(context.Background(), batch, answer)
		for i := range 3 {
			r := <-replies
			if gone := (*unit.GoneError)(nil); !errors.As(r.Err, &gone) {
				t.Errorf("answer %d is %s, want *GoneError", i, text(r))
			}
		}
	})
}

func TestCloseOfAnIdleInstance(t *testing.T) {
	l, err := unit.NewLocal()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	l.Close()
	got := make(chan unit.Reply) // done within Submit would hang here
	l.Submit(context.Background(), unit.Batch{Open: []unit.Open{{Cell: 1}}}, func(r unit.Reply) { got <- r })
	if r := <-got; text(r) != "*unit.GoneError" {
		t.Errorf("got %s", text(r))
	}
}

func BenchmarkLocal(b *testing.B) {
	l := local(b, marks(), count())
	do(b, l, unit.Batch{Open: []unit.Open{{Cell: 1, Key: "test/marks", Seq: -1}}})
	events := make([]event.Event, 500)
	seq, empty := int64(0), json.RawMessage(`{}`)
	done := make(chan unit.Reply, 1)
	answer := func(r unit.Reply) { done <- r }
	b.ReportAllocs()
	for b.Loop() {
		for i := range events {
			events[i] = event.Event{Type: "turn/start", Seq: seq, Data: empty}
			seq++
		}
		l.Submit(context.Background(), unit.Batch{Cells: []unit.CellID{1}, Events: events, Through: seq - 1}, answer)
		<-done
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
}
