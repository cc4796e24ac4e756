package foldwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// sent is what the other side gets of a message.
func sent[M proto.Message](t interface{ Fatal(...any) }, m M) M {
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > pluginproto.MaxMessageBytes {
		t.Fatal("a message of", len(raw), "bytes")
	}
	out := m.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out.(M)
}

func drawSeq(from int64) *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(from, 20), rapid.Just(int64(event.MaxInteger)-1))
}

var drawJSON = rapid.SampledFrom([]json.RawMessage{
	json.RawMessage("null"), json.RawMessage(`"\ud800"`), json.RawMessage(`{"a":[1.0,1e-400]}`), json.RawMessage(`"<&>"`),
})

// asBytes compares JSON as a whole: cmp takes seconds for what it looks at byte by byte.
var asBytes = cmp.Comparer(func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })

var drawIDs = rapid.Custom(func(t *rapid.T) []unit.CellID {
	ids := rapid.SliceOfN(rapid.Uint64(), 0, 3).Draw(t, "ids")
	var out []unit.CellID
	for _, id := range ids {
		out = append(out, unit.CellID(id))
	}
	return out
})

var drawBatch = rapid.Custom(func(t *rapid.T) unit.Batch {
	b := unit.Batch{
		Drop: drawIDs.Draw(t, "drop"), Cells: drawIDs.Draw(t, "cells"), States: drawIDs.Draw(t, "states"),
		Mode: rapid.SampledFrom([]unit.Mode{unit.EveryChange, unit.LastOnly}).Draw(t, "mode"),
	}
	for _, id := range drawIDs.Draw(t, "open") {
		o := unit.Open{Cell: id, Key: "todos", Seq: -1}
		if rapid.Bool().Draw(t, "from a row") {
			o.State, o.Seq = drawJSON.Draw(t, "state"), drawSeq(-1).Draw(t, "open seq")
		}
		b.Open = append(b.Open, o)
	}
	b.Through = -1
	for range rapid.IntRange(0, 4).Draw(t, "events") {
		b.Through += rapid.Int64Range(1, 3).Draw(t, "gap")
		e := event.Event{
			Type: rapid.SampledFrom([]string{"todo/write", "", "ü", "\xed\xa0\x80half"}).Draw(t, "type"),
			Seq:  b.Through, Time: rapid.Int64Range(-event.MaxInteger, event.MaxInteger).Draw(t, "time"),
			Data: drawJSON.Draw(t, "data"), Ignorable: rapid.Bool().Draw(t, "ignorable"),
			Op:      rapid.SampledFrom([]event.Op{{}, event.Append(), event.Replace(0, 3), event.Replace(event.MaxInteger, 0)}).Draw(t, "op"),
			Sources: rapid.SampledFrom([][]int64{nil, {}, {0}, {5, event.MaxInteger}}).Draw(t, "sources"),
		}
		b.Events = append(b.Events, e)
	}
	b.Through += rapid.Int64Range(0, 3).Draw(t, "through")
	return b
})

func TestABatchCrossesTheWireUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawBatch.Draw(t, "batch")
		m := sent(t, Batch(&b, 7, 3))
		if m.Batch != 7 || m.Generation != 3 {
			t.Fatalf("batch %d of generation %d", m.Batch, m.Generation)
		}
		got, err := ReadBatch(m)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestABatchThatNoHostSendsIsRefused(t *testing.T) {
	data := []byte("null")
	for name, m := range map[string]*pluginproto.FoldBatch{
		"a mode that is none":            {Mode: 2},
		"through before the first":       {Through: -2},
		"through beyond 2^53":            {Through: event.MaxInteger + 1},
		"through before the last event":  {Through: 3, Events: []*pluginproto.Event{{Seq: 4, Data: data}}},
		"a null event":                   {Events: []*pluginproto.Event{nil}},
		"a seq below 0":                  {Events: []*pluginproto.Event{{Seq: -1, Data: data}}},
		"a seq twice":                    {Through: 4, Events: []*pluginproto.Event{{Seq: 4, Data: data}, {Seq: 4, Data: data}}},
		"a time beyond 2^53":             {Events: []*pluginproto.Event{{Time: -event.MaxInteger - 1, Data: data}}},
		"no data":                        {Events: []*pluginproto.Event{{}}},
		"a surface operation of no kind": {Events: []*pluginproto.Event{{Data: data, SurfaceOp: &pluginproto.SurfaceOp{}}}},
		"a surface operation unknown":    {Events: []*pluginproto.Event{{Data: data, SurfaceOp: &pluginproto.SurfaceOp{Kind: 9}}}},
		"an append with a range":         {Events: []*pluginproto.Event{{Data: data, SurfaceOp: &pluginproto.SurfaceOp{Kind: 1, End: 2}}}},
		"a replacement of what is no seq": {Events: []*pluginproto.Event{{Data: data,
			SurfaceOp: &pluginproto.SurfaceOp{Kind: 2, Start: -1}}}},
		"a source that is no seq":          {Events: []*pluginproto.Event{{Data: data, Sources: &pluginproto.Sources{Seqs: []int64{-1}}}}},
		"a type in two spellings":          {Events: []*pluginproto.Event{{Data: data, Type: "a", TypeWtf8: []byte("b")}}},
		"a type that is not text":          {Events: []*pluginproto.Event{{Data: data, TypeWtf8: []byte("\xff")}}},
		"a null opening":                   {Open: []*pluginproto.OpenCell{nil}},
		"an opening from init at a seq":    {Open: []*pluginproto.OpenCell{{Seq: 3}}},
		"an opening from a state below −1": {Open: []*pluginproto.OpenCell{{Seq: -2, State: data}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadBatch(m)
			var p *ProtocolError
			if !errors.As(err, &p) {
				t.Fatalf("got %v, want a *ProtocolError", err)
			}
		})
	}
}

