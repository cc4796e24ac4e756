package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// Changes is the lossless pull: every change of every client-visible key that the events from seq `from` on caused, up to the head at the
// call, ordered by seq, then key. What is equal byte for byte to the value before it, that as of from−1 at first, is no change. It
// folds in cells of its own, page by page: memory does not grow with the log.
//
// A key that fails ends with one KindUnavailable, whose Seq is what it reached; the others go on. An error ends the sequence:
// *SeqRangeError, ErrDetached, the log's, the context's. The sequence may be left at any time and ranged over again.
func (s *Session) Changes(ctx context.Context, from int64) iter.Seq2[Change, error] {
	return s.ChangesProgress(ctx, from, nil)
}

// ChangesProgress is Changes that also says, between changes, up to which seq everything was given, and at the end head. keys narrows it; none is all.
func (s *Session) ChangesProgress(ctx context.Context, from int64, progress func(reached, head int64), keys ...string) iter.Seq2[Change, error] {
	gone := s.detached()
	bindings, head := s.bindings(false, keys...)
	return func(yield func(Change, error) bool) {
		if gone {
			yield(Change{}, ErrDetached)
			return
		}
		if from < 0 || from > head+1 {
			yield(Change{}, &SeqRangeError{Session: s.log.ID(), Seq: from, Head: head})
			return
		}
		p := pull{
			scratch: newScratch(s.r, s.log, bindings),
			at:      from - 1, head: head, given: -1,
			told: map[*scratchCell]bool{}, yield: yield, progress: progress,
		}
		defer p.close()
		if err := p.run(ctx, s); err != nil {
			yield(Change{}, err)
		}
	}
}

// Keys are the client-visible keys that the session's set offers at present, sorted.
func (s *Session) Keys() []string {
	bindings, _ := s.bindings(false)
	keys := make([]string, len(bindings))
	for i, b := range bindings {
		keys[i] = b.Key
	}
	return keys
}

// pullBytes is what the values of one batch should stay below: batches shrink when they are above. One event of one batch may change
// every key, so this is an aim and not a bound.
const pullBytes = 4 << 20

// pull is one pull under way. at is the seq up to which everything was given.
type pull struct {
	*scratch
	at, head int64
	// given is the seq up to which everything was handed over: nothing that comes later may have a lower one.
	given    int64
	told     map[*scratchCell]bool
	yield    func(Change, error) bool
	progress func(reached, head int64)
}

// run is the whole pull. A nil error also says that nobody wants more.
func (p *pull) run(ctx context.Context, s *Session) error {
	if err := s.r.foldTo(ctx, p.scratch, p.at, s.startOf); err != nil {
		return err
	}
	if !p.give(nil) {
		return nil
	}
	for p.at < p.head {
		types := p.types()
		if types != nil && len(types) == 0 {
			break
		}
		events, next, err := p.log.ReadPage(ctx, p.at+1, p.head+1, types)
		if err != nil {
			return err
		}
		if next <= p.at+1 {
			return stuck(p.log, p.at+1, next)
		}
		if more, err := p.page(ctx, events, min(next-1, p.head)); !more || err != nil {
			return err
		}
		if p.progress != nil {
			p.progress(p.at, p.head)
		}
	}
	if p.progress != nil && p.at < p.head {
		p.progress(p.head, p.head)
	}
	return nil
}

// types are those of the cells that are still up.
func (p *pull) types() []string {
	var up []*binding
	for _, c := range p.cells {
		if c.down == nil {
			up = append(up, c.binding)
		}
	}
	return foldedTypes(up)
}

// page folds the events of a page batch by batch, through the seq where the page ends, and gives what changed.
func (p *pull) page(ctx context.Context, events []event.Event, through int64) (more bool, err error) {
	for p.at < through {
		upTo := p.halt(through)
		n := 0
		for n < len(events) && events[n].Seq <= upTo {
			n++
		}
		batch, rest := p.split(events[:n])
		if len(rest) > 0 {
			upTo = batch[len(batch)-1].Seq
		}
		values, err := p.every(ctx, batch, upTo)
		if err != nil {
			return false, err
		}
		events, p.at = events[len(batch):], upTo
		p.adapt(values)
		if !p.give(values) {
			return false, nil
		}
	}
	return true, nil
}

// every folds one batch in EveryChange mode. Cells that their instance has forgotten are brought back silently to where the batch
// began, and fold it again by themselves.
func (p *pull) every(ctx context.Context, batch []event.Event, upTo int64) ([]scratchValue, error) {
	values, lost, err := p.fold(ctx, batch, upTo, unit.EveryChange)
	for err == nil && lost {
		if err = p.reopen(ctx); err == nil {
			err = p.advance(ctx, p.at)
		}
		if err != nil {
			break
		}
		var more []scratchValue
		more, lost, err = p.fold(ctx, batch, upTo, unit.EveryChange)
		values = append(values, more...)
	}
	return values, err
}

// adapt sets the size of the next batch by what came of this one.
func (p *pull) adapt(values []scratchValue) {
	size := 0
	for _, v := range values {
		size += len(v.view)
	}
	switch {
	case size > pullBytes:
		p.batchEvents = max(p.batchEvents/2, 1)
	case size < pullBytes/4:
		p.batchEvents = min(p.batchEvents*2, p.r.o.BatchEvents)
	}
}

// give checks values, hands them over with the keys that went down meanwhile, and says whether more is wanted.
func (p *pull) give(values []scratchValue) bool {
	var changes []Change
	for _, v := range values {
		if p.told[v.cell] {
			continue
		}
		view, err := v.cell.AcceptView(v.view, p.r.o.MaxViewBytes)
		if err != nil {
			v.cell.fail(v.seq, err.Error())
			changes = append(changes, p.unavailable(v.cell))
			continue
		}
		changes = append(changes, p.change(v.cell, v.seq, view))
	}
	for _, c := range p.cells {
		if c.down != nil && !p.told[c] {
			changes = append(changes, p.unavailable(c))
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Key, b.Key))
	})
	for _, c := range changes {
		if !p.yield(c, nil) {
			return false
		}
	}
	p.given = p.at
	return true
}

func (p *pull) change(c *scratchCell, seq int64, view json.RawMessage) Change {
	return Change{Session: p.log.ID(), Incarnation: p.log.Incarnation(), Kind: KindValue, Key: c.Key, Value: view, Seq: seq, Rev: c.rev}
}

func (p *pull) unavailable(c *scratchCell) Change {
	p.told[c] = true
	down := *c.down
	down.Seq = max(down.Seq, p.given)
	return Change{Session: p.log.ID(), Incarnation: p.log.Incarnation(), Kind: KindUnavailable, Key: c.Key, Seq: down.Seq, Rev: c.rev, Unavailable: &down}
}
