package fakeplugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// Process is one generation of a plugin: a unit.Instance that carries out its batches in order on one goroutine.
type Process struct {
	plugin *Plugin
	gen    int

	mu       sync.Mutex
	ready    *sync.Cond
	queue    []*call
	inFlight map[*call]struct{}
	gone     *unit.GoneError
	dead     chan struct{}

	// cells belongs to the goroutine of run; open mirrors its size for Cells, under mu.
	cells map[unit.CellID]*cell
	open  int
}

// errDead ends the work on a batch in a process that is dead: everything in flight is answered by then.
var errDead = errors.New("fakeplugin: dead")

// Gen counts the processes of a plugin from 1.
func (p *Process) Gen() int { return p.gen }

// Alive says whether the process has not crashed.
func (p *Process) Alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone == nil
}

// Cells is how many cells the process holds.
func (p *Process) Cells() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// Submit implements unit.Instance.
func (p *Process) Submit(ctx context.Context, b unit.Batch, done func(unit.Reply)) {
	p.plugin.received(p.gen, b)
	c := &call{process: p, ctx: ctx, batch: b, done: done}
	p.mu.Lock()
	if gone := p.gone; gone != nil {
		p.mu.Unlock()
		p.plugin.wg.Go(func() { c.answer(unit.Reply{Err: gone}) })
		return
	}
	if p.inFlight == nil {
		p.inFlight = map[*call]struct{}{}
	}
	p.inFlight[c] = struct{}{}
	p.queue = append(p.queue, c)
	p.ready.Signal()
	p.mu.Unlock()
	c.setStop(context.AfterFunc(ctx, c.late))
}

// Crash ends the process; more than once is harmless.
func (p *Process) Crash(reason string) {
	p.mu.Lock()
	if p.gone != nil {
		p.mu.Unlock()
		return
	}
	gone := &unit.GoneError{Reason: reason}
	p.gone = gone
	close(p.dead)
	var calls []*call
	for c := range p.inFlight {
		calls = append(calls, c)
	}
	p.inFlight, p.queue, p.open = nil, nil, 0
	p.ready.Broadcast()
	p.mu.Unlock()

	pl := p.plugin
	pl.mu.Lock()
	pl.counts.Deaths++
	onDeath := pl.onDeath
	pl.mu.Unlock()
	// The answers come from a goroutine of their own: Crash may be called by somebody who holds a lock that done wants.
	pl.wg.Go(func() {
		for _, c := range calls {
			c.answer(unit.Reply{Err: gone})
		}
		if onDeath != nil {
			onDeath(p)
		}
	})
}

func (p *Process) run() {
	for {
		p.mu.Lock()
		for len(p.queue) == 0 && p.gone == nil {
			p.ready.Wait()
		}
		if p.gone != nil {
			p.mu.Unlock()
			return
		}
		c := p.queue[0]
		p.queue = p.queue[1:]
		p.mu.Unlock()
		p.carryOut(c)
	}
}

func (p *Process) carryOut(c *call) {
	b := &c.batch
	if f := p.plugin.fault(Site{Place: AtBatch, Gen: p.gen, Batch: b}); f != nil {
		if f.stop == refuse {
			c.answer(unit.Reply{Err: f.cause})
			return
		}
		if p.stop(c, f) != nil {
			return
		}
	}
	w := work{process: p, call: c, batch: b, opened: map[unit.CellID]bool{}}
	if w.do() != nil {
		return
	}
	if f := p.plugin.fault(Site{Place: AtReply, Gen: p.gen, Batch: b}); f != nil {
		if p.stop(c, f) != nil {
			return
		}
		if f.reply != nil {
			f.reply(c, w.reply)
			return
		}
	}
	c.answer(w.reply)
}

// stop carries out what a fault does to a process or a cell. errDead: the process is gone.
func (p *Process) stop(c *call, f *Fault) error {
	switch f.stop {
	case crash:
		p.Crash("crashed by a fault")
		return errDead
	case hang:
		<-p.dead
		return errDead
	case stall:
		select {
		case <-c.ctx.Done():
			c.late()
		case <-p.dead:
			return errDead
		}
	}
	if f.wait != nil {
		select {
		case <-f.wait:
		case <-p.dead:
			return errDead
		}
	}
	return nil
}

