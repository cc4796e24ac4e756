package memory

import (
	"fmt"

	"github.com/foldhost/foldhost/eventlog"
)

// check refuses batches that no store would take.
func check(b eventlog.Batch) error {
	if len(b.Events) == 0 {
		return &eventlog.InvalidError{Reason: "an append needs at least one event"}
	}
	for i := range b.Events {
		if want := b.Events[0].Seq + int64(i); b.Events[i].Seq != want {
			return outOfRow(b.Events[i].Seq, want)
		}
	}
	return nil
}

func outOfRow(have, want int64) error {
	return &eventlog.InvalidError{Reason: fmt.Sprintf("the seqs of a batch are in a row: event has %d, expected %d", have, want)}
}

// bound is what a page may hold: what was asked for, and never more than the store's own limit.
func bound(asked, own int) int {
	if asked == 0 {
		return own
	}
	return min(asked, own)
}

func negative(name string, n int64) error {
	return &eventlog.InvalidError{Reason: fmt.Sprintf("%s is %d: it must not be negative", name, n)}
}
