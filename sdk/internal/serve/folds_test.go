package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// sorted is a reply with its parts in the order of cells and then as they came: cells of one batch may be carried out side by side.
func sorted(r unit.Reply) unit.Reply {
	slices.SortStableFunc(r.Values, func(a, b unit.Value) int { return cmp.Compare(a.Cell, b.Cell) })
	slices.SortStableFunc(r.States, func(a, b unit.StateAt) int { return cmp.Compare(a.Cell, b.Cell) })
	slices.SortStableFunc(r.Faults, func(a, b unit.Fault) int { return cmp.Compare(a.Cell, b.Cell) })
	slices.Sort(r.Unknown)
	return r
}

// Whatever the batches and however they are spread over goroutines, the replies are those of one goroutine that does one after the other.
func TestFoldsGiveWhatOneGoroutineGives(t *testing.T) {
	defs := []unit.Definition{summing("all", summer{}, "a", "b"), summing("some", summer{}, "a")}
	compiled := compile(t, defs...)
	find := func(key string) *unit.Compiled {
		for _, c := range compiled {
			if c.Key == key {
				return c
			}
		}
		return nil
	}
	rapid.Check(t, func(rt *rapid.T) {
		ids := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) unit.CellID { return unit.CellID(rapid.IntRange(1, 8).Draw(rt, "cell")) }), 0, 4)
		seq := int64(0)
		batch := rapid.Custom(func(rt *rapid.T) unit.Batch {
			b := unit.Batch{
				Drop: ids.Draw(rt, "drop"), Cells: ids.Draw(rt, "cells"), States: ids.Draw(rt, "states"),
				Mode: rapid.SampledFrom([]unit.Mode{unit.EveryChange, unit.LastOnly}).Draw(rt, "mode"),
			}
			// A host names a cell once in each list.
			for _, list := range []*[]unit.CellID{&b.Drop, &b.Cells, &b.States} {
				slices.Sort(*list)
				*list = slices.Compact(*list)
			}
			opens := ids.Draw(rt, "open")
			slices.Sort(opens)
			for _, id := range slices.Compact(opens) {
				o := unit.Open{Cell: id, Key: rapid.SampledFrom([]string{"all", "some", "none"}).Draw(rt, "key"), Seq: -1}
				if rapid.Bool().Draw(rt, "from a state") {
					o.State, o.Seq = json.RawMessage(rapid.SampledFrom([]string{"7", `"x"`}).Draw(rt, "state")), rapid.Int64Range(-1, 5).Draw(rt, "seq")
				}
				b.Open = append(b.Open, o)
			}
			for range rapid.IntRange(0, 3).Draw(rt, "events") {
				b.Events = append(b.Events, add(seq, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "type"), rapid.SampledFrom([]string{"0", "1", "5", `"bad"`}).Draw(rt, "data")))
				seq++
			}
			b.Through = max(seq-1, -1)
			return b
		})
		batches := rapid.SliceOfN(batch, 1, 12).Draw(rt, "batches")
		refused := rapid.SliceOfN(rapid.SampledFrom([]bool{false, false, false, true}), len(batches), len(batches)).Draw(rt, "refused")

		local, err := unit.NewLocal(defs...)
		if err != nil {
			rt.Fatal(err)
		}
		defer local.Close()
		var mu sync.Mutex
		got := map[uint64]unit.Reply{}
		f := newFolds(context.Background(), find, func(j job, r unit.Reply) {
			mu.Lock()
			defer mu.Unlock()
			if _, twice := got[j.number]; twice {
				rt.Errorf("batch %d was answered twice", j.number)
			}
			got[j.number] = r
		})
		want := map[uint64]unit.Reply{}
		for i, b := range batches {
			n := uint64(i)
			if refused[i] {
				f.submit(job{number: n}, b, errDraining)
				b = dropsAll(b)
			} else {
				f.submit(job{number: n}, b, nil)
			}
			done := make(chan unit.Reply, 1)
			local.Submit(context.Background(), b, func(r unit.Reply) { done <- r })
			want[n] = <-done
			if refused[i] {
				want[n] = unit.Reply{Err: errDraining}
			}
		}
		f.wait()
		for n, w := range want {
			if g := sorted(got[n]); !reflect.DeepEqual(g, sorted(w)) {
				rt.Fatalf("batch %d, %+v:\n got %+v\nwant %+v", n, batches[n], g, w)
			}
		}
	})
}

// dropsAll is what becomes of a batch that is refused: where its cells stand is not what the host thinks.
func dropsAll(b unit.Batch) unit.Batch {
	drop := slices.Concat(b.Drop, b.Cells, b.States)
	for _, o := range b.Open {
		drop = append(drop, o.Cell)
	}
	return unit.Batch{Drop: drop}
}

