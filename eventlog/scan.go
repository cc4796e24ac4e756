package eventlog

import (
	"context"
	"iter"

	"github.com/foldhost/foldhost/event"
)

// Scan reads the whole answer to a query page by page, as a sequence that ends at the first error. It holds one page. The
// end is fixed at the first page, and so is the life of the log when the query names none: an answer does not chase a log that
// grows, and never mixes two lives.
func Scan(ctx context.Context, s Store, q Query) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		q := q
		for first := true; ; first = false {
			page, err := s.Read(ctx, q)
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			for _, ev := range page.Events {
				if !yield(ev, nil) {
					return
				}
			}
			if first {
				// Not what was asked for: To may lie beyond the log, and waiting there would never end.
				q.To, q.Life.Incarnation = page.End, page.Incarnation
			}
			if page.Next >= q.To {
				return
			}
			q.From = page.Next
		}
	}
}