// call is one batch in flight.
type call struct {
	process *Process
	ctx     context.Context
	batch   unit.Batch
	done    func(unit.Reply)

	mu       sync.Mutex
	answered bool
	stop     func() bool
}

func (c *call) setStop(stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stop = stop
	if c.answered {
		stop()
	}
}

// late answers that the context ended.
func (c *call) late() {
	c.answer(unit.Reply{Err: &unit.DeadlineError{Reason: context.Cause(c.ctx).Error()}})
}

// answer calls done unless that was done already.
func (c *call) answer(r unit.Reply) bool {
	c.mu.Lock()
	if c.answered {
		c.mu.Unlock()
		return false
	}
	c.answered = true
	if c.stop != nil {
		c.stop()
	}
	c.mu.Unlock()
	c.process.mu.Lock()
	delete(c.process.inFlight, c)
	c.process.mu.Unlock()
	c.answerAgain(r)
	return true
}

func (c *call) answerAgain(r unit.Reply) {
	c.process.plugin.count(func(n *Counts) { n.Answers++ })
	c.done(r)
}

// cell is one cell of one process.
type cell struct {
	def   unit.Definition
	state unit.State
	seq   int64
	view  json.RawMessage
	// changed is the seq of the last event that changed the state.
	changed int64
	fault   *unit.Fault
}

// work carries out one batch.
type work struct {
	process *Process
	call    *call
	batch   *unit.Batch
	opened  map[unit.CellID]bool
	reply   unit.Reply
	unknown map[unit.CellID]bool
}

func (w *work) do() error {
	p, b := w.process, w.batch
	for _, id := range b.Drop {
		delete(p.cells, id)
	}
	for _, o := range b.Open {
		if err := w.open(o); err != nil {
			return err
		}
	}
	p.mu.Lock()
	if p.gone == nil {
		p.open = len(p.cells)
	}
	p.mu.Unlock()
	for i := range b.Events {
		for _, id := range b.Cells {
			if err := w.apply(id, &b.Events[i]); err != nil {
				return err
			}
		}
	}
	for _, id := range b.Cells {
		c := w.cell(id)
		if c == nil || c.fault != nil {
			continue
		}
		if b.Mode == unit.LastOnly {
			w.value(id, c, c.changed, w.opened[id])
		}
		if c.fault == nil {
			c.seq = max(c.seq, b.Through)
		}
	}
	for _, o := range b.Open {
		// A cell that was opened and not driven owes its value too.
		if c := w.process.cells[o.Cell]; b.Mode == unit.LastOnly && c != nil && c.fault == nil && c.view == nil {
			w.value(o.Cell, c, o.Seq, true)
		}
	}
	for _, id := range b.States {
		if c := w.cell(id); c != nil && c.fault == nil {
			raw, err := guard(func() (json.RawMessage, error) { return c.def.Inline.Encode(c.state) })
			if err != nil {
				w.failed(id, c, c.seq, err)
				continue
			}
			w.reply.States = append(w.reply.States, unit.StateAt{Cell: id, Seq: c.seq, State: raw})
		}
	}
	return nil
}

func (w *work) open(o unit.Open) error {
	c := &cell{def: w.process.plugin.defs[o.Key], seq: o.Seq, changed: o.Seq}
	w.process.cells[o.Cell] = c
	w.opened[o.Cell] = true
	if c.def.Inline == nil {
		w.failed(o.Cell, c, o.Seq, fmt.Errorf("no unit %q here", o.Key))
		return nil
	}
	var cause error
	if f := w.process.plugin.fault(Site{Place: AtOpen, Gen: w.process.gen, Batch: w.batch, Cell: o.Cell, Key: o.Key}); f != nil {
		if err := w.process.stop(w.call, f); err != nil {
			return err
		}
		switch f.stop {
		case unknown:
			delete(w.process.cells, o.Cell)
			return nil
		case fail:
			cause = f.cause
		case panics:
			cause = errors.New("panic: made to")
		}
	}
	if cause == nil {
		c.state, cause = guard(func() (unit.State, error) {
			if o.State == nil {
				return c.def.Inline.Init()
			}
			return c.def.Inline.Decode(o.State)
		})
	}
	if cause != nil {
		w.failed(o.Cell, c, o.Seq, cause)
		return nil
	}
	if w.batch.Mode == unit.EveryChange {
		w.value(o.Cell, c, o.Seq, true)
	}
	return nil
}

