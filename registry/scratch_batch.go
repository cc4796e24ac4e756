package registry

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// scratchRemote is one process with cells that share batches.
type scratchRemote struct {
	process *process
	cells   []*scratchCell
	// careful: its one cell is a suspect, and while it is in flight nothing else of the scratch is.
	careful bool
}

// scratchBatch is one batch under way.
type scratchBatch struct {
	*unit.Batch
	remote *scratchRemote
	cells  []*scratchCell
	answer chan unit.Reply
	// reply is the answer once it was taken; it took as long as took says, in nanoseconds since since.
	reply *unit.Reply
	since time.Time
	took  atomic.Int64
	// overdue ends with the batch's deadline.
	overdue context.Context
	// quiet: when it was submitted, nothing else was in flight in the process, which had let in so many batches by then.
	quiet   bool
	entries uint64
}

// alone says that nothing else was in the process while the batch was.
func (b *scratchBatch) alone() bool {
	_, entries := b.remote.process.quiet()
	return b.quiet && b.entries == entries
}

// errNotTaken answers a batch that never went to the process, because it is dead or looking for what killed it.
var errNotTaken = &unit.GoneError{Reason: "it does not take other work now"}

// send hands each process the batch that batchOf gives for it; none with no cell.
//
// The deadline of a batch is its own and not the caller's: a batch that ends early counts as a process that hangs, and a
// reader who goes away is no reason to kill one.
func (s *scratch) send(ctx context.Context, batchOf func(*scratchRemote) (unit.Batch, []*scratchCell)) (sent []*scratchBatch, err error) {
	for _, r := range s.remotes {
		batch, cells := batchOf(r)
		if len(cells) == 0 {
			continue
		}
		if r.careful {
			for _, b := range sent {
				if err := b.settle(ctx); err != nil {
					return nil, err
				}
			}
		}
		// One place in the channel: the first answer counts, and one too many finds it full and is lost.
		answer := make(chan unit.Reply, 1)
		overdue, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.r.o.BatchDeadline)
		b := &scratchBatch{Batch: &batch, remote: r, cells: cells, answer: answer, overdue: overdue, since: time.Now()}
		sent = append(sent, b)
		r.process.submitApart(overdue, batch, func(reply unit.Reply) {
			b.took.CompareAndSwap(0, int64(time.Since(b.since)))
			select {
			case answer <- reply:
			default:
			}
			cancel()
		})
		if b.quiet, b.entries = r.process.quiet(); r.careful {
			if err := b.settle(ctx); err != nil {
				return nil, err
			}
		}
	}
	return sent, nil
}

// settle waits for the answer. It does not trust the process to give one: the deadline of the batch ends it. The error is that of the
// caller's context.
func (b *scratchBatch) settle(ctx context.Context) error {
	if b.reply != nil {
		return nil
	}
	select {
	case r := <-b.answer:
		b.reply = &r
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-b.overdue.Done():
	}
	// The deadline also ends with the answer, and an answer that came in time counts however late it is looked at.
	select {
	case r := <-b.answer:
		b.reply = &r
	default:
		b.reply = &unit.Reply{Err: &unit.DeadlineError{Reason: context.Cause(b.overdue).Error()}}
		b.remote.process.buried(b.reply.Err) // it may not have heard of its own end yet
	}
	return nil
}

// split gives the events of the next batch, at least one when there are any, and the rest.
func (s *scratch) split(events []event.Event) (batch, rest []event.Event) {
	size, count := 0, min(s.batchEvents, s.pace(events))
	for i := range events {
		size += len(events[i].Data)
		if i > 0 && (i >= count || size > s.r.o.BatchBytes) {
			return events[:i], events[i:]
		}
	}
	return events, nil
}

// pace gives how many events may go together so that a suspect gets those that it is suspected of one by one.
func (s *scratch) pace(events []event.Event) int {
	n := len(events)
	for _, c := range s.cells {
		if !c.suspect || !c.open || c.down != nil {
			continue
		}
		for i := range min(n, len(events)) {
			if seq := events[i].Seq; seq >= c.doubt.from && seq <= c.doubt.to {
				n = max(i, 1)
				break
			}
		}
	}
	return n
}

func faultOf(r unit.Reply, id unit.CellID) *unit.Fault {
	for i := range r.Faults {
		if r.Faults[i].Cell == id {
			return &r.Faults[i]
		}
	}
	return nil
}

func valuesOf(r unit.Reply, id unit.CellID) (values []unit.Value) {
	for _, v := range r.Values {
		if v.Cell == id {
			values = append(values, v)
		}
	}
	return values
}
