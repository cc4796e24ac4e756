package logtest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// At once, and from each of them: enough to meet, few enough for a store that syncs each commit.
const (
	racers = 8
	rounds = 12
)

// race runs f in several goroutines and fails with the first error. f must not call the testing.TB.
func (k kit) race(f func(i int) error) {
	k.Helper()
	var wg sync.WaitGroup
	errs := make([]error, racers)
	for i := range racers {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		k.Fatalf("%v", err)
	}
}

func raceOneLog(k kit) {
	k.create("a")
	var mu sync.Mutex
	winners := map[int64]int{}
	positions := map[int64]bool{}
	k.race(func(i int) error {
		var seq int64
		for won := 0; won < rounds; {
			e := ev(fmt.Sprint("by", i), seq)
			c, err := k.Append(k.Context(), eventlog.Batch{Life: life("a"), Events: []event.Event{e}})
			if lost, ok := errors.AsType[*eventlog.SeqConflictError](err); ok {
				if lost.Seq <= seq {
					return fmt.Errorf("the conflict at %d names the head %d: the log went back", seq, lost.Seq)
				}
				seq = lost.Seq
				continue
			}
			if err != nil {
				return err
			}
			mu.Lock()
			if w, taken := winners[seq]; taken || positions[c.Position] {
				mu.Unlock()
				return fmt.Errorf("seq %d, position %d went to %d and to %d", seq, c.Position, w, i)
			}
			winners[seq], positions[c.Position] = i, true
			mu.Unlock()
			won++
			seq = c.Seq
		}
		return nil
	})
	var want []event.Event
	for seq := range int64(racers * rounds) {
		want = append(want, ev(fmt.Sprint("by", winners[seq]), seq))
	}
	k.holds("a", want)
}

func raceKey(k kit) {
	k.create("a")
	var mu sync.Mutex
	var first, repeated []eventlog.Commit
	k.race(func(int) error {
		c, err := k.Append(k.Context(), keyed(0, "k", "d", "x", "x"))
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if c.Repeated {
			c.Repeated = false
			repeated = append(repeated, c)
		} else {
			first = append(first, c)
		}
		return nil
	})
	if len(first) != 1 {
		k.Fatalf("%d appends say that they wrote, want 1", len(first))
	}
	for _, c := range repeated {
		if c != first[0] {
			k.Fatalf("repeated %+v, the first was %+v", c, first[0])
		}
	}
	k.holds("a", row(0, "x", "x"))
}

// Readers follow the tail while others append: nobody misses an event that commits late.
func raceManyLogs(k kit) {
	for i := range racers {
		k.create(fmt.Sprint("s", i))
	}
	const all = (racers - 1) * rounds * 2
	var appending atomic.Int32
	appending.Store(racers - 1)
	follow := func() error {
		next := map[string]int64{}
		q := eventlog.TailQuery{Limit: 3}
		for seen := 0; seen < all; {
			done := appending.Load() == 0
			page, err := k.Tail(k.Context(), q)
			if err != nil {
				return err
			}
			for _, e := range page.Events {
				if e.Event.Seq != next[e.Life.ID] {
					return fmt.Errorf("the tail gives seq %d of %s, %d is next", e.Event.Seq, e.Life.ID, next[e.Life.ID])
				}
				next[e.Life.ID]++
				seen++
			}
			if done && seen < all && page.Position >= page.End {
				return fmt.Errorf("the tail gave %d events of %d", seen, all)
			}
			q.After = page.Position
		}
		return nil
	}
	k.race(func(i int) error {
		if i == 0 {
			return follow()
		}
		defer appending.Add(-1)
		id := fmt.Sprint("s", i)
		for n := range int64(rounds) {
			if _, err := k.Append(k.Context(), eventlog.Batch{Life: life(id), Events: row(n*2, "x", "x")}); err != nil {
				return err
			}
			if info, err := k.Info(k.Context(), id); err != nil || info.Seq != n*2+2 {
				return fmt.Errorf("own append is not seen: %+v, %w", info, err)
			}
		}
		return nil
	})
	for i := 1; i < racers; i++ {
		k.holds(fmt.Sprint("s", i), row(0, several("x", rounds*2)...))
	}
}

func raceCreate(k kit) {
	var mu sync.Mutex
	var winners []int
	k.race(func(i int) error {
		events := row(0, several(fmt.Sprint("by", i), 3)...)
		_, err := k.Create(k.Context(), eventlog.Creation{Header: event.Header{ID: "a"}, Events: pull(events)})
		if _, taken := errors.AsType[*eventlog.ExistsError](err); taken {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		winners = append(winners, i)
		return err
	})
	if len(winners) != 1 {
		k.Fatalf("%d creations won", len(winners))
	}
	k.holds("a", row(0, several(fmt.Sprint("by", winners[0]), 3)...))
	if got := k.tail(eventlog.TailQuery{}); len(got) != 3 {
		k.Fatalf("%d events in the tail, want 3", len(got))
	}
}
