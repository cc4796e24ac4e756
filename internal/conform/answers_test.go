package conform_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/internal/conform"
	"github.com/foldhost/foldhost/unit"
)

// bent is an instance whose batches or answers are bent on their way.
type bent struct {
	unit.Instance
	batch  func(b *unit.Batch)
	answer func(b *unit.Batch, r *unit.Reply)
}

func (i bent) Submit(ctx context.Context, b unit.Batch, done func(unit.Reply)) {
	sent := b
	if i.batch != nil {
		i.batch(&sent)
	}
	i.Instance.Submit(ctx, sent, func(r unit.Reply) {
		if i.answer != nil {
			i.answer(&b, &r)
		}
		done(r)
	})
}

// TestEachKindOfBatchIsSent: given a plugin that answers one kind of batch wrongly and all others well, its units break the law that says so, and
// no other.
func TestEachKindOfBatchIsSent(t *testing.T) {
	onlyOpens := func(b *unit.Batch) bool { return len(b.Open) > 0 && len(b.Events)+len(b.States) == 0 }
	for name, c := range map[string]struct {
		bent
		law string
	}{
		"a good one": {},
		"no value for openings alone": {bent{answer: func(b *unit.Batch, r *unit.Reply) {
			if onlyOpens(b) {
				r.Values = nil
			}
		}}, conform.AnswersBatches},
		"no value for openings from a state alone": {bent{answer: func(b *unit.Batch, r *unit.Reply) {
			if onlyOpens(b) && b.Open[0].State != nil {
				r.Values = nil
			}
		}}, conform.AnswersBatches},
		"openings alone are forgotten": {bent{batch: func(b *unit.Batch) {
			if onlyOpens(b) {
				b.Drop, b.Open = idsOf(b.Open), nil
			}
		}}, conform.AnswersBatches},
		"one opening of several is seen": {bent{answer: func(b *unit.Batch, r *unit.Reply) {
			if len(b.Open) > 1 {
				r.Values = slices.DeleteFunc(r.Values, func(v unit.Value) bool { return v.Cell == b.Open[1].Cell })
			}
		}}, conform.AnswersBatches},
		"no state where there are no events": {bent{answer: func(b *unit.Batch, r *unit.Reply) {
			if len(b.Open)+len(b.Events) == 0 {
				r.States = nil
			}
		}}, conform.AnswersBatches},
		"a state of an earlier seq": {bent{answer: func(_ *unit.Batch, r *unit.Reply) {
			for i := range r.States {
				r.States[i].Seq = -1
			}
		}}, conform.AnswersBatches},
		"drops are not heard": {bent{batch: func(b *unit.Batch) { b.Drop = nil }}, conform.AnswersBatches},
		"a value of each event where the last is asked for": {bent{answer: func(b *unit.Batch, r *unit.Reply) {
			if b.Mode == unit.LastOnly && len(r.Values) > 0 && r.Values[0].Seq > 1 {
				early := r.Values[0]
				early.Seq--
				r.Values = slices.Insert(r.Values, 0, early)
			}
		}}, conform.AnswersBatches},
		"values at seqs of other events": {bent{answer: func(b *unit.Batch, r *unit.Reply) {
			for i := range r.Values {
				if b.Mode == unit.EveryChange && r.Values[i].Seq > 0 {
					r.Values[i].Seq--
				}
			}
		}}, conform.AnswersBatches},
		"a change that is left out of every change": {bent{answer: func(b *unit.Batch, r *unit.Reply) {
			if b.Mode == unit.EveryChange {
				r.Values = slices.DeleteFunc(r.Values, func(v unit.Value) bool { return v.Seq == b.Through-4 })
			}
		}}, conform.LastIsLast},
		"another value beside others": {bent{answer: func(b *unit.Batch, r *unit.Reply) {
			if len(b.Cells) > 1 && len(r.Values) > 0 {
				r.Values[len(r.Values)-1].View = json.RawMessage("7777")
			}
		}}, conform.BesideOthers},
	} {
		t.Run(name, func(t *testing.T) {
			var defs []unit.Definition
			var units []*unit.Compiled
			for _, key := range []string{"a", "b", "c"} {
				integer := json.RawMessage(`{"type":"integer"}`)
				def := unit.Definition{Key: key, StateSchema: integer, ViewSchema: integer, Events: []string{"step", "step " + key}, Inline: counter{views: new(int)}}
				u, err := unit.Compile(def)
				if err != nil {
					t.Fatal(err)
				}
				defs, units = append(defs, def), append(units, u)
			}
			in, err := unit.NewLocal(defs...)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			var events []event.Event
			for i := range 200 {
				events = append(events, event.Event{Type: []string{"step", "other", "step a", "step b"}[i%4], Seq: int64(i), Data: json.RawMessage("{}")})
			}
			c.Instance = in
			for over, events := range map[string][]event.Event{"many events": events, "one event": events[:1], "no event": nil} {
				broken, err := conform.Check(t.Context(), c.bent, units, events)
				if err != nil {
					t.Fatalf("%s: %v", over, err)
				}
				for _, v := range broken {
					if v.Law != c.law {
						t.Errorf("%s: it breaks %v", over, v)
					}
				}
				if c.law != "" && over == "many events" && len(broken) == 0 {
					t.Errorf("%s: it breaks nothing", over)
				}
			}
		})
	}
}

func idsOf(open []unit.Open) (ids []unit.CellID) {
	for _, o := range open {
		ids = append(ids, o.Cell)
	}
	return ids
}

// TestEachLawIsToldOnce: one mistake that shows everywhere is one message a unit.
func TestEachLawIsToldOnce(t *testing.T) {
	integer := json.RawMessage(`{"type":"integer"}`)
	def := unit.Definition{Key: "n", StateSchema: integer, ViewSchema: integer, Inline: counter{forgets: true, views: new(int)}}
	in, err := unit.NewLocal(def)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	u, _ := unit.Compile(def)
	var events []event.Event
	for i := range 40 {
		events = append(events, event.Event{Type: "step", Seq: int64(i), Data: json.RawMessage("{}")})
	}
	broken, err := conform.Check(t.Context(), in, []*unit.Compiled{u}, events)
	if err != nil {
		t.Fatal(err)
	}
	laws := map[string]int{}
	for _, v := range broken {
		if laws[v.Law]++; laws[v.Law] > 1 {
			t.Errorf("told again: %v", v)
		}
	}
	if laws[conform.SplitsAnywhere] != 1 {
		t.Errorf("it breaks %v", broken)
	}
}
