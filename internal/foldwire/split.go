package foldwire

import (
	"iter"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// Split cuts a batch into batches that each fit a message, which carried out one after the other come to the same. A batch that fits
// is yielded as it is. MergeParts puts the replies together.
//
// A drop, an opening and an event are never cut in two. The one that is larger than a message on its own is the caller's to
// refuse; EventFits and OpenFits say so before.
func Split(b *unit.Batch) iter.Seq[unit.Batch] {
	return split(b, pluginproto.MaxMessageBytes-slack, pluginproto.TargetMessageBytes)
}

// split cuts what is larger than limit into parts of about target.
func split(b *unit.Batch, limit, target int) iter.Seq[unit.Batch] {
	return func(yield func(unit.Batch) bool) {
		if batchSize(b) <= limit {
			yield(*b)
			return
		}
		part := unit.Batch{Mode: b.Mode, Drop: b.Drop, Through: -1}
		// The openings first, a part for each message full of states. They drive nothing, so that none is driven twice.
		for open := b.Open; len(open) > 0; {
			n, size := 0, 0
			for n < len(open) && (n == 0 || size+openSize(&open[n]) <= target) {
				size += openSize(&open[n])
				n++
			}
			part.Open, open = open[:n], open[n:]
			if !yield(part) {
				return
			}
			part.Drop, part.Open = nil, nil
		}
		part.Cells = b.Cells
		for evs := b.Events; ; {
			n, size := 0, 0
			for n < len(evs) && (n == 0 || size+eventSize(&evs[n]) <= target) {
				size += eventSize(&evs[n])
				n++
			}
			part.Events, evs = evs[:n], evs[n:]
			if len(evs) == 0 {
				part.Through, part.States = b.Through, b.States
				yield(part)
				return
			}
			part.Through = part.Events[n-1].Seq
			if !yield(part) {
				return
			}
			part.Drop = nil
		}
	}
}

// MergeParts puts the replies to the parts of a split batch together, in their order.
func MergeParts(mode unit.Mode, replies []unit.Reply) unit.Reply {
	if len(replies) == 1 {
		return replies[0]
	}
	var out unit.Reply
	faulted, unknown := map[unit.CellID]bool{}, map[unit.CellID]bool{}
	latest := map[unit.CellID]int{}
	for i := range replies {
		r := &replies[i]
		if r.Err != nil {
			return unit.Reply{Err: r.Err}
		}
		for _, v := range r.Values {
			at, seen := latest[v.Cell]
			if seen && mode == unit.LastOnly {
				out.Values[at] = v
				continue
			}
			latest[v.Cell] = len(out.Values)
			out.Values = append(out.Values, v)
		}
		out.States = append(out.States, r.States...)
		for _, f := range r.Faults {
			if !faulted[f.Cell] {
				faulted[f.Cell] = true
				out.Faults = append(out.Faults, f)
			}
		}
		for _, id := range r.Unknown {
			if !unknown[id] {
				unknown[id] = true
				out.Unknown = append(out.Unknown, id)
			}
		}
	}
	return out
}

// EventFits says whether an event can be sent at all, and OpenFits whether an opening can.
func EventFits(e *event.Event) bool { return eventSize(e)+slack <= pluginproto.MaxMessageBytes }
func OpenFits(o *unit.Open) bool    { return openSize(o)+slack <= pluginproto.MaxMessageBytes }

// slack is room for the fields of a message around what it carries.
const slack = 64 << 10

func batchSize(b *unit.Batch) int {
	size := (len(b.Drop) + len(b.Cells) + len(b.States)) * 10
	for i := range b.Open {
		size += openSize(&b.Open[i])
	}
	for i := range b.Events {
		size += eventSize(&b.Events[i])
	}
	return size
}

// The sizes are upper bounds: every number at its longest.
func eventSize(e *event.Event) int { return 80 + len(e.Type) + len(e.Data) + 10*len(e.Sources) }
func openSize(o *unit.Open) int    { return 40 + len(o.Key) + len(o.State) }
