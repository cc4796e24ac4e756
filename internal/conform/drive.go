package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// way is in which batches a log is sent. A host has use for each of them.
type way struct {
	// mode is that of the batches with events.
	mode unit.Mode
	// apart sends the openings, the events and the question for states in batches of their own, as a replay does; otherwise they travel together as far as
	// they can, as in a session that lives.
	apart bool
	// each sends every event in a batch of its own, as they come in a session that lives.
	each bool
	// ahead does not wait for an answer before the next batch, as nobody does who has more to fold.
	ahead bool
}

// start is a unit and where its cell is opened: a state as of seq, or nil at −1 for init.
type start struct {
	u     *unit.Compiled
	state json.RawMessage
	seq   int64
}

// outcome is what folding a stretch gave.
type outcome struct {
	values []unit.Value
	state  json.RawMessage
	fault  *unit.Fault
	// wrong is the answer to a batch that no host would take, at wrongSeq; empty when there was none.
	wrong    string
	wrongSeq int64
}

func (o *outcome) over() bool { return o.fault != nil || o.wrong != "" }

// view is the last one.
func (o *outcome) view() json.RawMessage {
	if len(o.values) == 0 {
		return nil
	}
	return o.values[len(o.values)-1].View
}

// changes are the values that differ from the one before, up to a seq.
func (o *outcome) changes(upTo int64) (changes []unit.Value) {
	for _, v := range o.values {
		if n := len(changes); v.Seq <= upTo && (n == 0 || !bytes.Equal(changes[n-1].View, v.View)) {
			changes = append(changes, v)
		}
	}
	return changes
}

// viewAt is the view right after the event at seq, of an outcome of every change.
func (o *outcome) viewAt(seq int64) (view json.RawMessage) {
	for _, v := range o.values {
		if v.Seq > seq {
			break
		}
		view = v.View
	}
	return view
}

// cell is one cell of a drive. seq is where it stands.
type cell struct {
	start
	id  unit.CellID
	out outcome
}

// lastCell: ids far from those of a registry, which counts from 1.
var lastCell atomic.Uint64

func newCell() unit.CellID { return unit.CellID(1<<48 + lastCell.Add(1)) }

// batchEvents is how many events go into one batch: fewer than a host sends, so that a short log has several.
const batchEvents = 64

// batches cuts a stretch up. The cells are opened by the first batch, and their states asked for by the last.
func (w way) batches(cells []*cell, events []event.Event) (all []unit.Batch) {
	ids, last := idsOf(cells), int64(-1)
	var open []unit.Open
	for _, c := range cells {
		open = append(open, unit.Open{Cell: c.id, Key: c.u.Key, State: c.state, Seq: c.seq})
		last = max(last, c.seq)
	}
	size := batchEvents
	if w.each {
		size = 1
	}
	for page := range slices.Chunk(events, size) {
		last = page[len(page)-1].Seq
		all = append(all, unit.Batch{Cells: ids, Events: page, Through: last, Mode: w.mode})
	}
	switch {
	case w.apart:
		all = slices.Insert(all, 0, unit.Batch{Open: open, Through: -1, Mode: unit.LastOnly})
		return append(all, unit.Batch{Cells: ids, States: ids, Through: last, Mode: unit.LastOnly})
	case len(all) == 0:
		all = []unit.Batch{{Cells: ids, Through: last, Mode: w.mode}}
	}
	all[0].Open, all[len(all)-1].States = open, ids
	return all
}

func idsOf(cells []*cell) (ids []unit.CellID) {
	for _, c := range cells {
		ids = append(ids, c.id)
	}
	return ids
}

// driver sends batches to an instance.
type driver struct {
	ctx context.Context
	in  unit.Instance
}

// fold folds events with some units beside each other, from where each starts, and gives the outcomes in their order. The error says that the
// plugin did not answer.
func (d *driver) fold(from []start, events []event.Event, w way) ([]outcome, error) {
	var cells []*cell
	for _, s := range from {
		cells = append(cells, &cell{start: s, id: newCell()})
	}
	if err := d.drive(cells, w.batches(cells, events), w); err != nil {
		return nil, err
	}
	if err := d.drop(cells, w); err != nil {
		return nil, err
	}
	out := make([]outcome, len(cells))
	for i, c := range cells {
		out[i] = c.out
	}
	return out, nil
}

