package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
	"github.com/foldhost/foldhost/unit"
)

func TestTheFirstMemberByPluginThenVariantThenArrivalComputes(t *testing.T) {
	bind := func(plugin, variant, key string) *binding {
		c, err := unit.Compile(fakeplugin.Counter(key, "a"))
		if err != nil {
			t.Fatal(err)
		}
		return &binding{Compiled: c, by: Registrant{plugin, variant}}
	}
	b1, b2, a, av := bind("b", "", "k"), bind("b", "", "k"), bind("a", "", "k"), bind("a", "v", "k")
	all := func(Registrant) bool { return true }
	for _, c := range []struct {
		name   string
		have   []*binding
		member func(Registrant) bool
		want   *binding
	}{
		{"nobody", nil, all, nil},
		{"the first to come of one registrant", []*binding{b1, b2}, all, b1},
		{"the name before the arrival", []*binding{b1, a}, all, a},
		{"the plain variant first", []*binding{av, a, b1}, all, a},
		{"members only", []*binding{a, b1, av}, func(r Registrant) bool { return r.Variant == "v" }, av},
		{"no member", []*binding{a, b1}, func(r Registrant) bool { return false }, nil},
	} {
		p := resolve(1, map[string][]*binding{"k": c.have}, c.member)
		if got := p.binding("k"); got != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
		if n := len(p.byType["a"]); (n == 1) != (c.want != nil) {
			t.Errorf("%s: %d places fold it", c.name, n)
		}
	}
}

func TestThoseFurthestBehindGoTogether(t *testing.T) {
	for _, c := range []struct {
		name  string
		runs  []run
		group string
		to    int64
	}{
		{"nobody", nil, "[]", 0},
		{"all are there", []run{{5, 5}, {9, 9}}, "[]", 0},
		{"one", []run{{-1, 9}}, "[0]", 9},
		{"two at one place, to where the first stops", []run{{3, 9}, {3, 7}}, "[0 1]", 7},
		{"up to where the next stands", []run{{5, 9}, {1, 9}}, "[1]", 5},
		{"those that are there are in nobody's way", []run{{2, 2}, {1, 9}}, "[1]", 9},
		{"one that is nearby comes first", []run{{0, 2 * nearby}, {nearby, 2 * nearby}}, "[1]", 2 * nearby},
		{"and takes no other along", []run{{nearby - 1, 2 * nearby}, {nearby, 2 * nearby}, {nearby + 7, 2 * nearby}}, "[1]", nearby + 7},
		{"nobody is nearby", []run{{0, 2*nearby + 2}, {nearby, 2*nearby + 2}}, "[0]", nearby},
		{"those that are there are not nearby", []run{{0, 2 * nearby}, {2 * nearby, 2 * nearby}}, "[0]", 2 * nearby},
	} {
		group, to := laggards(c.runs)
		if fmt.Sprint(group) != c.group || len(group) > 0 && to != c.to {
			t.Errorf("%s: %v to %d", c.name, group, to)
		}
	}
}

func TestAStretchStopsWhereAValueIsNeeded(t *testing.T) {
	for _, c := range []struct {
		name                    string
		sent, limit             int64
		replaying               bool
		pub, emitFrom, wantStop int64
	}{
		{"nothing to stop at", 3, 9, false, 3, 0, 9},
		{"what was published before a crash", 3, 9, true, 6, 0, 6},
		{"the event before those that are told", -1, 9, false, -1, 5, 4},
		{"the nearer of both", -1, 9, true, 7, 5, 4},
		{"never back", 9, 5, false, 9, 0, 9},
	} {
		if got := stopAt(c.sent, c.limit, c.replaying, c.pub, c.emitFrom); got != c.wantStop {
			t.Errorf("%s: %d", c.name, got)
		}
	}
}

