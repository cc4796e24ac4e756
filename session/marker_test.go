package session

import (
	"context"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
)

// Given turn markers anywhere in a log, then the last one before any place is found, and one near the end without reading those before it. Inside the
// package, as what is read shows in no result.
func TestTheLastTurnMarker(t *testing.T) {
	const length = 4 * firstLookBack
	marks := func(types map[int64]string) (*logtest.SlowStore, *Set, eventlog.Life) {
		store := logtest.Slow(memory.New())
		info, err := store.Create(context.Background(), eventlog.Creation{Header: event.Header{ID: "s"}, Events: func(yield func(event.Event, error) bool) {
			for seq := range int64(length) {
				typ := types[seq]
				if typ == "" {
					typ = "x"
				}
				if !yield(event.Event{Type: typ, Seq: seq, Data: []byte(`1`)}, nil) {
					return
				}
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		return store, NewSet(store, Options{IdleAfter: -1}), eventlog.Life{ID: "s", Incarnation: info.Incarnation}
	}
	for name, types := range map[string]map[int64]string{
		"none":       {},
		"first":      {0: event.TurnStart},
		"far back":   {0: event.TurnStart, 1: event.TurnEnd},
		"near":       {0: event.TurnStart, 5: event.TurnEnd, length - 3: event.TurnStart},
		"on borders": {length - firstLookBack: event.TurnStart, length - firstLookBack - 1: event.TurnEnd, length - 3*firstLookBack: event.TurnStart, length - 3*firstLookBack - 1: event.TurnEnd},
	} {
		t.Run(name, func(t *testing.T) {
			_, set, life := marks(types)
			defer set.Close()
			for _, n := range []int64{0, 1, 2, 6, firstLookBack - 1, firstLookBack, firstLookBack + 1, 3 * firstLookBack, 3*firstLookBack + 1, length - firstLookBack, length - firstLookBack + 1, length - 1, length} {
				want := n - 1
				for want >= 0 && types[want] == "" {
					want--
				}
				got, err := set.lastTurnMarker(context.Background(), life, n)
				if err != nil || (got == nil) != (want < 0) || got != nil && (got.Seq != want || got.Type != types[want]) {
					t.Errorf("before %d: got %+v, %v, want seq %d", n, got, err, want)
				}
			}
		})
	}
	t.Run("near the end of many", func(t *testing.T) {
		types := map[int64]string{}
		for seq := range int64(length) {
			types[seq] = event.TurnStart
		}
		store, set, life := marks(types)
		defer set.Close()
		if _, err := set.lastTurnMarker(context.Background(), life, length); err != nil {
			t.Fatal(err)
		}
		if n := store.Counts().Read; n > firstLookBack {
			t.Errorf("%d events read", n)
		}
	})
}
