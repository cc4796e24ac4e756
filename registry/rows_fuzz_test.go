package registry

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
	"github.com/google/go-cmp/cmp"
)

func TestDecodeRowTakesRowsAndNothingElse(t *testing.T) {
	good := Row{Ver: 3, Def: "d", Seq: 7, Val: json.RawMessage(`{"a":"<&>\u003c"}`), View: json.RawMessage(`[1.0]`), Anchor: "x"}
	for name, row := range map[string]Row{
		"whole":            good,
		"of a config":      {Seq: 1, Val: json.RawMessage(`1`), View: json.RawMessage(`2`), Config: "c", Anchor: "x"},
		"without a view":   {Ver: 0, Def: "", Seq: -1, Val: json.RawMessage(`null`)},
		"odd names":        {Def: "<\">\u2028", Val: json.RawMessage(`1`), Anchor: "é"},
		"the largest seq":  {Seq: event.MaxInteger, Val: json.RawMessage(`1`), Anchor: "x"},
		"the smallest seq": {Seq: -event.MaxInteger, Val: json.RawMessage(`1`), Anchor: "x"},
	} {
		got, err := DecodeRow(row.AppendJSON(nil))
		if err != nil || !cmp.Equal(got, row) {
			t.Errorf("%s: %s came back as %+v (%v)", name, row.AppendJSON(nil), got, err)
		}
	}
	text := string(good.AppendJSON(nil))
	for name, raw := range map[string]string{
		"nothing":        "",
		"no object":      `[1]`,
		"cut short":      text[:len(text)-1],
		"text behind":    text + " 1",
		"no val":         `{"ver":1,"def":"d","seq":0,"anchor":"x"}`,
		"no anchor":      `{"ver":1,"def":"d","seq":0,"val":1}`,
		"an unknown key": strings.Replace(text, `"def"`, `"dev"`, 1),
		"another case":   strings.Replace(text, `"seq"`, `"Seq"`, 1),
		"a key twice":    strings.Replace(text, `{"ver"`, `{"seq":1,"ver"`, 1),
		"ver a string":   strings.Replace(text, `"ver":3`, `"ver":"3"`, 1),
		"seq a fraction": strings.Replace(text, `"seq":7`, `"seq":7.5`, 1),
		"seq too large":  strings.Replace(text, `"seq":7`, `"seq":9223372036854775808`, 1),
		"def a number":   strings.Replace(text, `"def":"d"`, `"def":1`, 1),
		"config null":    strings.Replace(text, `"seq"`, `"config":null,"seq"`, 1),
		"anchor null":    strings.Replace(text, `"anchor":"x"`, `"anchor":null`, 1),
	} {
		var wrong *RowError
		if row, err := DecodeRow([]byte(raw)); !errors.As(err, &wrong) {
			t.Errorf("%s: %s was taken as %+v (%v)", name, raw, row, err)
		}
	}
	if _, err := json.Marshal(good); err == nil {
		t.Error("encoding/json took a row; it would rewrite its state")
	}
}

// Whatever was stored: nothing panics, and a value that is not the fold's comes only of a row that is right on every point that can be
// checked.
func FuzzRow(f *testing.F) {
	r := New(Options{})
	f.Cleanup(r.Close)
	def := fakeplugin.Counter("n", "a")
	register(f, r, "p", def)
	b := r.setBindings("")[0]
	log := newSampleLog("s", events("a", "x", "a", "a", "x", "a")...)

	good := log.row(b, 3, `3`, `3`)
	f.Add(string(good.AppendJSON(nil)))
	for _, spoil := range []func(*Row){
		func(r *Row) { r.Seq = 4 }, func(r *Row) { r.Seq = -1 }, func(r *Row) { r.Seq = 1 << 52 }, func(r *Row) { r.Ver = 2 },
		func(r *Row) { r.Def = "" }, func(r *Row) { r.Val = json.RawMessage(`"3"`) }, func(r *Row) { r.View = nil },
		func(r *Row) { r.Anchor = "" }, func(r *Row) { r.Val = json.RawMessage(`9`) }, func(r *Row) { r.View = json.RawMessage(`-1`) },
	} {
		row := good
		spoil(&row)
		f.Add(string(row.AppendJSON(nil)))
	}
	f.Add(`{"ver":1,"def":"","seq":1e0,"val":[{}],"anchor":"\ud800"}`)

	f.Fuzz(func(t *testing.T, raw string) {
		row, err := DecodeRow([]byte(raw))
		if err != nil {
			var wrong *RowError
			if !errors.As(err, &wrong) {
				t.Fatalf("error %T of %q", err, raw)
			}
			return
		}
		if back, err := DecodeRow(row.AppendJSON(nil)); err != nil || !cmp.Equal(back, row) {
			t.Fatalf("%+v came back as %+v (%v)", row, back, err)
		}
		anchored := row.Seq == -1 && row.Anchor == "" || row.Seq >= 0 && row.Seq < 6 && row.Anchor == event.Fingerprint(&log.events[row.Seq])
		sound := row.Ver == b.StateVersion && row.Def == b.Digest && anchored && b.CheckState(row.Val, 0) == nil

		rows := Rows{Session: "s", Incarnation: "s.1", Rows: map[string]Row{"n": row}}
		if floor, ok := r.RestoreFloor("", rows); !ok || floor < 0 || row.Ver != b.StateVersion && floor != 0 {
			t.Fatalf("floor %d of %s", floor, raw)
		}
		if view, ok := r.ViewRows("", rows).Values["n"]; ok && b.CheckView(view, 0) != nil {
			t.Fatalf("a view that is none was served from %s", raw)
		}
		check := func(how string, block Block, err error) {
			if err != nil {
				t.Fatalf("%s over %s: %v", how, raw, err)
			}
			if got := string(block.Values["n"]); got != "4" && !sound {
				t.Fatalf("%s served %q over %s", how, got, raw)
			}
		}
		block, _, err := r.Restore(t.Context(), "", rows, log.tail(0))
		check("Restore", block, err)
		block, _, err = r.RestoreFrom(t.Context(), "", rows, log, 5)
		check("RestoreFrom", block, err)
		s := r.Attach(log, "", 5, rows)
		defer s.Detach(false)
		block, err = s.SnapshotAt(t.Context(), 5)
		check("SnapshotAt", block, err)
		block, err = s.Snapshot(t.Context())
		check("Snapshot", block, err)
		block, _, err = r.Restore(t.Context(), "", rows, log.tail(2))
		var again *RereadError
		if !errors.As(err, &again) {
			// A row that stands on the event before the tail cannot be proven; it is the caller who chose to begin there.
			if row.Seq != 1 {
				check("Restore of a tail", block, err)
			}
		}
	})
}
