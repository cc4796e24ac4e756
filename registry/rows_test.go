package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
	"github.com/foldhost/foldhost/unit"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// marks is a unit whose value is {"marks": the marks of the last test/mark}; count is host-only and counts every event.
func marks() unit.Definition {
	schema := json.RawMessage(`{"type":"object","properties":{"marks":{"type":"array"}},"required":["marks"]}`)
	return unit.Definition{
		Key: "test/marks", StateVersion: 1, StateSchema: schema, ViewSchema: schema, Events: []string{"test/mark"},
		Inline: fakeplugin.Fold{
			Initial: `{"marks":[]}`,
			On: func(_ string, ev *event.Event) (string, error) {
				return `{"marks":` + string(event.Lookup(ev.Data, "marks")) + `}`, nil
			},
		},
	}
}

func count() unit.Definition {
	d := fakeplugin.HostOnly(fakeplugin.Counter("test/count"))
	d.StateVersion = 7
	return d
}

// markLog is a log of test/mark events, a mark each, with turn/start where it is "".
func markLog(names ...string) *sampleLog {
	var evs []event.Event
	for i, name := range names {
		ev := event.Event{Type: "turn/start", Seq: int64(i), Data: json.RawMessage(fmt.Sprintf(`{"turn":%d}`, i))}
		if name != "" {
			ev.Type, ev.Data = "test/mark", json.RawMessage(fmt.Sprintf(`{"marks":["%s"]}`, name))
		}
		evs = append(evs, ev)
	}
	return newSampleLog("s", evs...)
}

func (l *sampleLog) tail(base int64) Tail {
	return Tail{Session: l.id, Incarnation: l.incarnation, Base: base, Events: l.events[min(base, int64(len(l.events))):]}
}

func (l *sampleLog) rows(rows ...Row) Rows {
	out := Rows{Session: l.id, Incarnation: l.incarnation, Rows: map[string]Row{}}
	for i, key := range []string{"test/marks", "test/count"} {
		if i < len(rows) && rows[i].Def != "" {
			out.Rows[key] = rows[i]
		}
	}
	return out
}

// row makes the row that a definition would have on the log at seq, with the state given.
func (l *sampleLog) row(b *binding, seq int64, state, view string) Row {
	row := Row{Ver: b.StateVersion, Def: b.Digest, Seq: seq, Val: json.RawMessage(state)}
	if view != "" {
		row.View = json.RawMessage(view)
	}
	if seq >= 0 {
		row.Anchor = "an event that the log does not have"
		if seq < int64(len(l.events)) {
			row.Anchor = event.Fingerprint(&l.events[seq])
		}
	}
	return row
}

func marksAndCount(t testing.TB) (r *Registry, m, c *binding) {
	t.Helper()
	r = New(Options{})
	t.Cleanup(r.Close)
	register(t, r, "p", marks(), count())
	bs := r.setBindings("")
	return r, bs[1], bs[0]
}

func TestRestoreFloorIsOneBelowTheFirstEventThatAnyUnitNeeds(t *testing.T) {
	empty := New(Options{})
	t.Cleanup(empty.Close)
	if _, ok := empty.RestoreFloor("", Rows{}); ok {
		t.Error("without units there is a floor")
	}
	r, m, c := marksAndCount(t)
	log := markLog()
	at := func(b *binding, seq int64) Row { return log.row(b, seq, `0`, ``) }
	changed := func(row Row, f func(*Row)) Row { f(&row); return row }
	for name, x := range map[string]struct {
		rows Rows
		want int64
	}{
		"no rows":                {log.rows(), 0},
		"one row missing":        {log.rows(at(m, 10)), 0},
		"the lower row counts":   {log.rows(at(m, 10), at(c, 5)), 5},
		"another stateVersion":   {log.rows(changed(at(m, 10), func(r *Row) { r.Ver = 2 }), at(c, 5)), 0},
		"another definition":     {log.rows(changed(at(m, 10), func(r *Row) { r.Def = "x" }), at(c, 5)), 0},
		"rows of the empty log":  {log.rows(at(m, -1), at(c, -1)), 0},
		"rows at the first":      {log.rows(at(m, 0), at(c, 0)), 0},
		"a seq that cannot be":   {log.rows(changed(at(m, 10), func(r *Row) { r.Seq = -2 }), at(c, 5)), 0},
		"a seq beyond all":       {log.rows(changed(at(m, 10), func(r *Row) { r.Seq = 1<<63 - 1 }), at(c, 5)), 0},
		"an anchor that is gone": {log.rows(changed(at(m, 10), func(r *Row) { r.Anchor = "" }), at(c, 5)), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := r.RestoreFloor("", x.rows); got != x.want || !ok {
				t.Errorf("floor = %d (%v), want %d", got, ok, x.want)
			}
		})
	}
}

