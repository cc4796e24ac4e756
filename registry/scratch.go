package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
	"golang.org/x/sync/errgroup"
)

// scratch folds some bindings over one log in cells that nobody else sees: time travel, replay and cold reads. It works
// synchronously on the goroutine of its one user and starts none. Cells of one instance share their batches, and cells of several wait for
// the slowest; see Registry.apart. What goes wrong ends the one cell that it belongs to and leaves the live cells alone.
//
// It is used in this order: newScratch, seed, openAll, advance and fold as needed, value and states, close.
type scratch struct {
	r   *Registry
	log Log
	// batchEvents is how many events a batch may have at present.
	batchEvents int
	// cells are sorted by key.
	cells []*scratchCell
	// remotes are the processes that have cells here, those of suspects last.
	remotes []*scratchRemote
	// encoded: the states of the cells were asked for.
	encoded bool
}

// scratchValue is a changed value right after an event.
type scratchValue struct {
	cell *scratchCell
	seq  int64
	view json.RawMessage
}

// newScratch makes a cell for each binding. Bindings that nobody serves at present are down from the start. The bindings must
// be sorted by key.
func newScratch(r *Registry, log Log, bindings []*binding) *scratch {
	s := &scratch{r: r, log: log, batchEvents: r.o.BatchEvents}
	var suspects []*scratchRemote
	for _, b := range bindings {
		c := &scratchCell{binding: b, rev: b.revision(), seedSeq: -1, seq: -1}
		s.cells = append(s.cells, c)
		if b.inline() {
			continue
		}
		p, down := b.forScratch()
		if down != nil {
			c.down = &Unavailable{Code: down.Code, Seq: -1, Message: down.Message}
			continue
		}
		c.id = r.nextCell()
		if doubt, ok := r.poison.look(s.poisonKey(c)); ok {
			c.doubt, c.suspect = doubt, doubt.fault == nil && doubt.suspect
			c.bound(doubt.fault)
		}
		if c.suspect {
			c.remote = &scratchRemote{process: p, careful: true}
			suspects = append(suspects, c.remote)
		} else {
			c.remote = s.remote(p)
		}
		c.remote.cells = append(c.remote.cells, c)
	}
	s.remotes = append(s.remotes, suspects...)
	return s
}

func (s *scratch) remote(p *process) *scratchRemote {
	for _, r := range s.remotes {
		if r.process == p {
			return r
		}
	}
	r := &scratchRemote{process: p}
	s.remotes = append(s.remotes, r)
	return r
}

func (s *scratch) poisonKey(c *scratchCell) poisonKey {
	return poisonKey{session: s.log.ID(), incarnation: s.log.Incarnation(), b: c.binding}
}