// answered sends a reply over the wire and puts it together again.
func answered(t interface{ Fatal(...any) }, b *unit.Batch, r *unit.Reply) (got unit.Reply, messages int) {
	a := NewAnswer(b)
	for m := range Replies(r, 7, 3) {
		messages++
		m = sent(t, m)
		if m.Batch != 7 || m.Generation != 3 {
			t.Fatal("batch", m.Batch, "generation", m.Generation)
		}
		done, err := a.Add(m)
		if err != nil {
			t.Fatal(err)
		}
		if done != m.Last {
			t.Fatal("done", done, "last", m.Last)
		}
	}
	return a.Reply(), messages
}

func TestAReplyCrossesTheWireUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := unit.Batch{Through: 40}
		var r unit.Reply
		// More cells than are looked at one by one, and with large views, so that an answer has several messages.
		cells := rapid.IntRange(1, 2*few).Draw(t, "cells")
		size := rapid.SampledFrom([]int{1, 1, 300 << 10}).Draw(t, "size")
		for id := range unit.CellID(cells) {
			switch rapid.IntRange(0, 2).Draw(t, "named in") {
			case 0:
				b.Cells = append(b.Cells, id)
			case 1:
				b.Open = append(b.Open, unit.Open{Cell: id, Seq: -1})
			default:
				b.States = append(b.States, id)
			}
			switch rapid.IntRange(0, 3).Draw(t, "outcome") {
			case 0:
				r.Values = append(r.Values, unit.Value{Cell: id, Seq: -1, View: json.RawMessage("{}")},
					unit.Value{Cell: id, Seq: 40, View: json.RawMessage(`"` + strings.Repeat("x", size) + `"`)})
			case 1:
				r.Faults = append(r.Faults, unit.Fault{Cell: id, Seq: 7, Message: "bad"})
			case 2:
				r.Unknown = append(r.Unknown, id)
			default:
				r.States = append(r.States, unit.StateAt{Cell: id, Seq: 40, State: json.RawMessage(`"` + strings.Repeat("x", size) + `"`)})
			}
		}
		got, _ := answered(t, &b, &r)
		if diff := cmp.Diff(r, got, asBytes); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestALargeAnswerIsSplitAtTheTargetSize(t *testing.T) {
	b := unit.Batch{Cells: []unit.CellID{1}, Through: 9}
	var r unit.Reply
	for seq := range int64(10) {
		r.Values = append(r.Values, unit.Value{Cell: 1, Seq: seq, View: make(json.RawMessage, pluginproto.TargetMessageBytes/3)})
	}
	got, messages := answered(t, &b, &r)
	if messages != 5 || len(got.Values) != 10 {
		t.Errorf("%d values in %d messages, want 10 in 5", len(got.Values), messages)
	}
}