func TestRestoreFoldsTheTailOverUsableRows(t *testing.T) {
	r, m, c := marksAndCount(t)
	five := markLog("a", "b", "", "", "new")
	done := markLog("a", "b", "", "", "")
	two := markLog("a", "b")
	for name, x := range map[string]struct {
		log         *sampleLog
		rows        Rows
		base        int64
		asOf        int64
		marks       string
		count       string
		reread      bool
		marksAnchor string
	}{
		"everything again from 0": {
			log: five, base: 0, asOf: 4, marks: `{"marks":["new"]}`, count: `5`,
		},
		"everything again from 0 although there are rows": {
			log: five, base: 0, asOf: 4, marks: `{"marks":["new"]}`, count: `5`,
			rows: five.rows(five.row(m, 3, `{"marks":["b"]}`, ``), five.row(c, 2, `3`, ``)),
		},
		"the tail over rows of different seqs": {
			log: done, base: 3, asOf: 4, marks: `{"marks":["done"]}`, count: `5`,
			rows: done.rows(done.row(m, 4, `{"marks":["done"]}`, ``), done.row(c, 2, `3`, ``)),
		},
		"no tail at all": {
			log: done, base: 5, asOf: 4, marks: `{"marks":["done"]}`, count: `5`,
			rows: done.rows(done.row(m, 4, `{"marks":["done"]}`, ``), done.row(c, 4, `5`, ``)),
		},
		"the empty log": {
			log: markLog(), base: 0, asOf: -1, marks: `{"marks":[]}`, count: `0`,
		},
		"rows of the empty log": {
			log: two, base: 0, asOf: 1, marks: `{"marks":["b"]}`, count: `2`,
			rows: two.rows(two.row(m, -1, `{"marks":[]}`, ``), two.row(c, -1, `0`, ``)),
		},
		"a row beyond the end, from 0": {
			log: two, base: 0, asOf: 1, marks: `{"marks":["b"]}`, count: `2`,
			rows: two.rows(two.row(m, 9, `{"marks":["phantom"]}`, ``), two.row(c, 9, `10`, ``)),
		},
		"a row beyond the end": {
			log: two, base: 2, reread: true,
			rows: two.rows(two.row(m, 9, `{"marks":["phantom"]}`, ``), two.row(c, 9, `10`, ``)),
		},
		"a row below the base": {
			log: five, base: 4, reread: true,
			rows: five.rows(five.row(m, 4, `{"marks":["new"]}`, ``), five.row(c, 2, `3`, ``)),
		},
		"a row missing": {log: five, base: 1, reread: true, rows: five.rows(five.row(m, 4, `{"marks":["new"]}`, ``))},
	} {
		t.Run(name, func(t *testing.T) {
			block, rows, err := r.Restore(t.Context(), "", x.rows, x.log.tail(x.base))
			if x.reread {
				var again *RereadError
				if !errors.As(err, &again) {
					t.Errorf("error = %v, want a *RereadError", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if block.AsOfSeq != x.asOf || string(block.Values["test/marks"]) != x.marks || len(block.Values) != 1 || len(block.Unavailable) != 0 {
				t.Errorf("block = %s, want %s as of %d", block.AppendJSON(nil), x.marks, x.asOf)
			}
			want := x.log.rows(x.log.row(m, x.asOf, x.marks, x.marks), x.log.row(c, x.asOf, x.count, ""))
			want.Cut = x.asOf
			if d := cmp.Diff(want, rows); d != "" {
				t.Errorf("refreshed rows differ:\n%s", d)
			}
		})
	}
}

// Every way in which a row can be unusable. The rows are poisoned with a state that no fold would give.
func TestAnUnusableRowNeverInfluencesAValue(t *testing.T) {
	r, m, c := marksAndCount(t)
	log := markLog("a", "b", "", "c", "")
	for name, spoil := range map[string]func(rows *Rows, row *Row){
		"another stateVersion":           func(_ *Rows, row *Row) { row.Ver++ },
		"another definition":             func(_ *Rows, row *Row) { row.Def = "other" },
		"below the empty log":            func(_ *Rows, row *Row) { row.Seq = -2 },
		"beyond the end":                 func(_ *Rows, row *Row) { row.Seq = 5 },
		"far beyond the end":             func(_ *Rows, row *Row) { row.Seq = 1<<63 - 1 },
		"another event at its seq":       func(_ *Rows, row *Row) { row.Anchor = event.Fingerprint(&log.events[2]) },
		"no anchor":                      func(_ *Rows, row *Row) { row.Anchor = "" },
		"an anchor at the empty log":     func(_ *Rows, row *Row) { row.Seq = -1 },
		"the anchor of another seq":      func(_ *Rows, row *Row) { row.Seq = 2 },
		"a state that is not JSON":       func(_ *Rows, row *Row) { row.Val = json.RawMessage(`{"marks":["x"]`) },
		"no state":                       func(_ *Rows, row *Row) { row.Val = nil },
		"an empty state":                 func(_ *Rows, row *Row) { row.Val = json.RawMessage{} },
		"a state against its schema":     func(_ *Rows, row *Row) { row.Val = json.RawMessage(`{"marks":"not-an-array"}`) },
		"a state with a duplicate key":   func(_ *Rows, row *Row) { row.Val = json.RawMessage(`{"marks":["x"],"marks":["y"]}`) },
		"a state with text behind it":    func(_ *Rows, row *Row) { row.Val = json.RawMessage(`{"marks":["x"]} 1`) },
		"another life of the log":        func(rows *Rows, _ *Row) { rows.Incarnation = "s.0" },
		"a life of the log with no name": func(rows *Rows, _ *Row) { rows.Incarnation = "" },
		"another session":                func(rows *Rows, _ *Row) { rows.Session = "t" },
	} {
		t.Run(name, func(t *testing.T) {
			row := log.row(m, 3, `{"marks":["phantom"]}`, `{"marks":["phantom"]}`)
			rows := log.rows(row, log.row(c, 3, `4`, ``))
			spoil(&rows, &row)
			rows.Rows["test/marks"] = row

			want := `{"marks":["c"]}`
			for how, restore := range map[string]func() (Block, Rows, error){
				"Restore":     func() (Block, Rows, error) { return r.Restore(t.Context(), "", rows, log.tail(0)) },
				"RestoreFrom": func() (Block, Rows, error) { return r.RestoreFrom(t.Context(), "", rows, log, 4) },
			} {
				block, fresh, err := restore()
				if err != nil || string(block.Values["test/marks"]) != want {
					t.Errorf("%s gave %s (%v), want %s", how, block.Values["test/marks"], err, want)
				}
				if f := fresh.Rows["test/marks"]; string(f.Val) != want || string(f.View) != want || f.Seq != 4 || fresh.Incarnation != log.incarnation {
					t.Errorf("%s refreshed the row to %+v", how, f)
				}
			}
			var again *RereadError
			if _, _, err := r.Restore(t.Context(), "", rows, log.tail(2)); !errors.As(err, &again) {
				t.Errorf("with base 2 the error is %v, want a *RereadError", err)
			}
		})
	}
}

func TestARowWhoseStateTheUnitRefusesIsUnusable(t *testing.T) {
	def := fakeplugin.Last("last", "x")
	f := def.Inline.(fakeplugin.Fold)
	f.Look = func(state string) string {
		if state == `"bad"` {
			panic("cannot show that")
		}
		return state
	}
	def.Inline = f
	r := New(Options{})
	t.Cleanup(r.Close)
	b := compiledBindings(t, r, def)[0]
	log := newSampleLog("s", events("x", "noise")...)
	rows := Rows{Session: "s", Incarnation: "s.1", Rows: map[string]Row{"last": log.row(b, 1, `"bad"`, ``)}}
	block, _, err := r.Restore(t.Context(), "", rows, log.tail(0))
	if err != nil || string(block.Values["last"]) != `{"at":0}` {
		t.Errorf("block = %s (%v), want a fold from init", block.AppendJSON(nil), err)
	}
	var again *RereadError
	if _, _, err := r.Restore(t.Context(), "", rows, log.tail(1)); !errors.As(err, &again) || again.Key != "last" {
		t.Errorf("with base 1 the error is %v, want a *RereadError of last", err)
	}
}

func TestRestoreRefusesATailWithHoles(t *testing.T) {
	r, _, _ := marksAndCount(t)
	log := markLog("a", "b", "c", "d")
	for name, tail := range map[string]Tail{
		"a gap":           {Base: 0, Events: []event.Event{log.events[0], log.events[2]}},
		"a repeat":        {Base: 0, Events: []event.Event{log.events[0], log.events[0]}},
		"another base":    {Base: 1, Events: log.events},
		"a negative base": {Base: -1},
	} {
		var wrong *TailError
		if _, _, err := r.Restore(t.Context(), "", Rows{}, tail); !errors.As(err, &wrong) {
			t.Errorf("%s: error = %v, want a *TailError", name, err)
		}
	}
	var none *NoEventError
	for _, end := range []int64{4, -2} {
		if _, _, err := r.RestoreFrom(t.Context(), "", Rows{}, log, end); !errors.As(err, &none) {
			t.Errorf("RestoreFrom to %d: error = %v, want a *NoEventError", end, err)
		}
	}
}

func TestViewRowsServesWhatRowsSay(t *testing.T) {
	r := New(Options{})
	t.Cleanup(r.Close)
	p := fakeplugin.New(fakeplugin.Last("b", "x"))
	t.Cleanup(p.Close)
	register(t, r, "p", marks(), count())
	register(t, r, "q", p.Definitions()...)
	bs := r.setBindings("")
	b, c, m := bs[0], bs[1], bs[2]
	log := markLog("a", "b", "c", "d", "e", "f", "g", "h")
	good, html := `{"marks":["t"]}`, `"<&>\u003c"`
	rows := func(of map[string]Row) Rows { return Rows{Session: "s", Incarnation: "s.1", Rows: of} }
	marksRow := log.row(m, 4, good, good)
	for name, x := range map[string]struct {
		rows map[string]Row
		keys []string
		asOf int64
		want map[string]string
	}{
		"none":                 {nil, nil, -1, nil},
		"one":                  {map[string]Row{m.Key: marksRow}, nil, 4, map[string]string{m.Key: good}},
		"host-only":            {map[string]Row{m.Key: marksRow, c.Key: log.row(c, 2, `3`, `3`)}, nil, 4, map[string]string{m.Key: good}},
		"the lowest seq":       {map[string]Row{m.Key: marksRow, b.Key: log.row(b, 7, html, html)}, nil, 4, map[string]string{m.Key: good, b.Key: html}},
		"only the keys asked":  {map[string]Row{m.Key: marksRow, b.Key: log.row(b, 7, html, html)}, []string{b.Key, "absent"}, 7, map[string]string{b.Key: html}},
		"unknown keys":         {map[string]Row{m.Key: marksRow, "gone": marksRow}, nil, 4, map[string]string{m.Key: good}},
		"another version":      {map[string]Row{m.Key: {Ver: 99, Def: m.Digest, Seq: 4, Val: json.RawMessage(good), View: json.RawMessage(good), Anchor: "x"}}, nil, -1, nil},
		"another definition":   {map[string]Row{m.Key: {Ver: 1, Def: "x", Seq: 4, Val: json.RawMessage(good), View: json.RawMessage(good), Anchor: "x"}}, nil, -1, nil},
		"another config":       {map[string]Row{m.Key: marksRow, b.Key: {Ver: b.StateVersion, Def: b.Digest, Seq: 7, Val: json.RawMessage(html), View: json.RawMessage(html), Config: "x", Anchor: "x"}}, nil, 4, map[string]string{m.Key: good}},
		"a state against it":   {map[string]Row{m.Key: log.row(m, 4, `"not-an-array"`, good)}, nil, -1, nil},
		"a view against it":    {map[string]Row{m.Key: log.row(m, 4, good, `{"marks":1}`)}, nil, -1, nil},
		"a view that is none":  {map[string]Row{m.Key: log.row(m, 4, good, ``)}, nil, -1, nil},
		"a view cut short":     {map[string]Row{m.Key: log.row(m, 4, good, `{"marks":[`)}, nil, -1, nil},
		"the empty log":        {map[string]Row{m.Key: log.row(m, -1, good, good)}, nil, -1, map[string]string{m.Key: good}},
		"a seq that cannot be": {map[string]Row{m.Key: log.row(m, -7, good, good)}, nil, -1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			block := r.ViewRows("", rows(x.rows), x.keys...)
			got := map[string]string{}
			for k, v := range block.Values {
				got[k] = string(v)
			}
			if block.AsOfSeq != x.asOf || !maps.Equal(got, x.want) || len(block.Revs) != len(got) || len(block.Unavailable) != 0 {
				t.Errorf("block = %s, want %v as of %d", block.AppendJSON(nil), x.want, x.asOf)
			}
		})
	}
	if n := p.Counts().Batches; n != 0 {
		t.Errorf("the plugin was sent %d batches for rows", n)
	}
}

func TestAUnitThatFailsInARestoreFailsForItsKeyAlone(t *testing.T) {
	for name, x := range map[string]struct {
		fault *fakeplugin.Fault
		code  UnavailableCode
		// kept: the row that was there is worth keeping.
		kept bool
	}{
		"a fault":      {fakeplugin.Fail(fakeplugin.AtEvent, "no"), Faulted, false},
		"a crash":      {fakeplugin.Crash(fakeplugin.AtEvent), Restarting, true},
		"a hang":       {fakeplugin.Hang(fakeplugin.AtEvent), Behind, true},
		"a bad view":   {fakeplugin.View(json.RawMessage(`{"n":1}`)), Faulted, false},
		"a vast state": {fakeplugin.State(json.RawMessage(`"` + string(make([]byte, 3000)) + `"`)), Faulted, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := New(Options{MaxStateBytes: 2000})
				defer r.Close()
				p := fakeplugin.New(fakeplugin.Counter("n"))
				defer p.Close()
				register(t, r, "p", p.Definitions()...)
				register(t, r, "q", marks())
				b := r.setBindings("")[0]
				log := markLog("a", "b", "c")
				old := log.row(b, 1, `2`, `2`)
				rows := Rows{Session: "s", Incarnation: "s.1", Rows: map[string]Row{"n": old}}
				p.Add(x.fault)
				block, fresh, err := r.RestoreFrom(t.Context(), "", rows, log, 2)
				if err != nil {
					t.Fatal(err)
				}
				if u := block.Unavailable["n"]; u.Code != x.code || x.fault.Fired() == 0 {
					t.Errorf("n is unavailable by %+v after %d faults, want %s", u, x.fault.Fired(), x.code)
				}
				if got := string(block.Values["test/marks"]); got != `{"marks":["c"]}` || fresh.Rows["test/marks"].Seq != 2 {
					t.Errorf("marks = %s with row %+v", got, fresh.Rows["test/marks"])
				}
				row, has := fresh.Rows["n"]
				if has != x.kept || has && !cmp.Equal(row, old) {
					t.Errorf("row of n = %+v (%v), want kept: %v", row, has, x.kept)
				}
			})
		})
	}
}

