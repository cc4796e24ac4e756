package memory_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/memory"
)

// Two writers expect the same seq. One wins; the other is told where the log is and decides again.
func Example() {
	ctx := context.Background()
	store := memory.New()
	defer store.Close()
	log, err := store.Create(ctx, eventlog.Creation{Header: event.Header{ID: "s"}})
	if err != nil {
		panic(err)
	}
	for _, who := range []string{`"a"`, `"b"`} {
		commit, err := store.Append(ctx, eventlog.Batch{
			Life:   eventlog.Life{ID: "s", Incarnation: log.Incarnation},
			Events: []event.Event{{Type: "note", Seq: 0, Data: []byte(who)}},
		})
		if conflict, ok := errors.AsType[*eventlog.SeqConflictError](err); ok {
			fmt.Println(who, "is too late, the log is at", conflict.Seq)
			continue
		}
		if err != nil {
			panic(err)
		}
		fmt.Println(who, "is at", commit.First)
	}
	// Output:
	// "a" is at 0
	// "b" is too late, the log is at 1
}
