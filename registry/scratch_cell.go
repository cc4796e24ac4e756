package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// scratchCell is one cell. Its position is implied as for live cells: seq rises over events that are not its own without
// anybody being told.
type scratchCell struct {
	*binding
	// rev is what the binding's revision was when the cell was made.
	rev int64
	// seedState at seedSeq is what the cell starts from; nil is init, at −1.
	seedState json.RawMessage
	seedSeq   int64

	// suspect: a process died with this cell in flight, doubt says with what.
	suspect bool
	doubt   poisonRecord
	// limit is a fault that is known already: the cell goes no further than to the event before it.
	limit *Unavailable

	seq  int64
	open bool
	// waits: others go first.
	waits bool
	// down says why the cell is driven no further.
	down *Unavailable

	// state and stale belong to inline cells: stale says that view is not that of state.
	state unit.State
	stale bool
	// view is the last value, as of the event at viewSeq.
	view    json.RawMessage
	viewSeq int64

	// remote, id and lost belong to cells of instances. lost counts how often the instance did not know the cell.
	remote *scratchRemote
	id     unit.CellID
	lost   int
}

// maxForgotten is how often a cell is opened again because its instance did not know it any more. An instance may forget a cell
// once or twice, after a restart that nobody saw; one that always does never gets anywhere.
const maxForgotten = 3

// seed makes a cell start from a state at seq instead of init. The state must have passed its schema.
func (c *scratchCell) seed(state json.RawMessage, seq int64) {
	if c.doubt.noSeed || c.limit != nil && seq >= c.limit.FailedAt {
		return
	}
	c.seedState, c.seedSeq, c.seq = state, seq, seq
}

// bound makes the cell stop short of a fault that is known.
func (c *scratchCell) bound(fault *Unavailable) {
	if fault != nil && (c.limit == nil || fault.FailedAt < c.limit.FailedAt) {
		c.limit = fault
	}
}

// unseed makes a cell start from init after all.
func (c *scratchCell) unseed() {
	c.seedState, c.seedSeq, c.seq, c.open, c.down = nil, -1, -1, false, nil
}

// openInline makes the state of an inline cell, and its view; it gives what is wrong with the seed.
func (c *scratchCell) openInline() (wrong string) {
	var err error
	if c.seedState == nil {
		c.state, err = c.Inline.Init()
	} else {
		c.state, err = c.Inline.Decode(c.seedState)
	}
	if err == nil && !c.HostOnly() {
		c.view, err = c.Inline.View(c.state)
	}
	if err != nil {
		return err.Error()
	}
	c.open, c.stale, c.seq, c.viewSeq = true, false, c.seedSeq, c.seedSeq
	return ""
}

// opened takes what a reply to an opening batch says about the cell; it gives what is wrong with the seed.
func (c *scratchCell) opened(r unit.Reply) (wrong string) {
	if f := faultOf(r, c.id); f != nil {
		return f.Message
	}
	if slices.Contains(r.Unknown, c.id) {
		c.forgotten()
		return ""
	}
	c.open, c.seq, c.viewSeq = true, c.seedSeq, c.seedSeq
	if c.HostOnly() {
		return ""
	}
	values := valuesOf(r, c.id)
	if len(values) != 1 || values[0].Seq != c.seedSeq {
		c.breach(fmt.Sprintf("%d values for a cell opened at seq %d", len(values), c.seedSeq))
		return ""
	}
	c.view = values[0].View
	return ""
}

// drivable says whether the cell is there, does not wait, and stands below through.
func (c *scratchCell) drivable(through int64) bool {
	return c.open && c.down == nil && !c.waits && c.seq < through
}

// wants says whether the event is the cell's next or a later one.
func (c *scratchCell) wants(ev event.Event) bool { return ev.Seq > c.seq && c.Folds(ev.Type) }

// wanted counts those that it wants.
func (c *scratchCell) wanted(events []event.Event) (n int) {
	for i := range events {
		if c.wants(events[i]) {
			n++
		}
	}
	return n
}