func TestRestoreFromReadsOnlyWhatItNeeds(t *testing.T) {
	r, m, c := marksAndCount(t)
	_ = c
	var names []string
	for i := range 200 {
		name := ""
		if i%20 == 0 {
			name = fmt.Sprint(i)
		}
		names = append(names, name)
	}
	log := markLog(names...)
	rows := log.rows(log.row(m, 99, `{"marks":["80"]}`, ``))
	block, fresh, err := r.RestoreFrom(t.Context(), "", rows, log, 199, "test/marks")
	if err != nil || string(block.Values["test/marks"]) != `{"marks":["180"]}` || len(fresh.Rows) != 1 {
		t.Fatalf("block = %s, rows %v (%v)", block.AppendJSON(nil), fresh.Rows, err)
	}
	// Five marks are behind the row; the row's own event and the last one are turn/start.
	if want := map[string]int{"test/mark": 5, "turn/start": 2}; !maps.Equal(log.given, want) {
		t.Errorf("read %v, want %v", log.given, want)
	}
}

func TestRestoreEndsWithItsContext(t *testing.T) {
	r, _, _ := marksAndCount(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := r.Restore(ctx, "", Rows{}, markLog("a").tail(0)); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	if _, _, err := r.RestoreFrom(ctx, "", Rows{}, markLog("a"), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
}

func TestRestoreWithoutUnits(t *testing.T) {
	r := New(Options{Epoch: "x.1"})
	t.Cleanup(r.Close)
	block, rows, err := r.Restore(t.Context(), "", Rows{}, markLog("a", "b").tail(0))
	if err != nil || block.AsOfSeq != 1 || len(block.Values) != 0 || len(rows.Rows) != 0 || block.Epoch != "x.1" {
		t.Errorf("block = %s, rows = %v (%v)", block.AppendJSON(nil), rows.Rows, err)
	}
}

// zoo is a registry with units of every kind: in-process and in a plugin, of some types, of every type, of none, host-only.
func zoo(t testing.TB, o Options) (*Registry, *fakeplugin.Plugin, []unit.Definition) {
	t.Helper()
	r := New(o)
	here := []unit.Definition{
		fakeplugin.Chain("here/chain", "a", "b"), fakeplugin.Counter("here/all"),
		fakeplugin.Constant("here/constant", `{"x":"<>"}`), fakeplugin.HostOnly(fakeplugin.Counter("here/hidden", "a")),
	}
	there := []unit.Definition{
		fakeplugin.Chain("there/chain", "a", "c"), fakeplugin.Last("there/last", "b"), fakeplugin.HostOnly(fakeplugin.Chain("there/hidden")),
		fakeplugin.Constant("there/constant", `7`),
	}
	p := fakeplugin.New(there...)
	register(t, r, "here", here...)
	register(t, r, "there", p.Definitions()...)
	return r, p, append(here, there...)
}

func drawLog(t *rapid.T, label string) *sampleLog {
	types := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "noise"}), 0, 30).Draw(t, label)
	log := newSampleLog("s", events(types...)...)
	log.page = rapid.IntRange(1, 7).Draw(t, "page")
	return log
}

