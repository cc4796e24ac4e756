package eventlog

import (
	"context"
	"iter"

	"github.com/foldhost/foldhost/event"
)

// Scan reads the whole answer to a query page by page, as a sequence that ends at the first error. It holds one page.
func Scan(ctx context.Context, s Store, q Query) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		end := q.To
		for {
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
			if end <= 0 {
				// The end is fixed at the first page: an answer does not chase a log that grows.
				end, q.To = page.End, page.End
			}
			if page.Next >= end {
				return
			}
			q.From = page.Next
		}
	}
}