// apart runs f over scratches that need not wait for each other: one of the in-process units, and one for each process. The first
// error ends all; apart waits for all. bindings must be sorted by key.
func (r *Registry) apart(ctx context.Context, log Log, bindings []*binding, f func(ctx context.Context, s *scratch) error) error {
	groups := map[*process][]*binding{}
	for _, b := range bindings {
		p, _ := b.process()
		groups[p] = append(groups[p], b)
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, bs := range groups {
		g.Go(func() error {
			s := newScratch(r, log, bs)
			defer s.close()
			return f(ctx, s)
		})
	}
	return g.Wait()
}

// openAll makes every cell that is not open yet. A cell whose seed does not open (its state does not decode, or has no view) is
// given to refused, which says whether to try again from init; init that does not open is a fault.
func (s *scratch) openAll(ctx context.Context, refused func(c *scratchCell, message string) (again bool)) error {
	for _, c := range s.cells {
		if !c.open && c.down == nil && c.limit != nil && c.limit.FailedAt <= c.seedSeq {
			c.down = c.limit
		}
	}
	for {
		again := false
		sent, err := s.send(ctx, func(r *scratchRemote) (b unit.Batch, cells []*scratchCell) {
			b.Mode, b.Through = unit.LastOnly, -1
			for _, c := range r.cells {
				if !c.open && c.down == nil {
					b.Open = append(b.Open, unit.Open{Cell: c.id, Key: c.Key, State: c.seedState, Seq: c.seedSeq})
					cells = append(cells, c)
				}
			}
			return b, cells
		})
		if err != nil {
			return err
		}
		settle := func(c *scratchCell, message string) {
			if c.seedState != nil && refused(c, message) {
				c.unseed()
				again = true
				return
			}
			c.fail(c.seedSeq, message)
		}
		for _, c := range s.cells {
			if !c.inline() || c.open || c.down != nil {
				continue
			}
			if message := c.openInline(); message != "" {
				settle(c, message)
			}
		}
		for _, b := range sent {
			if err := b.settle(ctx); err != nil {
				return err
			}
			for _, c := range b.cells {
				if b.reply.Err != nil {
					s.failBy(c, b)
					continue
				}
				if message := c.opened(*b.reply); message != "" {
					settle(c, message)
				}
			}
		}
		if !again {
			return ctx.Err()
		}
	}
}

// fold drives the cells that stand below through over events, which hold everything they fold between where they stand and
// through. In EveryChange mode it gives the changed values by seq, then key. Cells that their instance has forgotten are closed and stand at
// their seed again; lost says that there are any.
func (s *scratch) fold(ctx context.Context, events []event.Event, through int64, mode unit.Mode) (values []scratchValue, lost bool, err error) {
	sent, err := s.send(ctx, func(r *scratchRemote) (unit.Batch, []*scratchCell) {
		b := unit.Batch{Through: through, Mode: mode}
		var cells []*scratchCell
		for _, c := range r.cells {
			if c.drivable(through) && slices.ContainsFunc(events, c.wants) {
				b.Cells = append(b.Cells, c.id)
				cells = append(cells, c)
			}
		}
		for i := range events {
			if slices.ContainsFunc(cells, func(c *scratchCell) bool { return c.wants(events[i]) }) {
				b.Events = append(b.Events, events[i])
			}
		}
		return b, cells
	})
	if err != nil {
		return nil, false, err
	}
	for _, c := range s.cells {
		if c.inline() && c.drivable(through) {
			wanted, began := c.wanted(events), time.Now()
			values = c.foldInline(events, through, mode, values)
			c.counts.batch(wanted, time.Since(began))
		}
	}
	for _, b := range sent {
		if err := b.settle(ctx); err != nil {
			return nil, false, err
		}
		for _, c := range b.cells {
			if b.reply.Err != nil {
				s.failBy(c, b)
				continue
			}
			c.counts.batch(c.wanted(b.Events), time.Duration(b.took.Load()))
			values = c.folded(b.Batch, *b.reply, values)
		}
	}
	for _, c := range s.cells {
		if c.drivable(through) {
			c.seq = through
		}
		lost = lost || c.down == nil && !c.open
	}
	slices.SortStableFunc(values, func(a, b scratchValue) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.cell.Key, b.cell.Key))
	})
	return values, lost, ctx.Err()
}

// advance drives every cell silently to the event at to, from wherever each stands, over pages of the log that hold only the
// types of the cells that need them. Only errors of the log and of ctx end it early.
func (s *scratch) advance(ctx context.Context, to int64) error {
	for {
		from, until, types := s.stretch(to)
		if from > to {
			return ctx.Err()
		}
		if types != nil && len(types) == 0 {
			if _, _, err := s.fold(ctx, nil, until, unit.LastOnly); err != nil {
				return err
			}
			continue
		}
		events, next, err := s.log.ReadPage(ctx, from, until+1, types)
		if err != nil {
			return err
		}
		if next <= from {
			return stuck(s.log, from, next)
		}
		for through := min(next-1, until); ; {
			batch, rest := s.split(events)
			upTo := through
			if len(rest) > 0 {
				upTo = batch[len(batch)-1].Seq
			}
			_, lost, err := s.fold(ctx, batch, upTo, unit.LastOnly)
			if err != nil {
				return err
			}
			if events = rest; len(events) == 0 || lost {
				break
			}
		}
		if err := s.reopen(ctx); err != nil {
			return err
		}
	}
}

