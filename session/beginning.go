package session

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// beginning follows the events that a session is made from, as they stream to the store: it validates each as an append would be, and builds the
// surface that the session will have. It holds no log.
type beginning struct {
	set     *Set
	planner *planner
	// results are the frames of the tool/results on the surface: a later event may rewrite them, and the store cannot give them yet.
	results map[int64]event.Event
	// next is the seq of the next event; last the type of the one before.
	next int64
	last string
}

func newBeginning(t *Set) *beginning {
	return &beginning{set: t, planner: newPlanner(), results: make(map[int64]event.Event)}
}

// events validates drafts on their way to the store, with session/end-seed at the end if that is asked for and missing. Refusals are *event.IndexError.
func (b *beginning) events(drafts iter.Seq2[event.Draft, error], endSeed bool) iter.Seq2[event.Event, error] {
	return b.stream(drafts, endSeed, func(d *event.Draft) error {
		if err := b.admit(d); err != nil {
			return &event.IndexError{Index: b.next, Err: err}
		}
		return nil
	})
}

// inherited gives the first n events of an accepted log as a seed: only the surface is followed, which fails if the log is damaged.
func (b *beginning) inherited(ctx context.Context, source eventlog.Life, n int64) iter.Seq2[event.Event, error] {
	log := func(yield func(event.Draft, error) bool) {
		if n == 0 { // in a query that is all of a log
			return
		}
		for ev, err := range eventlog.Scan(ctx, b.set.store, eventlog.Query{Life: source, To: n}) {
			if !yield(event.Draft{Event: ev}, err) {
				return
			}
		}
	}
	read := func(seq int64) (event.Event, error) { return b.set.readOne(ctx, source, seq) }
	return b.stream(log, true, func(d *event.Draft) error {
		if err := b.planner.accept(d, read); err != nil {
			return damage(source.ID, d.Seq, err)
		}
		return nil
	})
}

func (b *beginning) stream(drafts iter.Seq2[event.Draft, error], endSeed bool, accept func(*event.Draft) error) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for d, err := range drafts {
			if err == nil {
				err = accept(&d)
			}
			if err != nil {
				yield(event.Event{}, err)
				return
			}
			b.next, b.last = d.Seq+1, d.Type
			if !yield(d.Event, nil) {
				return
			}
		}
		if endSeed && b.last != event.EndSeed {
			yield(b.end(), nil)
		}
	}
}

// admit checks in the order of the specification; that data is lossless JSON is known.
func (b *beginning) admit(d *event.Draft) error {
	if err := checkEnvelope(&d.Event); err != nil {
		return err
	}
	if err := event.CheckSize(&d.Event, b.set.o.MaxEventBytes); err != nil {
		return err
	}
	if err := event.CheckShape(&d.Event); err != nil {
		return err
	}
	var shadowed []int64
	if d.Op.Kind == event.OpReplace {
		shadowed, _ = b.planner.m.Range(d.Op.Start, d.Op.End) // planning says what is wrong with a range
	}
	if err := b.planner.accept(d, b.result); err != nil {
		return err
	}
	for _, seq := range shadowed {
		delete(b.results, seq)
	}
	if d.Type == event.ToolResult {
		b.results[d.Seq] = frame(&d.Event)
	}
	return nil
}

// result reads a node; the zero event is one of another type than tool/result.
func (b *beginning) result(seq int64) (event.Event, error) { return b.results[seq], nil }

// end is the session/end-seed of a seed that lacks it.
func (b *beginning) end() event.Event {
	b.planner.m.Advance(b.next + 1)
	return event.Event{Type: event.EndSeed, Seq: b.next, Time: b.set.o.Now().UnixMilli(), Data: json.RawMessage(`{}`)}
}