func TestASuspectIsTriedStepByStep(t *testing.T) {
	q := suspicion{to: 9, survived: 5, state: true}
	single := q
	single.single = true
	for _, c := range []struct {
		name   string
		opened bool
		sent   int64
		due    int64
		q      suspicion
		step   step
		to     int64
		done   bool
	}{
		{"it is opened alone", false, -1, 20, q, stepOpen, -1, false},
		{"what worked before, at once", true, -1, 20, q, stepAgain, 5, false},
		{"or one by one", true, -1, 20, single, stepEvent, 9, false},
		{"what was in flight, one by one", true, 5, 20, q, stepEvent, 9, false},
		{"its state", true, 9, 20, q, stepState, 9, false},
		{"nothing beyond what is due", true, 3, 3, suspicion{to: 9, survived: 5}, together, 0, true},
		{"cleared", true, 9, 20, suspicion{to: 9, survived: 5}, together, 0, true},
	} {
		st, to, done := nextStep(c.opened, c.sent, c.due, c.q)
		if st != c.step || to != c.to || done != c.done {
			t.Errorf("%s: step %d to %d, done %v", c.name, st, to, done)
		}
	}
	for _, c := range []struct {
		st   step
		row  bool
		want verdict
	}{
		{together, true, suspectIt}, {stepOpen, true, withoutRow}, {stepOpen, false, accused},
		{stepAgain, true, oneByOne}, {stepEvent, true, accused}, {stepState, false, accused},
	} {
		if got := judge(c.st, c.row); got != c.want {
			t.Errorf("step %d, row %v: verdict %d", c.st, c.row, got)
		}
	}
}

func TestTheFrontAndTheBuildsTakeTurns(t *testing.T) {
	for _, c := range []struct {
		front, behind int
		last, want    bool
	}{{0, 0, false, false}, {1, 0, true, true}, {0, 1, false, false}, {1, 1, false, true}, {1, 1, true, false}} {
		if got := pickFront(c.front, c.behind, c.last); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestASuccessorTakesOverWhenItKnowsAsMuch(t *testing.T) {
	for _, c := range []struct {
		failed, ready bool
		next, cur     int64
		want          bool
	}{{false, false, 9, 5, false}, {false, true, 4, 5, false}, {false, true, 5, 5, true}, {false, true, 9, 5, true}, {true, false, -1, 5, true}} {
		if got := mayTakeOver(c.failed, c.ready, c.next, c.cur); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	if mayFreeze(true, 0, 300, 256) || !mayFreeze(true, 44, 300, 256) || mayFreeze(false, 300, 300, 256) {
		t.Error("the one that serves stops when the other is under way and a batch away, and not before")
	}
}

func TestWhatAReplySaysIsCheckedBeforeItCounts(t *testing.T) {
	c, err := unit.Compile(fakeplugin.Counter("k", "a"))
	if err != nil {
		t.Fatal(err)
	}
	b := &binding{Compiled: c}
	v := func(cell unit.CellID, seq int64) unit.Value {
		return unit.Value{Cell: cell, Seq: seq, View: json.RawMessage("1")}
	}
	open, on := &part{id: 1, after: 3, from: 3, opened: true}, &part{id: 1, after: 3}
	for _, c := range []struct {
		name   string
		p      *part
		r      unit.Reply
		values int
		wrong  bool
	}{
		{"values in order", on, unit.Reply{Values: []unit.Value{v(1, 4), v(1, 9)}}, 2, false},
		{"none", on, unit.Reply{}, 0, false},
		{"those of others", on, unit.Reply{Values: []unit.Value{v(2, 1), v(2, 1)}}, 0, false},
		{"what it had", on, unit.Reply{Values: []unit.Value{v(1, 3)}}, 0, true},
		{"where it was opened", open, unit.Reply{Values: []unit.Value{v(1, 3)}}, 1, false},
		{"before it was opened", open, unit.Reply{Values: []unit.Value{v(1, 2)}}, 0, true},
		{"nothing after opening", open, unit.Reply{}, 0, true},
		{"twice", on, unit.Reply{Values: []unit.Value{v(1, 4), v(1, 4)}}, 0, true},
		{"backwards", on, unit.Reply{Values: []unit.Value{v(1, 5), v(1, 4)}}, 0, true},
		{"beyond the batch", on, unit.Reply{Values: []unit.Value{v(1, 11)}}, 0, true},
		{"no state where one was asked for", &part{id: 1, after: 3, state: true}, unit.Reply{}, 0, true},
	} {
		h := hear(c.p, &flight{through: 10}, b, &c.r)
		if (h.wrong != "") != c.wrong || !c.wrong && len(h.values) != c.values {
			t.Errorf("%s: %+v", c.name, h)
		}
	}
	h := hear(on, &flight{through: 10}, b, &unit.Reply{Values: []unit.Value{v(1, 4)}, Faults: []unit.Fault{{Cell: 1, Seq: 99}, {Cell: 2, Seq: 5}}})
	if h.fault == nil || h.fault.Seq != 10 || len(h.values) != 1 {
		t.Errorf("a fault beyond the batch is one in it: %+v", h)
	}
}

// While a batch is in flight a reader asks, and then an event comes that is due behind what it asked for. When the batch lands the cell must stand at
// the cut and not behind it.
func TestAnEventBehindACutDoesNotCarryACellInFlightPastIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{ReadWait: time.Minute})
		p, _ := w.plugin("p", fakeplugin.Counter("n", "a"))
		w.values(-1, "n", "0")
		land := make(chan struct{})
		flight := p.Add(fakeplugin.Hold(fakeplugin.AtBatch, land).Once())
		w.append("a")
		synctest.Wait()
		w.append("x", "x", "x")
		got := make(chan Block)
		go func() { got <- w.snapshot() }()
		synctest.Wait()
		w.append("x", "a")
		synctest.Wait()
		asked := time.Now()
		close(land)
		if b := <-got; b.AsOfSeq != 3 || string(b.Values["n"]) != "1" || time.Since(asked) > 0 {
			t.Errorf("after %v: %s", time.Since(asked), b.AppendJSON(nil))
		}
		w.values(5, "n", "2")
		if flight.Fired() != 1 {
			t.Error("no batch was in flight")
		}
	})
}

