package logtest

import (
	"fmt"
	"slices"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// interleaved fills three logs in turns and returns what a tail must give.
func (k kit) interleaved() []eventlog.TailEvent {
	k.Helper()
	var want []eventlog.TailEvent
	lives := map[string]eventlog.Life{}
	put := func(id string, last int64, events []event.Event) {
		for i, e := range events {
			want = append(want, eventlog.TailEvent{Life: lives[id], Position: last - int64(len(events)-1-i), Event: e})
		}
	}
	for i, id := range []string{"a", "b", "c"} {
		events := row(0, several("seed", i*2)...) // a log without events among them
		info := k.create(id, events...)
		lives[id] = eventlog.Life{ID: id, Incarnation: info.Incarnation}
		put(id, info.Position, events)
	}
	for round := range 4 {
		for i, id := range []string{"a", "b", "c"} {
			types := several(fmt.Sprint("t", (round+i)%3), 1+(round+2*i)%4)
			events := row(k.info(id).Seq, types...)
			put(id, k.append(id, events...).Position, events)
		}
	}
	return want
}

func (k kit) sameTail(what string, got, want []eventlog.TailEvent) {
	k.Helper()
	if len(got) != len(want) {
		k.Fatalf("%s: %d events, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i].Life != want[i].Life || got[i].Position != want[i].Position {
			k.Fatalf("%s: event %d is %+v at %d, want %+v at %d",
				what, i, got[i].Life, got[i].Position, want[i].Life, want[i].Position)
		}
		k.same(what, []event.Event{got[i].Event}, []event.Event{want[i].Event})
	}
}

func tailWhole(k kit) {
	if got := k.tail(eventlog.TailQuery{}); len(got) != 0 {
		k.Fatalf("the tail of an empty store has %d events", len(got))
	}
	want := k.interleaved()
	for _, limit := range []int{0, 1, 2, 3, 5, 1000} {
		k.sameTail(fmt.Sprint("the tail by ", limit), k.tail(eventlog.TailQuery{Limit: limit}), want)
	}
}

func tailResume(k kit) {
	want := k.interleaved()
	for i, e := range want {
		for _, limit := range []int{0, 1} {
			got := k.tail(eventlog.TailQuery{After: e.Position, Limit: limit})
			k.sameTail(fmt.Sprint("the tail after ", e.Position), got, want[i+1:])
		}
	}
}

func tailTypes(k kit) {
	all := k.interleaved()
	for _, types := range [][]string{{}, {"t0"}, {"t1", "seed"}, {"none"}, {"t2", "t2"}} {
		var want []eventlog.TailEvent
		for _, e := range all {
			if slices.Contains(types, e.Event.Type) {
				want = append(want, e)
			}
		}
		for _, limit := range []int{0, 1, 3} {
			k.sameTail(fmt.Sprintf("the tail of %q", types), k.tail(eventlog.TailQuery{Types: types, Limit: limit}), want)
		}
	}
}

func tailDeleted(k kit) {
	all := k.interleaved()
	rest := all
	for _, id := range []string{"b", "a", "c"} {
		k.delete(id)
		var left []eventlog.TailEvent
		for _, e := range rest {
			if e.Life.ID != id {
				left = append(left, e)
			}
		}
		rest = left
		for _, limit := range []int{0, 1} {
			k.sameTail("the tail without "+id, k.tail(eventlog.TailQuery{Limit: limit}), rest)
		}
	}
	// A reader that stood at the end meets what comes next: positions are never given twice.
	end := all[len(all)-1].Position
	info := k.create("a", row(0, "again")...)
	if info.Position <= end {
		k.Fatalf("position %d was given before, the last is %d", info.Position, end)
	}
	got := k.tail(eventlog.TailQuery{After: end})
	if len(got) != 1 || got[0].Life.Incarnation != info.Incarnation || got[0].Position != info.Position {
		k.Fatalf("the tail after the deletions: %+v", got)
	}
}

func tailEnd(k kit) {
	k.create("a", row(0, "x")...)
	k.create("empty")
	page, err := k.Tail(k.Context(), eventlog.TailQuery{})
	for err == nil && page.Position < page.End {
		page, err = k.Tail(k.Context(), eventlog.TailQuery{After: page.Position})
	}
	if err != nil {
		k.Fatalf("Tail: %v", err)
	}
	at := page.Position
	for range 2 {
		page, err = k.Tail(k.Context(), eventlog.TailQuery{After: at})
		if err != nil || len(page.Events) != 0 || page.Position < at || page.Position < page.End {
			k.Fatalf("at the end: %+v, %v", page, err)
		}
	}
	ahead, err := k.Tail(k.Context(), eventlog.TailQuery{After: at + 1000})
	if err != nil || len(ahead.Events) != 0 || ahead.Position < ahead.End {
		k.Fatalf("beyond the end: %+v, %v", ahead, err)
	}
	c := k.append("empty", row(0, "y")...)
	got := k.tail(eventlog.TailQuery{After: at})
	if len(got) != 1 || got[0].Position != c.Position || got[0].Event.Type != "y" {
		k.Fatalf("after the end: %+v, the commit was %+v", got, c)
	}
}

func readPositions(k kit) {
	k.interleaved()
	k.create("long", row(0, several("t0", 2500)...)...) // which a store may have to take in parts
	k.append("long", row(2500, "t1", "t0")...)
	want := map[string][]int64{}
	for _, e := range k.tail(eventlog.TailQuery{}) {
		want[e.Life.ID] = append(want[e.Life.ID], e.Position)
	}
	for id, all := range want {
		for _, types := range [][]string{nil, {"t0"}, {"t1", "seed"}, {}} {
			for _, limit := range []int{0, 3, 700} {
				for q := (eventlog.Query{Life: life(id), From: 1, Types: types, Limit: limit, Positions: true}); ; {
					page, err := k.Read(k.Context(), q)
					if err != nil || len(page.Positions) != len(page.Events) {
						k.Fatalf("Read(%+v): %d positions for %d events, %v", q, len(page.Positions), len(page.Events), err)
					}
					for i, e := range page.Events {
						if page.Positions[i] != all[e.Seq] {
							k.Fatalf("Read(%+v): event %d of %s is at %d, and in the tail at %d", q, e.Seq, id, page.Positions[i], all[e.Seq])
						}
					}
					if page.Next >= page.End {
						break
					}
					q.From = page.Next
				}
			}
		}
	}
}