func TestWhatNoMessageCarriesIsAFaultOfItsCellAlone(t *testing.T) {
	b := unit.Batch{Cells: []unit.CellID{1, 2, 3}, Through: 9}
	r := unit.Reply{
		Values: []unit.Value{
			{Cell: 1, Seq: 4, View: make(json.RawMessage, pluginproto.MaxMessageBytes)},
			{Cell: 1, Seq: 5, View: json.RawMessage("1")},
			{Cell: 2, Seq: 6, View: json.RawMessage("2")},
		},
		States: []unit.StateAt{{Cell: 3, Seq: 9, State: make(json.RawMessage, pluginproto.MaxMessageBytes)}},
		Faults: []unit.Fault{{Cell: 1, Seq: 6, Message: "later"}},
	}
	got, _ := answered(t, &b, &r)
	if len(got.Values) != 1 || got.Values[0].Cell != 2 || len(got.States) != 0 {
		t.Errorf("values %v, states %d; want the value of cell 2 alone", got.Values, len(got.States))
	}
	at := map[unit.CellID]int64{}
	for _, f := range got.Faults {
		at[f.Cell] = f.Seq
	}
	if len(got.Faults) != 2 || at[1] != 4 || at[3] != 9 {
		t.Errorf("faults %v; want cell 1 at 4 and cell 3 at 9", got.Faults)
	}
}

func TestMessagesForPeopleAreCutAndMadeText(t *testing.T) {
	b := unit.Batch{Cells: []unit.CellID{1}, Through: 9}
	r := unit.Reply{Faults: []unit.Fault{{Cell: 1, Seq: 0, Message: "\xff" + strings.Repeat("é", 1<<20)}}}
	got, _ := answered(t, &b, &r)
	if len(got.Faults[0].Message) > maxText+8 {
		t.Errorf("%d bytes of message", len(got.Faults[0].Message))
	}
}

func TestABatchThatWasNotCarriedOutIsAProtocolError(t *testing.T) {
	got, _ := answered(t, &unit.Batch{}, &unit.Reply{Err: errors.New("no such mode \xff")})
	var p *ProtocolError
	if !errors.As(got.Err, &p) {
		t.Fatalf("got %v, want a *ProtocolError", got.Err)
	}
}

func TestAnAnswerThatDoesNotAnswerTheBatchIsRefused(t *testing.T) {
	value := func(cell uint64, seq int64, view string) *pluginproto.CellValue {
		return &pluginproto.CellValue{Cell: cell, Seq: seq, View: []byte(view)}
	}
	state := &pluginproto.CellState{Cell: 1, Seq: 9, State: []byte("1")}
	fault := &pluginproto.CellFault{Cell: 1, Seq: 9}
	type M = pluginproto.FoldReply
	for name, ms := range map[string][]*M{
		"a cell that the batch does not name": {{Values: []*pluginproto.CellValue{value(2, 0, "1")}}},
		"a fault of another cell":             {{Faults: []*pluginproto.CellFault{{Cell: 2}}}},
		"an unknown cell of its own":          {{Unknown: []uint64{2}}},
		"a null value":                        {{Values: []*pluginproto.CellValue{nil}}},
		"a null fault":                        {{Faults: []*pluginproto.CellFault{nil}}},
		"a value below −1":                    {{Values: []*pluginproto.CellValue{value(1, -2, "1")}}},
		"a value beyond the batch":            {{Values: []*pluginproto.CellValue{value(1, 10, "1")}}},
		"a value without JSON":                {{Values: []*pluginproto.CellValue{value(1, 0, "")}}},
		"values out of order":                 {{Values: []*pluginproto.CellValue{value(1, 3, "1")}}, {Values: []*pluginproto.CellValue{value(1, 2, "1")}}},
		"a value twice":                       {{Values: []*pluginproto.CellValue{value(1, 3, "1"), value(1, 3, "1")}}},
		"a state twice":                       {{States: []*pluginproto.CellState{state, state}}},
		"a fault twice":                       {{Faults: []*pluginproto.CellFault{fault}}, {Faults: []*pluginproto.CellFault{fault}}},
		"an unknown cell twice":               {{Unknown: []uint64{1, 1}}},
		"a message after the last":            {{Last: true}, {Last: true}},
		"more than an answer can be": {
			{Values: []*pluginproto.CellValue{value(1, 0, string(make([]byte, MaxAnswerBytes/2)))}},
			{Values: []*pluginproto.CellValue{value(1, 1, string(make([]byte, MaxAnswerBytes/2+1)))}}},
	} {
		t.Run(name, func(t *testing.T) {
			a := NewAnswer(&unit.Batch{Cells: []unit.CellID{1}, Through: 9})
			var err error
			for i, m := range ms {
				if err != nil {
					t.Fatalf("message %d was refused already: %v", i-1, err)
				}
				_, err = a.Add(m)
			}
			var p *ProtocolError
			if !errors.As(err, &p) {
				t.Fatalf("got %v, want a *ProtocolError", err)
			}
		})
	}
}