// Snapshots that are taken while appends run are the fold of the prefix that they say, whichever way the cells are folded.
func TestSnapshotsWhileAppendsRun(t *testing.T) {
	const n = 1500
	types := many(n, "a", "b", "x")
	evs := events(types...)
	defs := []unit.Definition{fakeplugin.Chain("in", "a"), fakeplugin.Chain("all"), fakeplugin.Chain("out", "a", "b"), fakeplugin.Chain("late", "b")}
	want := map[string][]string{}
	for _, d := range defs {
		st, _ := d.Inline.Init()
		view := func() string { v, _ := d.Inline.View(st); return string(v) }
		want[d.Key] = []string{view()}
		for i := range evs {
			if d.Events == nil || slices.Contains(d.Events, evs[i].Type) {
				if next, changed, _ := d.Inline.Apply(st, &evs[i]); changed {
					st = next
				}
			}
			want[d.Key] = append(want[d.Key], view())
		}
	}
	w := given(t, Options{BatchEvents: 16})
	w.log.page = 50
	w.register("p", defs[0], defs[1])
	w.plugin("q", defs[2])
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		wg.Go(func() {
			for {
				b, err := w.s.Snapshot(context.Background())
				if err != nil || len(b.Unavailable) > 0 {
					t.Errorf("%v, %+v", err, b.Unavailable)
					return
				}
				for key, v := range b.Values {
					if string(v) != want[key][b.AsOfSeq+1] {
						t.Errorf("%s at %d is %s", key, b.AsOfSeq, v)
						return
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for i := range evs {
		w.log.append(evs[i])
		w.s.Publish(context.Background(), []event.Event{evs[i]})
		if i == n/2 {
			w.register("r", defs[3])
		}
	}
	close(stop)
	wg.Wait()
}

func TestErrorsNameThingPlaceAndAreTyped(t *testing.T) {
	for _, err := range []error{
		&VersionConflictError{Key: "k", Have: 1, Want: 9, By: Registrant{Plugin: "p"}}, &UnknownKeyError{Key: "k", Set: "B"},
		&UnavailableError{Session: "s", Key: "k", Unavailable: Unavailable{Code: Parked, Seq: 3}},
	} {
		if !strings.Contains(err.Error(), "k") {
			t.Errorf("%T does not name the key: %v", err, err)
		}
	}
	if errors.Is(ErrClosed, ErrDetached) {
		t.Error("two errors are one")
	}
}

// How deaths of processes convict a cell that is not live.
func TestWhatDeathsSayOfAColdCell(t *testing.T) {
	event := func(seq int64) poisonFlight {
		return poisonFlight{from: seq, to: seq, step: stepEvent, careful: true, reason: "it died"}
	}
	batch := poisonFlight{from: 3, to: 9, step: stepEvent, reason: "it died"}
	state := poisonFlight{from: 9, to: 9, step: stepState, state: true, careful: true, reason: "it died"}
	open := poisonFlight{from: -1, to: -1, step: stepOpen, careful: true, reason: "it died"}
	row := poisonFlight{from: 4, to: 4, step: stepOpen, seeded: true, careful: true, reason: "it died"}
	for _, c := range []struct {
		name    string
		flights []poisonFlight
		alone   bool
		want    poisonRecord
		failed  int64 // −2: no fault
	}{
		{"among others", []poisonFlight{batch, batch, batch, batch, batch}, true, poisonRecord{suspect: true, from: 3, to: 9}, -2},
		{"once alone", []poisonFlight{batch, event(4)}, true, poisonRecord{suspect: true, from: 4, to: 9, accused: accusation{stepEvent, 4}, times: 1}, -2},
		{"twice alone", []poisonFlight{batch, event(4), event(4)}, true, poisonRecord{suspect: true, from: 4, to: 9, accused: accusation{stepEvent, 4}, times: 2}, 4},
		{"at two events", []poisonFlight{batch, event(4), event(5)}, true, poisonRecord{suspect: true, from: 5, to: 9, accused: accusation{stepEvent, 5}, times: 1}, -2},
		{"twice beside other work", []poisonFlight{event(4), event(4)}, false, poisonRecord{suspect: true, from: 4, to: 4, accused: accusation{stepEvent, 4}, times: 2}, -2},
		{"often beside other work", []poisonFlight{event(4), event(4), event(4), event(4)}, false, poisonRecord{suspect: true, from: 4, to: 4, accused: accusation{stepEvent, 4}, times: 4}, 4},
		{"with others in between", []poisonFlight{event(4), batch, event(4)}, true, poisonRecord{suspect: true, from: 4, to: 9, accused: accusation{stepEvent, 4}, times: 1}, -2},
		{"at its state", []poisonFlight{state, state}, true, poisonRecord{suspect: true, from: 9, to: 9, state: true, accused: accusation{stepState, 9}, times: 2}, 9},
		{"once at its state, then at an event", []poisonFlight{state, event(4)}, true, poisonRecord{suspect: true, from: 4, to: 9, state: true, accused: accusation{stepEvent, 4}, times: 1}, -2},
		{"at opening it", []poisonFlight{batch, open, open}, true, poisonRecord{suspect: true, from: -1, to: 9, accused: accusation{stepOpen, -1}, times: 2}, -1},
		{"at opening it from a row", []poisonFlight{batch, row}, true, poisonRecord{noSeed: true, from: -1, to: -1}, -2},
	} {
		var rec poisonRecord
		for _, f := range c.flights {
			rec.take(f, c.alone)
		}
		failed := int64(-2)
		if rec.fault != nil {
			failed = rec.fault.FailedAt
			rec.fault = nil
		}
		if rec != c.want || failed != c.failed {
			t.Errorf("%s: got %+v, failed at %d; want %+v, %d", c.name, rec, failed, c.want, c.failed)
		}
	}
}

// A process is quiet while one batch that is not of live cells is all that it has.
func TestWhenAProcessIsQuiet(t *testing.T) {
	p := &process{flights: map[*flight]struct{}{}, others: 1, entries: 7}
	if quiet, entries := p.quiet(); !quiet || entries != 7 {
		t.Errorf("with one: %v, %d", quiet, entries)
	}
	p.others = 2
	if quiet, _ := p.quiet(); quiet {
		t.Error("quiet with two")
	}
	p.others, p.flights[&flight{}] = 1, struct{}{}
	if quiet, _ := p.quiet(); quiet {
		t.Error("quiet beside a live cell's")
	}
}

// What a process says about cells that are not live is checked before it counts.
func TestWhatIsSaidOfAColdCellIsChecked(t *testing.T) {
	r := New(Options{})
	defer r.Close()
	b := compiledBindings(t, r, fakeplugin.Counter("n", "a"))[0]
	evs := events("a", "a", "b", "a")
	values := func(seqs ...int64) (vs []unit.Value) {
		for i, q := range seqs {
			vs = append(vs, unit.Value{Cell: 1, Seq: q, View: json.RawMessage(fmt.Sprint(i + 2))})
		}
		return append(vs, unit.Value{Cell: 9, Seq: 99, View: json.RawMessage(`"another's"`)})
	}
	for _, c := range []struct {
		name   string
		mode   unit.Mode
		reply  unit.Reply
		values int
		seq    int64 // where the cell stands then; −9: it is open no more
		down   UnavailableCode
		failed int64
	}{
		{"every change", unit.EveryChange, unit.Reply{Values: values(1, 3)}, 2, 3, "", 0},
		{"nothing", unit.EveryChange, unit.Reply{}, 0, 3, "", 0},
		{"the last", unit.LastOnly, unit.Reply{Values: values(3)}, 0, 3, "", 0},
		{"two where the last was asked for", unit.LastOnly, unit.Reply{Values: values(1, 3)}, 0, 0, Behind, 0},
		{"of where it stands", unit.EveryChange, unit.Reply{Values: values(0)}, 0, 0, Behind, 0},
		{"the same twice", unit.EveryChange, unit.Reply{Values: values(1, 1)}, 0, 0, Behind, 0},
		{"backwards", unit.EveryChange, unit.Reply{Values: values(3, 1)}, 0, 0, Behind, 0},
		{"beyond the batch", unit.LastOnly, unit.Reply{Values: values(4)}, 0, 0, Behind, 0},
		{"of an event that it does not fold", unit.EveryChange, unit.Reply{Values: values(2)}, 0, 0, Behind, 0},
		{"a fault", unit.EveryChange, unit.Reply{Values: values(1), Faults: []unit.Fault{{Cell: 1, Seq: 3, Message: "no"}}}, 1, 0, Faulted, 3},
		{"a fault of another", unit.EveryChange, unit.Reply{Faults: []unit.Fault{{Cell: 9, Seq: 3, Message: "no"}}}, 0, 3, "", 0},
		{"a value at its fault", unit.EveryChange, unit.Reply{Values: values(1, 3), Faults: []unit.Fault{{Cell: 1, Seq: 3, Message: "no"}}}, 0, 0, Behind, 0},
		{"a fault before the batch", unit.EveryChange, unit.Reply{Faults: []unit.Fault{{Cell: 1, Seq: -5, Message: "no"}}}, 0, 0, Faulted, 1},
		{"a fault beyond the batch", unit.EveryChange, unit.Reply{Faults: []unit.Fault{{Cell: 1, Seq: 50, Message: "no"}}}, 0, 0, Faulted, 3},
		{"unknown", unit.EveryChange, unit.Reply{Unknown: []unit.CellID{1}}, 0, -9, "", 0},
	} {
		cell := &scratchCell{binding: b, id: 1, seedSeq: -1, open: true, view: json.RawMessage("1")}
		got := cell.folded(&unit.Batch{Events: evs[1:], Through: 3, Mode: c.mode}, c.reply, nil)
		var code UnavailableCode
		var failed int64
		if cell.down != nil {
			code, failed = cell.down.Code, cell.down.FailedAt
		}
		seq := cell.seq
		if !cell.open {
			seq = -9
		}
		if len(got) != c.values || seq != c.seq || code != c.down || failed != c.failed {
			t.Errorf("%s: %d values, at %d, %q failed at %d; want %d, %d, %q, %d", c.name, len(got), seq, code, failed, c.values, c.seq, c.down, c.failed)
		}
	}
}