func TestASlowFoldDelaysItsOwnSession(t *testing.T) {
	s := summer{entered: make(chan string), leave: make(chan struct{})}
	compiled := compile(t, summing("sum", s))
	answered := make(chan uint64, 8)
	f := newFolds(t.Context(), func(string) *unit.Compiled { return compiled[0] }, func(j job, _ unit.Reply) { answered <- j.number })
	session := func(id unit.CellID, data ...string) unit.Batch {
		b := unit.Batch{Open: []unit.Open{{Cell: id, Key: "sum", Seq: -1}}, Cells: []unit.CellID{id}}
		for i, d := range data {
			b.Events = append(b.Events, add(int64(i), "slow", d))
		}
		b.Through = int64(len(data)) - 1
		return b
	}
	f.submit(job{number: 1}, session(1, `"wait"`), nil)
	<-s.entered
	f.submit(job{number: 2}, unit.Batch{Cells: []unit.CellID{1}, Events: []event.Event{add(1, "x", "1")}, Through: 1}, nil)
	for n := uint64(10); n < 20; n++ {
		f.submit(job{number: n}, session(unit.CellID(n), "1"), nil)
		if got := <-answered; got != n {
			t.Fatalf("batch %d was answered while another session folds, want %d", got, n)
		}
	}
	close(s.leave)
	if first, second := <-answered, <-answered; first != 1 || second != 2 {
		t.Errorf("the slow session's batches were answered in the order %d, %d", first, second)
	}
	f.wait()
}

// A cell that is opened again beside those of another session stays where it was, behind what was asked of it before.
func TestACellOpenedAgainWaitsForItsEarlierBatches(t *testing.T) {
	s := summer{entered: make(chan string), leave: make(chan struct{})}
	compiled := compile(t, summing("sum", s))
	answered := make(chan uint64, 8)
	f := newFolds(t.Context(), func(string) *unit.Compiled { return compiled[0] }, func(j job, _ unit.Reply) { answered <- j.number })
	open := func(ids ...unit.CellID) (opens []unit.Open) {
		for _, id := range ids {
			opens = append(opens, unit.Open{Cell: id, Key: "sum", Seq: -1})
		}
		return opens
	}
	f.submit(job{number: 1}, unit.Batch{Open: open(1), Through: -1}, nil)
	if got := <-answered; got != 1 {
		t.Fatalf("batch %d was answered", got)
	}
	f.submit(job{number: 2}, unit.Batch{Open: open(2), Cells: []unit.CellID{2}, Events: []event.Event{add(0, "slow", `"wait"`)}}, nil)
	<-s.entered
	f.submit(job{number: 3}, unit.Batch{Open: open(1, 2), Through: -1}, nil)
	f.submit(job{number: 4}, unit.Batch{Cells: []unit.CellID{1}, Through: 0}, nil)
	if got := <-answered; got != 4 {
		t.Errorf("batch %d was answered while a cell of it folds for an earlier one", got)
	}
	close(s.leave)
	if first, second := <-answered, <-answered; first != 2 || second != 3 {
		t.Errorf("the batches of the slow cell were answered in the order %d, %d", first, second)
	}
	f.wait()
}

func TestNothingIsFoldedOnceTheStreamHasEnded(t *testing.T) {
	compiled := compile(t, summing("sum", summer{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var got unit.Reply
	f := newFolds(ctx, func(string) *unit.Compiled { return compiled[0] }, func(_ job, r unit.Reply) { got = r })
	f.submit(job{}, unit.Batch{Open: []unit.Open{{Cell: 1, Key: "sum", Seq: -1}}}, nil)
	f.wait()
	if !reflect.DeepEqual(got, unit.Reply{Err: errEnded}) {
		t.Errorf("got %+v", got)
	}
}

// What a batch gave counts only when all of it was carried out, in whatever order its parts are done.
func TestAPartThatFailsIsTheAnswerToTheWhole(t *testing.T) {
	failed, right := unit.Reply{Err: errEnded}, unit.Reply{Unknown: []unit.CellID{1}}
	for _, parts := range [][]unit.Reply{{failed, right}, {right, failed}, {right, failed, right}} {
		w := &whole{left: len(parts)}
		for i, p := range parts {
			reply, done := w.add(p)
			if last := i == len(parts)-1; done != last || last && !reflect.DeepEqual(reply, failed) {
				t.Errorf("after part %d of %d: %+v, %v", i+1, len(parts), reply, done)
			}
		}
	}
}

func TestDroppedCellsLeaveNothingBehind(t *testing.T) {
	compiled := compile(t, summing("sum", summer{}))
	f := newFolds(t.Context(), func(string) *unit.Compiled { return compiled[0] }, func(job, unit.Reply) {})
	for id := unit.CellID(1); id <= 100; id++ {
		f.submit(job{}, unit.Batch{Open: []unit.Open{{Cell: id, Key: "sum", Seq: -1}}}, nil)
	}
	var all []unit.CellID
	for id := unit.CellID(1); id <= 100; id++ {
		all = append(all, id)
	}
	f.submit(job{}, unit.Batch{Drop: all}, nil)
	f.wait()
	if n := len(f.groups); n != 0 {
		t.Errorf("%d cells are still known", n)
	}
}

// A stream of small batches for one session: what the groups cost beside the folding.
func BenchmarkFolds(b *testing.B) {
	compiled := compile(b, summing("sum", summer{}))
	for _, size := range []int{1, 100} {
		b.Run(fmt.Sprintf("%d events a batch", size), func(b *testing.B) {
			answers := make(chan struct{}, 4)
			f := newFolds(context.Background(), func(string) *unit.Compiled { return compiled[0] }, func(job, unit.Reply) { answers <- struct{}{} })
			f.submit(job{}, unit.Batch{Open: []unit.Open{{Cell: 1, Key: "sum", Seq: -1}}}, nil)
			<-answers
			events := make([]event.Event, size)
			seq := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				for i := range events {
					events[i] = add(seq, "a", "1")
					seq++
				}
				f.submit(job{}, unit.Batch{Cells: []unit.CellID{1}, Events: events, Through: seq - 1, Mode: unit.LastOnly}, nil)
				<-answers
			}
			b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