// Whatever rows a split leaves, and whichever of them are lost or spoiled: restoring in two parts, in one, from a tail and from
// the log gives the same block and the same rows, and the values of the model.
func TestRestoreAtAnySplitIsTheWholeFold(t *testing.T) {
	r, p, defs := zoo(t, Options{BatchEvents: 3})
	t.Cleanup(p.Close)
	t.Cleanup(r.Close)
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t, "types")
		whole, wholeRows, err := r.Restore(t.Context(), "", Rows{}, log.tail(0))
		if err != nil {
			t.Fatal(err)
		}
		for _, def := range defs {
			view, state := folded(t, def, log.events, log.head())
			if def.ViewSchema != nil && string(whole.Values[def.Key]) != view || string(wholeRows.Rows[def.Key].Val) != state {
				t.Fatalf("%s = %s with row %s, the model has %s and %s", def.Key, whole.Values[def.Key], wholeRows.Rows[def.Key].Val, view, state)
			}
		}
		// Rows as several cuts of the past left them.
		rows := Rows{Session: log.id, Incarnation: log.incarnation, Rows: map[string]Row{}}
		for _, def := range defs {
			end := rapid.Int64Range(-2, log.head()).Draw(t, "row of "+def.Key)
			if end < -1 {
				continue
			}
			part := *log.clone()
			part.events = part.events[:end+1]
			_, some, err := r.RestoreFrom(t.Context(), "", Rows{}, &part, end, def.Key)
			if err != nil {
				t.Fatal(err)
			}
			row := some.Rows[def.Key]
			switch rapid.IntRange(0, 12).Draw(t, "spoil") {
			case 0:
				row.Ver++
			case 1:
				row.Anchor += "x"
			case 2:
				row.Val = json.RawMessage(`{`)
			}
			rows.Rows[def.Key] = row
		}
		check := func(how string, block Block, fresh Rows, err error) {
			if err != nil {
				t.Fatalf("%s: %v", how, err)
			}
			if a, b := string(block.AppendJSON(nil)), string(whole.AppendJSON(nil)); a != b {
				t.Fatalf("%s gave %s\nthe whole fold gave %s", how, a, b)
			}
			if d := cmp.Diff(wholeRows, fresh); d != "" {
				t.Fatalf("%s refreshed other rows:\n%s", how, d)
			}
		}
		block, fresh, err := r.RestoreFrom(t.Context(), "", rows, log, log.head())
		check("RestoreFrom", block, fresh, err)

		floor, ok := r.RestoreFloor("", rows)
		if !ok {
			t.Fatal("there is no floor although there are units")
		}
		block, fresh, err = r.Restore(t.Context(), "", rows, log.tail(floor))
		var again *RereadError
		if errors.As(err, &again) {
			block, fresh, err = r.Restore(t.Context(), "", rows, log.tail(0))
		}
		check("Restore from the floor", block, fresh, err)

		block, fresh, err = r.Restore(t.Context(), "", wholeRows, log.tail(log.head()+1))
		check("Restore of fresh rows and no tail", block, fresh, err)
	})
	if n := p.Counts(); n.Batches == 0 || n.Applied == 0 {
		t.Errorf("the plugin had no part in this: %+v", n)
	}
}

func (l *sampleLog) clone() *sampleLog {
	c := newSampleLog(l.id, slices.Clone(l.events)...)
	c.incarnation, c.page = l.incarnation, l.page
	return c
}