func TestAnAnswerThatBreaksOffIsNoAnswer(t *testing.T) {
	a := NewAnswer(&unit.Batch{Cells: []unit.CellID{1}})
	if _, err := a.Add(&pluginproto.FoldReply{Values: []*pluginproto.CellValue{{Cell: 1, Seq: -1, View: []byte("1")}}}); err != nil {
		t.Fatal(err)
	}
	var gone *unit.GoneError
	if r := a.Reply(); !errors.As(r.Err, &gone) {
		t.Errorf("got %+v, want a *unit.GoneError", r)
	}
}

func TestAUnitCrossesTheWireUnchanged(t *testing.T) {
	for name, events := range map[string][]string{"every type": nil, "no type": {}, "some": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			want := unit.Definition{Key: "todos", StateVersion: 3, StateSchema: json.RawMessage(`{}`), Events: events, ConfigBound: true}
			got, err := ReadUnit(sent(t, Unit(&want)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if (got.Events == nil) != (events == nil) {
				t.Errorf("events %#v became %#v", events, got.Events)
			}
		})
	}
	for name, m := range map[string]*pluginproto.Unit{"null": nil, "version below 0": {StateVersion: -1}, "version beyond 2^53": {StateVersion: 1 << 60}} {
		var p *ProtocolError
		if _, err := ReadUnit(m); !errors.As(err, &p) {
			t.Errorf("%s: got %v, want a *ProtocolError", name, err)
		}
	}
}

// carryOut runs batches through a Local of a unit that lists what it saw, and fails at events of type "poison".
func carryOut(t *rapid.T, batches ...unit.Batch) []unit.Reply {
	local, err := unit.NewLocal(unit.Definition{
		Key: "list", StateSchema: json.RawMessage(`true`), ViewSchema: json.RawMessage(`true`), Inline: lister{},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	replies := make(chan unit.Reply, len(batches))
	for _, b := range batches {
		local.Submit(t.Context(), b, func(r unit.Reply) { replies <- r })
	}
	var out []unit.Reply
	for range batches {
		out = append(out, <-replies)
	}
	return out
}

type lister struct{}

func (lister) Init() (unit.State, error) { return []string{}, nil }
func (lister) Apply(s unit.State, ev *event.Event) (unit.State, bool, error) {
	if ev.Type == "poison" {
		return nil, false, errors.New("poisoned")
	}
	return append(slices.Clip(s.([]string)), fmt.Sprint(ev.Seq)), ev.Type != "quiet", nil
}
func (lister) View(s unit.State) (json.RawMessage, error)   { return json.Marshal(s) }
func (lister) Encode(s unit.State) (json.RawMessage, error) { return json.Marshal(s) }
func (lister) Decode(raw json.RawMessage) (unit.State, error) {
	var s []string
	return s, json.Unmarshal(raw, &s)
}

func TestABatchInPartsComesToTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := unit.Batch{Mode: rapid.SampledFrom([]unit.Mode{unit.EveryChange, unit.LastOnly}).Draw(t, "mode"), Through: -1}
		for id := range unit.CellID(rapid.IntRange(1, 6).Draw(t, "openings")) {
			o := unit.Open{Cell: id, Key: rapid.SampledFrom([]string{"list", "nobody"}).Draw(t, "key"), Seq: -1}
			if rapid.Bool().Draw(t, "large") {
				pad := strings.Repeat("x", rapid.IntRange(1, 500).Draw(t, "state size"))
				o.State, o.Seq = json.RawMessage(`["`+pad+`"]`), rapid.Int64Range(-1, 4).Draw(t, "at")
			}
			b.Open, b.Cells = append(b.Open, o), append(b.Cells, id)
		}
		b.Cells = append(b.Cells, 99) // unknown
		for range rapid.IntRange(0, 12).Draw(t, "events") {
			b.Through++
			b.Events = append(b.Events, event.Event{
				Type: rapid.SampledFrom([]string{"a", "a", "a", "quiet", "poison"}).Draw(t, "type"), Seq: b.Through,
				Data: json.RawMessage(`"` + strings.Repeat("x", rapid.IntRange(0, 400).Draw(t, "data size")) + `"`),
			})
		}
		b.Through += 2
		b.States = b.Cells

		// Limits a thousandth of the real ones.
		parts := slices.Collect(split(&b, 1000, 300))
		want := carryOut(t, b)[0]
		got := MergeParts(b.Mode, carryOut(t, parts...))
		order := func(r unit.Reply) unit.Reply {
			slices.SortStableFunc(r.Values, func(x, y unit.Value) int { return int(x.Cell) - int(y.Cell) })
			slices.SortStableFunc(r.Faults, func(x, y unit.Fault) int { return int(x.Cell) - int(y.Cell) })
			return r
		}
		if diff := cmp.Diff(order(want), order(got)); diff != "" {
			t.Fatalf("in %d parts: %s", len(parts), diff[:min(len(diff), 2000)])
		}
	})
}