func (d *driver) drive(cells []*cell, batches []unit.Batch, w way) error {
	var ahead []<-chan unit.Reply
	if w.ahead {
		for _, b := range batches {
			ahead = append(ahead, d.submit(b))
		}
	}
	for i, b := range batches {
		var answer <-chan unit.Reply
		if w.ahead {
			answer = ahead[i]
		} else {
			over := func(id unit.CellID) bool {
				return slices.ContainsFunc(cells, func(c *cell) bool { return c.id == id && c.out.over() })
			}
			b.Cells = slices.DeleteFunc(slices.Clone(b.Cells), over)
			b.States = slices.DeleteFunc(slices.Clone(b.States), over)
			if len(b.Open)+len(b.Cells) == 0 {
				return nil // Nobody goes on.
			}
			answer = d.submit(b)
		}
		r := <-answer
		if r.Err != nil {
			return r.Err
		}
		for _, c := range cells {
			if !c.out.over() {
				c.hear(&b, &r)
			}
		}
	}
	return nil
}

// drop forgets the cells. Where it is apart that they are told to go, it is seen that they went, and that to drop what is not there is nothing.
func (d *driver) drop(cells []*cell, w way) error {
	ids := idsOf(cells)
	gone := unit.Batch{Drop: ids, Through: -1, Mode: unit.LastOnly}
	if r := <-d.submit(gone); r.Err != nil {
		return r.Err
	}
	if !w.apart {
		return nil
	}
	through := int64(-1)
	for _, c := range cells {
		through = max(through, c.seq)
	}
	r := <-d.submit(unit.Batch{Cells: ids, States: ids, Through: through, Mode: unit.LastOnly})
	if r.Err != nil {
		return r.Err
	}
	for _, c := range cells {
		if !c.out.over() && !slices.Contains(r.Unknown, c.id) {
			c.out.wrong, c.out.wrongSeq = "a cell that was dropped is not said to be unknown", c.seq
		}
	}
	return (<-d.submit(gone)).Err
}

func (d *driver) submit(b unit.Batch) <-chan unit.Reply {
	got := make(chan unit.Reply, 1)
	d.in.Submit(d.ctx, b, func(r unit.Reply) { got <- r })
	return got
}

// hear takes over what an answer says about the cell, or what is wrong with it.
func (c *cell) hear(b *unit.Batch, r *unit.Reply) {
	opens := slices.ContainsFunc(b.Open, func(o unit.Open) bool { return o.Cell == c.id })
	driven := slices.Contains(b.Cells, c.id)
	if !opens && !driven {
		return
	}
	refuse := func(format string, args ...any) {
		c.out.wrong, c.out.wrongSeq = fmt.Sprintf(format, args...), c.seq
	}
	if slices.Contains(r.Unknown, c.id) {
		refuse("it does not know a cell that was opened")
		return
	}
	// A value may come at the events after last, up to end.
	last, end := c.seq, c.seq
	if opens {
		last--
	}
	if driven {
		end = max(end, b.Through)
	}
	for i := range r.Faults {
		if r.Faults[i].Cell == c.id {
			c.out.fault = &r.Faults[i]
			end = min(end, max(c.out.fault.Seq-1, last))
		}
	}
	var values []unit.Value
	for _, v := range r.Values {
		if v.Cell == c.id {
			values = append(values, v)
		}
	}
	faulted := c.out.fault != nil
	switch {
	case c.u.HostOnly() && len(values) > 0:
		refuse("a value came, and the unit has no view")
		return
	case opens && len(values) == 0 && !faulted && !c.u.HostOnly():
		refuse("no value came of a cell that was opened%s", alone(b))
		return
	case b.Mode == unit.LastOnly && len(values) > 1:
		refuse("%d values came where the last alone was asked for", len(values))
		return
	case b.Mode == unit.EveryChange && opens && len(values) > 0 && values[0].Seq != c.seq && !faulted:
		refuse("the first value of a cell that was opened at seq %d is at seq %d", c.seq, values[0].Seq)
		return
	}
	for i, v := range values {
		if v.Seq <= last || v.Seq > end {
			refuse("a value came at seq %d where only %d to %d could", v.Seq, last+1, end)
			return
		}
		if b.Mode == unit.EveryChange && !(opens && i == 0) &&
			!slices.ContainsFunc(b.Events, func(ev event.Event) bool { return ev.Seq == v.Seq && c.u.Folds(ev.Type) }) {
			refuse("a value came at seq %d, which is no event that the unit folds", v.Seq)
			return
		}
		last = v.Seq
	}
	c.out.values = append(c.out.values, values...)
	if faulted {
		return
	}
	if driven {
		c.seq = max(c.seq, b.Through)
	}
	if !slices.Contains(b.States, c.id) {
		return
	}
	at := slices.IndexFunc(r.States, func(s unit.StateAt) bool { return s.Cell == c.id })
	if at < 0 || r.States[at].Seq != c.seq {
		refuse("no state as of seq %d came, which was asked for%s", c.seq, alone(b))
		return
	}
	c.out.state = r.States[at].State
}

// alone says in an error what the batch was, where that is easily forgotten by who writes a plugin.
func alone(b *unit.Batch) string {
	if len(b.Events) == 0 {
		return "; the batch held no events"
	}
	return ""
}