func (w *work) apply(id unit.CellID, ev *event.Event) error {
	c := w.cell(id)
	if c == nil || c.fault != nil || ev.Seq <= c.seq || !folds(c.def, ev.Type) {
		return nil
	}
	var cause error
	if f := w.process.plugin.fault(Site{Place: AtEvent, Gen: w.process.gen, Batch: w.batch, Cell: id, Key: c.def.Key, Event: ev}); f != nil {
		if err := w.process.stop(w.call, f); err != nil {
			return err
		}
		switch f.stop {
		case unknown:
			delete(w.process.cells, id)
			w.forget(id)
			return nil
		case fail:
			cause = f.cause
		case panics:
			cause = errors.New("panic: made to")
		}
	}
	w.process.plugin.count(func(n *Counts) { n.Applied++ })
	changed := false
	if cause == nil {
		var next unit.State
		next, cause = guard(func() (s unit.State, err error) {
			s, changed, err = c.def.Inline.Apply(c.state, ev)
			return s, err
		})
		if cause == nil && changed {
			c.state, c.changed = next, ev.Seq
		}
	}
	if cause != nil {
		c.seq = ev.Seq - 1
		w.failed(id, c, ev.Seq, cause)
		return nil
	}
	c.seq = ev.Seq
	if changed && w.batch.Mode == unit.EveryChange {
		w.value(id, c, ev.Seq, false)
	}
	return nil
}

// value adds the view as of seq unless it is the last one again.
func (w *work) value(id unit.CellID, c *cell, seq int64, always bool) {
	if c.def.ViewSchema == nil {
		return
	}
	view, err := guard(func() (json.RawMessage, error) { return c.def.Inline.View(c.state) })
	if err != nil {
		w.failed(id, c, max(seq, c.seq), err)
		return
	}
	if f := w.process.plugin.fault(Site{Place: atView, Gen: w.process.gen, Batch: w.batch, Cell: id, Key: c.def.Key}); f != nil && f.view != nil {
		view = f.view
	}
	if !always && bytes.Equal(view, c.view) {
		return
	}
	c.view = view
	w.reply.Values = append(w.reply.Values, unit.Value{Cell: id, Seq: seq, View: view})
}

func (w *work) cell(id unit.CellID) *cell {
	c := w.process.cells[id]
	if c == nil {
		w.forget(id)
		return nil
	}
	if c.fault != nil {
		w.tell(*c.fault)
	}
	return c
}

func (w *work) forget(id unit.CellID) {
	if w.unknown == nil {
		w.unknown = map[unit.CellID]bool{}
	}
	if !w.unknown[id] {
		w.unknown[id] = true
		w.reply.Unknown = append(w.reply.Unknown, id)
	}
}

func (w *work) failed(id unit.CellID, c *cell, seq int64, err error) {
	c.fault = &unit.Fault{Cell: id, Seq: seq, Message: err.Error()}
	w.tell(*c.fault)
}

func (w *work) tell(f unit.Fault) {
	for i := range w.reply.Faults {
		if w.reply.Faults[i].Cell == f.Cell {
			return
		}
	}
	w.reply.Faults = append(w.reply.Faults, f)
}

func folds(d unit.Definition, typ string) bool {
	if d.Events == nil {
		return true
	}
	for _, t := range d.Events {
		if t == typ {
			return true
		}
	}
	return false
}

// guard contains a panic of the unit's code.
func guard[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return f()
}