func TestEveryPartFitsAMessage(t *testing.T) {
	b := unit.Batch{Through: 5}
	for id := range unit.CellID(5) {
		b.Open = append(b.Open, unit.Open{Cell: id, Seq: -1, State: make(json.RawMessage, 5<<20)})
		b.Events = append(b.Events, event.Event{Seq: int64(id), Data: make(json.RawMessage, event.DefaultMaxBytes)})
	}
	parts := 0
	for part := range Split(&b) {
		parts++
		if size := proto.Size(Batch(&part, 1<<60, 1<<60)); size > pluginproto.MaxMessageBytes {
			t.Errorf("part %d has %d bytes", parts, size)
		}
	}
	if parts != 10 {
		t.Errorf("%d parts, want one for each opening and each event", parts)
	}
}

func FuzzReadBatch(f *testing.F) {
	b := unit.Batch{Open: []unit.Open{{Cell: 1, Key: "k", Seq: -1}}, Cells: []unit.CellID{1}, Through: 2,
		Events: []event.Event{{Type: "t", Seq: 2, Data: json.RawMessage("null"), Op: event.Replace(0, 1), Sources: []int64{}}}}
	raw, err := proto.Marshal(Batch(&b, 1, 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		var m pluginproto.FoldBatch
		if proto.Unmarshal(raw, &m) != nil {
			return
		}
		b, err := ReadBatch(&m)
		if err != nil {
			return
		}
		again, err := ReadBatch(sent(t, Batch(&b, m.Batch, m.Generation)))
		if err != nil {
			t.Fatal("read once and not twice:", err)
		}
		if diff := cmp.Diff(b, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	b := unit.Batch{Cells: []unit.CellID{0, 1}, Open: []unit.Open{{Cell: 1, Seq: -1}}, Through: 9}
	r := unit.Reply{Values: []unit.Value{{Cell: 1, Seq: 3, View: json.RawMessage("1")}}, Unknown: []unit.CellID{0},
		Faults: []unit.Fault{{Cell: 1, Seq: 4, Message: "m"}}, States: []unit.StateAt{{Cell: 1, Seq: 3, State: json.RawMessage("1")}}}
	for m := range Replies(&r, 1, 1) {
		raw, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, raw)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		a := NewAnswer(&b)
		for _, raw := range [][]byte{first, second} {
			var m pluginproto.FoldReply
			if proto.Unmarshal(raw, &m) != nil {
				return
			}
			if done, err := a.Add(&m); done || err != nil {
				break
			}
		}
		for _, v := range a.Reply().Values {
			if v.Cell > 1 || v.Seq < -1 || v.Seq > 9 || len(v.View) == 0 {
				t.Fatalf("let through: %+v", v)
			}
		}
	})
}

func BenchmarkBatchOf100Events(b *testing.B) {
	batch := unit.Batch{Cells: []unit.CellID{1}, Through: 99}
	for seq := range int64(100) {
		batch.Events = append(batch.Events, event.Event{Type: "assistant/chunk", Seq: seq, Data: make(json.RawMessage, 200)})
	}
	b.Run("to the wire", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := proto.Marshal(Batch(&batch, 1, 1)); err != nil {
				b.Fatal(err)
			}
		}
	})
	raw, err := proto.Marshal(Batch(&batch, 1, 1))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("from the wire", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var m pluginproto.FoldBatch
			if err := proto.Unmarshal(raw, &m); err != nil {
				b.Fatal(err)
			}
			if _, err := ReadBatch(&m); err != nil {
				b.Fatal(err)
			}
		}
	})
}
