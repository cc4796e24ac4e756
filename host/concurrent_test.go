package host_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// Whatever happens at once, a snapshot is one cut: when every event is counted, each value is the number of events up to asOfSeq.
func TestSnapshotsAreCutsWhateverHappensAtOnce(t *testing.T) {
	const appends, rounds = 200, 60
	h := newHost(t, "a", "b")
	s := create(t, h, event.Header{ID: "s"})
	check := func(block registry.Block, err error) {
		if err != nil {
			t.Error(err)
			return
		}
		for key, value := range block.Values {
			if want := fmt.Sprint(block.AsOfSeq + 1); string(value) != want {
				t.Errorf("%s is %s as of seq %d, want %s", key, value, block.AsOfSeq, want)
			}
		}
	}
	appendAll(t, s, "step", "step") // So that there is a past to look at.
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range appends {
				if _, err := s.Append(t.Context(), "step", 1, session.Intent{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for range rounds {
			check(h.Snapshot(t.Context(), s))
		}
	})
	all.Go(func() {
		for i := range rounds {
			check(h.SnapshotAt(t.Context(), s, int64(i%3)-1))
		}
	})
	all.Go(func() {
		for range rounds {
			if err := s.Detach(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	all.Go(func() {
		for range rounds {
			reg, err := h.Register("late", number("c"))
			if err != nil {
				t.Error(err)
				return
			}
			check(h.Snapshot(t.Context(), s))
			reg.Release()
		}
	})
	all.Wait()
	block := snapshot(t, h, s)
	check(block, nil)
	same(t, "asOfSeq in the end", block.AsOfSeq, 2+2*appends-1)
}
