package unit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/foldhost/foldhost/unit"
)

// TestWhateverIsCancelledACellThatAnswersIsRight drives some cells at once. Any batch may be cancelled at any time; after an error, or
// when the cell is unknown, its driver opens it again from init. A state that comes back counts every event up to its seq.
func TestWhateverIsCancelledACellThatAnswersIsRight(t *testing.T) {
	l := local(t, count())
	var answers atomic.Int64
	submit := func(ctx context.Context, b unit.Batch) unit.Reply {
		got := make(chan unit.Reply, 1)
		l.Submit(ctx, b, func(r unit.Reply) {
			answers.Add(1)
			got <- r
		})
		return <-got
	}
	var wg sync.WaitGroup
	var submitted atomic.Int64
	for id := range unit.CellID(4) {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(id), 1))
			through, lost, checked := int64(-1), true, 0
			for range 300 {
				b := unit.Batch{Cells: []unit.CellID{id}, States: []unit.CellID{id}}
				if lost {
					b.Open = []unit.Open{{Cell: id, Key: "test/count", Seq: -1}}
					through = -1
				}
				for range random.IntN(20) {
					through++
					b.Events = append(b.Events, other(through))
				}
				b.Through = through
				ctx, cancel := context.WithCancel(context.Background())
				if random.IntN(2) == 0 {
					go cancel()
				}
				r := submit(ctx, b)
				submitted.Add(1)
				cancel()
				if lost = r.Err != nil || len(r.Unknown) > 0; lost {
					continue
				}
				checked++
				if want := fmt.Sprintf("state %d@%d=%d", id, through, through+1); text(r) != want {
					t.Errorf("got %s, want %s", text(r), want)
				}
			}
			if checked == 0 {
				t.Error("every batch was cancelled: nothing was looked at")
			}
		})
	}
	wg.Wait()
	if answers.Load() != submitted.Load() {
		t.Errorf("%d answers to %d batches", answers.Load(), submitted.Load())
	}
}
