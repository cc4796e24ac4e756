package unit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/foldhost/foldhost/event"
)

// Bench holds the cells of an instance and carries out batches on them. It is what Local and a plugin process have in common: the
// one place where batches are turned into calls of a fold. One goroutine at a time may use it.
type Bench struct {
	find  func(key string) *Compiled
	cells map[CellID]*cell
}

// NewBench returns a bench without cells. find gives the unit of a key, with an Inline, or nil where the key is not served; it is
// asked once for each cell that is opened.
func NewBench(find func(key string) *Compiled) *Bench {
	return &Bench{find: find, cells: map[CellID]*cell{}}
}

// cell is one unit's state for one session.
type cell struct {
	id   CellID
	unit *Compiled
	// seq is where the cell stands. state is that of the last event that changed it, at or below seq.
	seq   int64
	state State
	// view is the last value that was sent or, right after opening, that of the state opened from.
	view json.RawMessage
	// faulted cells are not looked at again until they are opened anew, so that it does not matter what state they are in.
	faulted bool

	// The rest is about the batch that is being carried out. opened says that the cell was made in it, at openedAt, and its
	// value not sent yet; changed says that a change, the last one at last, was not shown yet.
	opened   bool
	openedAt int64
	changed  bool
	last     int64
}

// CarryOut does the parts of a batch in the order of its fields. goOn is asked before every step that may take long; its error
// ends the batch, and the cells that the batch names must then be abandoned.
func (b *Bench) CarryOut(batch *Batch, goOn func() error) (r Reply, err error) {
	for _, id := range batch.Drop {
		delete(b.cells, id)
	}
	if err := goOn(); err != nil {
		return Reply{}, err
	}
	for _, o := range batch.Open {
		if err := goOn(); err != nil {
			return Reply{}, err
		}
		b.open(o, &r)
	}
	if batch.Mode == EveryChange {
		b.sendOpened(batch, &r)
	}
	driven := b.known(batch.Cells, &r)
	for i := range batch.Events {
		if err := goOn(); err != nil {
			return Reply{}, err
		}
		for _, c := range driven {
			c.fold(&batch.Events[i], batch.Mode, &r)
		}
	}
	for _, c := range driven {
		c.arrive(batch, &r)
	}
	b.sendOpened(batch, &r)
	for _, c := range b.known(batch.States, &r) {
		if err := goOn(); err != nil {
			return Reply{}, err
		}
		c.encode(&r)
	}
	return r, nil
}

// Abandon drops the cells that a batch names: where they stand is not what the caller thinks.
func (b *Bench) Abandon(batch *Batch) {
	for _, id := range batch.Drop {
		delete(b.cells, id)
	}
	for _, o := range batch.Open {
		delete(b.cells, o.Cell)
	}
	for _, id := range batch.Cells {
		delete(b.cells, id)
	}
}

// known looks cells up, lists those that are not there as unknown, and leaves out the faulted.
func (b *Bench) known(ids []CellID, r *Reply) []*cell {
	cells := make([]*cell, 0, len(ids))
	for _, id := range ids {
		switch c := b.cells[id]; {
		case c == nil:
			if !slices.Contains(r.Unknown, id) {
				r.Unknown = append(r.Unknown, id)
			}
		case !c.faulted:
			cells = append(cells, c)
		}
	}
	return cells
}

// sendOpened sends the values that cells opened in this batch still owe.
func (b *Bench) sendOpened(batch *Batch, r *Reply) {
	for _, o := range batch.Open {
		if c := b.cells[o.Cell]; c != nil && c.opened {
			c.send(c.openedAt, r)
		}
	}
}

// open makes a cell. Where its state or its view cannot be had it is there, faulted, so that batches in flight behind this one
// do not find it unknown.
func (b *Bench) open(o Open, r *Reply) {
	c := &cell{id: o.Cell, seq: o.Seq}
	b.cells[o.Cell] = c
	c.unit = b.find(o.Key)
	if c.unit == nil {
		c.fault(o.Seq, fmt.Errorf("no unit %q is served here", o.Key), r)
		return
	}
	var err error
	if len(o.State) == 0 {
		c.state, err = c.unit.Inline.Init()
	} else {
		c.state, err = c.unit.Inline.Decode(o.State)
	}
	if err == nil && !c.unit.HostOnly() {
		c.view, err = c.unit.Inline.View(c.state)
	}
	if err != nil {
		c.fault(o.Seq, err, r)
		return
	}
	c.opened, c.openedAt = true, o.Seq
}

// fold applies one event.
func (c *cell) fold(ev *event.Event, mode Mode, r *Reply) {
	if c.faulted || ev.Seq <= c.seq || !c.unit.Folds(ev.Type) {
		return
	}
	next, changed, err := c.unit.Inline.Apply(c.state, ev)
	if err != nil {
		if c.changed {
			c.show(r)
		}
		if !c.faulted {
			c.fault(ev.Seq, err, r)
		}
		return
	}
	c.seq = ev.Seq
	if !changed {
		return
	}
	c.state, c.changed, c.last = next, true, ev.Seq
	if mode == EveryChange {
		c.show(r)
	}
}

// show sends the view of the last change, unless it equals the last one byte for byte.
func (c *cell) show(r *Reply) {
	c.changed = false
	if c.unit.HostOnly() {
		return
	}
	view, err := c.unit.Inline.View(c.state)
	if err != nil {
		c.fault(c.last, err, r)
		return
	}
	if bytes.Equal(view, c.view) {
		return
	}
	c.view = view
	c.send(c.last, r)
}

// send adds the cell's value to the reply; it is then no longer owed the one that opening asks for.
func (c *cell) send(seq int64, r *Reply) {
	c.opened = false
	if c.unit.HostOnly() {
		return
	}
	r.Values = append(r.Values, Value{Cell: c.id, Seq: seq, View: c.view})
}

// arrive ends a drive: what LastOnly put off is shown, and the cell stands at the end of the batch.
func (c *cell) arrive(batch *Batch, r *Reply) {
	if c.changed {
		c.show(r)
	}
	if c.faulted {
		return
	}
	c.seq = max(c.seq, batch.Through)
}

func (c *cell) encode(r *Reply) {
	state, err := c.unit.Inline.Encode(c.state)
	if err != nil {
		c.fault(c.seq, err, r)
		return
	}
	r.States = append(r.States, StateAt{Cell: c.id, Seq: c.seq, State: state})
}

func (c *cell) fault(seq int64, err error, r *Reply) {
	c.faulted = true
	r.Faults = append(r.Faults, Fault{Cell: c.id, Seq: seq, Message: err.Error()})
}