// stuck is the error for a log that does not get on: better than to ask it for ever.
func stuck(log Log, from, next int64) error {
	return fmt.Errorf("registry: the log of session %q gave a page from seq %d that ends at %d; its store is at fault", log.ID(), from, next)
}

// stretch gives the next events to read: from behind the cells that are furthest back, up to where the next cell joins them or to,
// of the types that those at the back fold. from > to says that all have arrived.
func (s *scratch) stretch(to int64) (from, until int64, types []string) {
	s.yield(to)
	from, until = to+1, s.halt(to)
	for _, c := range s.cells {
		if c.drivable(to) {
			from = min(from, c.seq+1)
		}
	}
	var back []*binding
	for _, c := range s.cells {
		switch {
		case !c.drivable(to):
		case c.seq+1 == from:
			back = append(back, c.binding)
		default:
			until = min(until, c.seq)
		}
	}
	return from, until, foldedTypes(back)
}

// yield makes cells wait that have further to go than nearby, while there are others that have not.
func (s *scratch) yield(to int64) {
	near := false
	for _, c := range s.cells {
		c.waits = false
		// One that stands where its fault begins goes nowhere.
		near = near || c.drivable(to) && to-c.seq <= nearby && (c.limit == nil || c.seq+1 < c.limit.FailedAt)
	}
	for _, c := range s.cells {
		c.waits = near && to-c.seq > nearby
	}
}

// halt ends the cells that stand where a known fault begins, and gives how far the others can be driven before the next such place.
func (s *scratch) halt(until int64) int64 {
	for _, c := range s.cells {
		switch {
		case c.limit == nil || !c.drivable(until):
		case c.seq+1 >= c.limit.FailedAt:
			c.down = c.limit
		default:
			until = min(until, c.limit.FailedAt-1)
		}
	}
	return until
}

// reopen opens forgotten cells again, from their seeds.
func (s *scratch) reopen(ctx context.Context) error {
	return s.openAll(ctx, func(*scratchCell, string) bool { return false })
}

