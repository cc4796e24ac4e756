package serve

import (
	"context"
	"errors"
	"sync"

	"github.com/foldhost/foldhost/unit"
)

// folds carries out the batches of one stream. Batches for the same cell are carried out in the order in which they come; others side by
// side, so that a slow fold delays its own session.
//
// The wire knows cells, not sessions. Cells that are opened together, or beside cells that are there, form a group: one session of
// the plugin, as a rule. A group has a bench and a queue, and one goroutine while its queue is not empty. A batch whose cells are
// in several groups is cut along them, and its answers are put together again.
//
// mu guards groups and the queues and running flags in them. A bench belongs to the goroutine of its group.
type folds struct {
	ctx  context.Context
	find func(key string) *unit.Compiled
	// answer takes the reply to each batch, from any goroutine.
	answer func(job, unit.Reply)
	work   sync.WaitGroup

	mu     sync.Mutex
	groups map[unit.CellID]*group
}

// job names a batch on the wire. counted says that a drain waits for its answer.
type job struct {
	number, generation uint64
	counted            bool
}

type group struct {
	bench   *unit.Bench
	queue   []part
	running bool
}

// part is what one group has to do for a batch.
type part struct {
	batch unit.Batch
	whole *whole
}

// whole puts the parts of a batch together. mu guards reply and left.
type whole struct {
	job   job
	mu    sync.Mutex
	reply unit.Reply
	left  int
}

func newFolds(ctx context.Context, find func(string) *unit.Compiled, answer func(job, unit.Reply)) *folds {
	return &folds{ctx: ctx, find: find, answer: answer, groups: map[unit.CellID]*group{}}
}

// submit takes a batch and returns at once; answer is called when it is carried out. An err says that it is refused: the cells that it
// names are dropped in their turn. It must not be called concurrently, nor after wait.
func (f *folds) submit(j job, b unit.Batch, err error) {
	if err != nil {
		b = unit.Batch{Drop: named(&b)}
	}
	w := &whole{job: j, reply: unit.Reply{Err: err}}
	f.mu.Lock()
	defer f.mu.Unlock()
	if g := f.only(&b); g != nil {
		w.left = 1
		f.settle(g, &b)
		f.enqueue(g, part{b, w})
		return
	}
	parts := f.cut(&b)
	w.left = len(parts)
	for g, p := range parts {
		f.settle(g, p)
	}
	for g, p := range parts {
		f.enqueue(g, part{*p, w})
	}
}

// wait waits for everything that was submitted.
func (f *folds) wait() { f.work.Wait() }

// only is the one group that a batch is for, which is nearly always so; a new one where no cell of it is there.
func (f *folds) only(b *unit.Batch) *group {
	var one *group
	fits := func(id unit.CellID) bool {
		g := f.groups[id]
		if one == nil {
			one = g
		}
		return g == nil || g == one
	}
	for _, id := range b.Drop {
		if !fits(id) {
			return nil
		}
	}
	for i := range b.Open {
		if !fits(b.Open[i].Cell) {
			return nil
		}
	}
	for _, ids := range [][]unit.CellID{b.Cells, b.States} {
		for _, id := range ids {
			if !fits(id) {
				return nil
			}
		}
	}
	if one == nil {
		one = &group{bench: unit.NewBench(f.find)}
	}
	return one
}

// cut gives each group its part of a batch. Cells that are in none go to the group of the first cell that is driven, or opened again. One
// that is dropped and opened again stays where it was.
func (f *folds) cut(b *unit.Batch) map[*group]*unit.Batch {
	parts := map[*group]*unit.Batch{}
	of := func(g *group) *unit.Batch {
		p := parts[g]
		if p == nil {
			p = &unit.Batch{Events: b.Events, Through: b.Through, Mode: b.Mode}
			parts[g] = p
		}
		return p
	}
	for _, id := range b.Drop {
		if g := f.groups[id]; g != nil {
			p := of(g)
			p.Drop = append(p.Drop, id)
		}
	}
	var home *group
	at := func(id unit.CellID) *group {
		if g := f.groups[id]; g != nil {
			return g
		}
		return home
	}
	for _, ids := range [][]unit.CellID{b.Cells, b.States, opened(b)} {
		for _, id := range ids {
			if home == nil {
				home = at(id)
			}
		}
	}
	if home == nil {
		home = &group{bench: unit.NewBench(f.find)}
	}
	for _, o := range b.Open {
		p := of(at(o.Cell))
		p.Open = append(p.Open, o)
	}
	for _, id := range b.Cells {
		p := of(at(id))
		p.Cells = append(p.Cells, id)
	}
	for _, id := range b.States {
		p := of(at(id))
		p.States = append(p.States, id)
	}
	return parts
}

// settle notes which cells are in the group once the part is carried out. Later batches queue behind it.
func (f *folds) settle(g *group, b *unit.Batch) {
	for _, id := range b.Drop {
		if f.groups[id] == g {
			delete(f.groups, id)
		}
	}
	for i := range b.Open {
		f.groups[b.Open[i].Cell] = g
	}
}

func (f *folds) enqueue(g *group, p part) {
	g.queue = append(g.queue, p)
	if !g.running {
		g.running = true
		f.work.Go(func() { f.run(g) })
	}
}

// run works a group's queue off.
func (f *folds) run(g *group) {
	for {
		f.mu.Lock()
		if len(g.queue) == 0 {
			g.queue, g.running = nil, false
			f.mu.Unlock()
			return
		}
		p := g.queue[0]
		g.queue[0] = part{}
		g.queue = g.queue[1:]
		f.mu.Unlock()
		f.carryOut(g, p)
	}
}

// errEnded: the stream is over, and nobody reads what is said about it.
var errEnded = errors.New("the stream has ended")

func (f *folds) carryOut(g *group, p part) {
	reply, err := g.bench.CarryOut(&p.batch, func() error {
		if f.ctx.Err() != nil {
			return errEnded
		}
		return nil
	})
	if err != nil {
		reply = unit.Reply{Err: err} // Nothing that comes later is folded either.
	}
	if reply, done := p.whole.add(reply); done {
		f.answer(p.whole.job, reply)
	}
}

// add takes the reply to a part; with the last one it gives the whole.
func (w *whole) add(r unit.Reply) (reply unit.Reply, done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left--
	switch {
	case w.reply.Err != nil:
	case r.Err != nil:
		w.reply = unit.Reply{Err: r.Err}
	case w.reply.Values == nil && w.reply.States == nil && w.reply.Faults == nil && w.reply.Unknown == nil:
		w.reply = r
	default:
		w.reply.Values = append(w.reply.Values, r.Values...)
		w.reply.States = append(w.reply.States, r.States...)
		w.reply.Faults = append(w.reply.Faults, r.Faults...)
		w.reply.Unknown = append(w.reply.Unknown, r.Unknown...)
	}
	return w.reply, w.left == 0
}

func opened(b *unit.Batch) []unit.CellID {
	ids := make([]unit.CellID, len(b.Open))
	for i := range b.Open {
		ids[i] = b.Open[i].Cell
	}
	return ids
}

// named are all cells that a batch names.
func named(b *unit.Batch) []unit.CellID {
	ids := append([]unit.CellID(nil), b.Drop...)
	ids = append(ids, opened(b)...)
	ids = append(ids, b.Cells...)
	return append(ids, b.States...)
}