func (c *scratchCell) foldInline(events []event.Event, through int64, mode unit.Mode, values []scratchValue) []scratchValue {
	if mode == unit.EveryChange && !c.look() {
		return values
	}
	for i := range events {
		if !c.wants(events[i]) {
			continue
		}
		next, changed, err := c.Inline.Apply(c.state, &events[i])
		if err != nil {
			c.fail(events[i].Seq, err.Error())
			return values
		}
		if changed {
			c.state, c.stale, c.viewSeq = next, true, events[i].Seq
		}
		c.seq = events[i].Seq
		if mode == unit.LastOnly {
			continue
		}
		last := c.view
		if !c.look() {
			return values
		}
		if !bytes.Equal(last, c.view) {
			values = append(values, scratchValue{cell: c, seq: c.viewSeq, view: c.view})
		}
	}
	c.seq = through
	return values
}

// look brings the view of an inline cell up to its state; false says that the view failed, which is a fault of the event that
// changed the state last.
func (c *scratchCell) look() bool {
	if !c.stale || c.HostOnly() {
		return true
	}
	view, err := c.Inline.View(c.state)
	if err != nil {
		c.fail(c.viewSeq, err.Error())
		return false
	}
	c.view, c.stale = view, false
	return true
}

// folded takes what a reply says about one of the batch's cells, and adds its values.
func (c *scratchCell) folded(b *unit.Batch, r unit.Reply, values []scratchValue) []scratchValue {
	if slices.Contains(r.Unknown, c.id) {
		c.forgotten()
		return values
	}
	fault := faultOf(r, c.id)
	end := b.Through
	if fault != nil {
		end = fault.Seq - 1
	}
	got := valuesOf(r, c.id)
	if wrong := c.wrongValues(b, got, end); wrong != "" {
		c.breach(wrong)
		return values
	}
	for _, v := range got {
		if b.Mode == unit.EveryChange && !bytes.Equal(v.View, c.view) {
			values = append(values, scratchValue{cell: c, seq: v.Seq, view: v.View})
		}
		c.view, c.viewSeq = v.View, v.Seq
	}
	if fault != nil {
		c.fail(max(c.seq+1, min(fault.Seq, b.Through)), fault.Message)
		return values
	}
	c.seq = b.Through
	return values
}

// wrongValues gives how values break the contract: the cell stood at seq before, and may have values up to end. In EveryChange
// mode each belongs to an event of the batch that the unit folds; in LastOnly mode there is at most one.
func (c *scratchCell) wrongValues(b *unit.Batch, values []unit.Value, end int64) string {
	if b.Mode == unit.LastOnly && len(values) > 1 {
		return fmt.Sprintf("%d values where the last was asked for", len(values))
	}
	last := c.seq
	for _, v := range values {
		if v.Seq <= last || v.Seq > end {
			return fmt.Sprintf("a value at seq %d where only %d to %d could come", v.Seq, last+1, end)
		}
		if b.Mode == unit.EveryChange && !slices.ContainsFunc(b.Events, func(ev event.Event) bool { return ev.Seq == v.Seq && c.Folds(ev.Type) }) {
			return fmt.Sprintf("a value at seq %d, which is not an event that the unit folds", v.Seq)
		}
		last = v.Seq
	}
	return ""
}

// fail ends the cell at an event.
func (c *scratchCell) fail(seq int64, message string) { c.down = faulted(max(seq, -1), message) }

// lag ends the cell where it stands, for reasons that are not its own.
func (c *scratchCell) lag(code UnavailableCode, message string) {
	c.down = &Unavailable{Code: code, Seq: max(c.seq, -1), Message: message}
}

// breach ends the cell by an answer that the contract does not allow. The unit may be sound; its process is not.
func (c *scratchCell) breach(what string) {
	c.lag(Behind, "the plugin broke the protocol: "+what)
}

// forgotten sends the cell back to its seed, or ends it when that happened too often.
func (c *scratchCell) forgotten() {
	if c.lost++; c.lost > maxForgotten {
		c.lag(Behind, fmt.Sprintf("the plugin forgot the cell %d times", c.lost))
		return
	}
	c.open, c.seq = false, c.seedSeq
}