// foldedTypes is the union of the types that the bindings fold: nil is every type, empty and not nil is none.
func foldedTypes(bindings []*binding) []string {
	types := []string{}
	for _, b := range bindings {
		if b.Events == nil {
			return nil
		}
		types = append(types, b.Events...)
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// value gives the cell's value as it may leave the host, or nil with the cell down. Host-only cells have none.
func (s *scratch) value(c *scratchCell) json.RawMessage {
	if c.down != nil || c.HostOnly() || !c.look() {
		return nil
	}
	view, err := c.AcceptView(c.view, s.r.o.MaxViewBytes)
	if err != nil {
		c.fail(c.viewSeq, err.Error())
		return nil
	}
	return view
}

// states gives the encoded states of the cells that are up, all at the seq that they stand at. A state over the limit is a
// fault; one against its schema could never be used again and is left out.
func (s *scratch) states(ctx context.Context) (map[*scratchCell]json.RawMessage, error) {
	s.encoded = true
	states := make(map[*scratchCell]json.RawMessage, len(s.cells))
	sent, err := s.send(ctx, func(r *scratchRemote) (b unit.Batch, cells []*scratchCell) {
		b.Mode = unit.LastOnly
		for _, c := range r.cells {
			if c.down == nil && c.open {
				b.Cells = append(b.Cells, c.id)
				b.Through = max(b.Through, c.seq)
				cells = append(cells, c)
			}
		}
		b.States = b.Cells
		return b, cells
	})
	if err != nil {
		return nil, err
	}
	keep := func(c *scratchCell, raw json.RawMessage) {
		state, err := c.AcceptState(raw, s.r.o.MaxStateBytes)
		var wrong *unit.ValueError
		switch {
		case err == nil:
			states[c] = state
		case errors.As(err, &wrong) && wrong.Limit > 0:
			c.fail(c.seq, err.Error())
		}
	}
	for _, c := range s.cells {
		if !c.inline() || c.down != nil || !c.open {
			continue
		}
		raw, err := c.Inline.Encode(c.state)
		if err != nil {
			c.fail(c.seq, err.Error())
			continue
		}
		keep(c, raw)
	}
	for _, b := range sent {
		if err := b.settle(ctx); err != nil {
			return nil, err
		}
		reply := *b.reply
		for _, c := range b.cells {
			fault := faultOf(reply, c.id)
			i := slices.IndexFunc(reply.States, func(st unit.StateAt) bool { return st.Cell == c.id })
			switch {
			case reply.Err != nil:
				s.failBy(c, b)
			case fault != nil:
				c.fail(c.seq, fault.Message)
			case i < 0 || reply.States[i].Seq != b.Through:
				c.breach(fmt.Sprintf("no state at seq %d, which was asked for", b.Through))
			default:
				keep(c, reply.States[i].State)
			}
		}
	}
	return states, ctx.Err()
}

// failBy ends a cell by an error of its whole batch. When that means that the process died, the cell is a suspect from now on, or a convict.
func (s *scratch) failBy(c *scratchCell, b *scratchBatch) {
	err := b.reply.Err
	code, died := deadly(err)
	if !died {
		c.lag(Behind, err.Error())
		return
	}
	c.lag(code, err.Error())
	if err == error(errNotTaken) {
		return
	}
	f := poisonFlight{from: c.seq + 1, to: b.Through, step: stepEvent, state: len(b.States) > 0, careful: b.remote.careful && len(b.Events) <= 1, reason: err.Error()}
	switch {
	case !c.open:
		f.from, f.to, f.step, f.seeded = c.seedSeq, c.seedSeq, stepOpen, c.seedState != nil
	case len(b.Events) == 0:
		f.from, f.to, f.step = c.seq, c.seq, stepState
	case len(b.Events) == 1:
		f.from, f.to = b.Events[0].Seq, b.Events[0].Seq
	}
	key := s.poisonKey(c)
	fault := s.r.poison.death(key, f, b.alone())
	if fault == nil {
		return
	}
	c.down = fault
	c.counts.faults.Add(1)
	s.r.o.Logger.Warn("a unit failed and is not folded further in this session", "session", key.session, "plugin", c.by.Plugin, "unit", c.Key, "seq", fault.FailedAt, "poison", true, "reason", fault.Message)
	if told := s.r.o.Poisoned; told != nil {
		s.r.spawn(func() { told(c.by, key.session, c.Key, fault.FailedAt) })
	}
}

// closeGrace is how long a process is given to drop the cells of a scratch that is done. Nobody waits for it.
const closeGrace = 10 * time.Second

// close drops the cells at their processes, also after errors and when the caller's context has ended. It does not wait. Suspects that got
// through what they were suspected of are cleared.
func (s *scratch) close() {
	for _, c := range s.cells {
		if c.suspect && c.open && c.down == nil && c.seq >= c.doubt.to && (s.encoded || !c.doubt.state) {
			s.r.poison.forget(s.poisonKey(c))
		}
	}
	for _, r := range s.remotes {
		b := unit.Batch{Mode: unit.LastOnly, Through: -1}
		for _, c := range r.cells {
			b.Drop = append(b.Drop, c.id)
		}
		ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
		r.process.submitApart(ctx, b, func(unit.Reply) { cancel() })
	}
	s.cells, s.remotes = nil, nil
}
