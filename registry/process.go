package registry

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/foldhost/foldhost/unit"
)

// process is one life of an instance: what a registrant's definitions are served by until it dies or another is named. It knows what is in
// flight, so that when it dies everybody is known who may have killed it, and so that what must run alone does.
//
// mu is a leaf and guards what follows it.
type process struct {
	r  *Registry
	by Registrant
	in unit.Instance
	// bindings that it serves; Registry.mu guards it.
	bindings int
	// gone is set once, by dying.
	gone  atomic.Pointer[Unavailable]
	dying sync.Once

	mu      sync.Mutex
	flights map[*flight]struct{}
	// others are batches in flight of cells that are not live: looks into the past.
	others int
	// entries counts the batches that were ever let in.
	entries uint64
	// suspects are cells that were in flight when a process died. While there is one, only flights that are careful are let in, and
	// each of them alone.
	suspects map[*cell]struct{}
	// waiting are lanes that were not let in.
	waiting map[*lane]struct{}
}

func newProcess(r *Registry, by Registrant, in unit.Instance) *process {
	return &process{r: r, by: by, in: in, flights: map[*flight]struct{}{}, suspects: map[*cell]struct{}{}, waiting: map[*lane]struct{}{}}
}

// procKey is what makes definitions share a process.
type procKey struct {
	by Registrant
	in unit.Instance
}

// processLocked gives the definitions of one registrant that name the same instance one process, for one more binding. An instance that
// died and is named again is another process, and one that cannot be compared is always another. Registry.mu is held.
func (r *Registry) processLocked(by Registrant, in unit.Instance) *process {
	p := newProcess(r, by, in)
	if reflect.ValueOf(in).Comparable() {
		k := procKey{by, in}
		if have := r.procs[k]; have != nil && have.death() == nil {
			p = have
		}
		r.procs[k] = p
	}
	p.bindings++
	return p
}

// unbindLocked is one binding less. Registry.mu is held.
func (r *Registry) unbindLocked(p *process) {
	if p == nil {
		return
	}
	if p.bindings--; p.bindings > 0 || !reflect.ValueOf(p.in).Comparable() {
		return
	}
	if k := (procKey{p.by, p.in}); r.procs[k] == p {
		delete(r.procs, k)
	}
}

// death says why the process cannot be asked any more; nil while it lives.
func (p *process) death() *Unavailable { return p.gone.Load() }

// isolating says that suspects are being tried.
func (p *process) isolating() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.suspects) > 0
}

// enter lets a flight in, or remembers that its lane waits.
func (p *process) enter(f *flight) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone.Load() != nil {
		return false
	}
	if len(p.suspects) > 0 && (!f.careful() || len(p.flights) > 0 || p.others > 0) {
		p.waiting[f.lane] = struct{}{}
		return false
	}
	p.flights[f] = struct{}{}
	p.entries++
	return true
}

// await remembers that a lane has work that is not let in now.
func (p *process) await(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting[l] = struct{}{}
}

// leave takes a flight out. ok is false when it was lost with the process before.
func (p *process) leave(f *flight) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok = p.flights[f]
	delete(p.flights, f)
	return ok
}

func (p *process) suspect(c *cell) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.suspects[c] = struct{}{}
}

// clear takes a cell out of the suspects. It says whether lanes wait that may be let in now.
func (p *process) clear(c *cell) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, was := p.suspects[c]
	delete(p.suspects, c)
	return was && len(p.waiting) > 0
}

// admit rings the lanes that wait, where somebody may be let in now. No lock is held.
func (p *process) admit() {
	p.mu.Lock()
	var lanes []*lane
	if len(p.suspects) == 0 || len(p.flights) == 0 && p.others == 0 {
		for l := range p.waiting {
			lanes = append(lanes, l)
		}
		clear(p.waiting)
	}
	p.mu.Unlock()
	for _, l := range lanes {
		l.s.mu.Lock()
		l.ring()
		l.s.mu.Unlock()
	}
}

// die ends the process for the registry: nothing is submitted to it any more, and what was in flight is lost. It returns when every session
// has taken note, whoever said so first: if another process could serve before, nobody would remember what this one died of. No lock is
// held.
func (p *process) die(code UnavailableCode, why string) {
	p.dying.Do(func() { p.bury(code, why) })
}

func (p *process) bury(code UnavailableCode, why string) {
	p.mu.Lock()
	p.gone.Store(&Unavailable{Code: code, Message: why})
	lost := p.flights
	p.flights, p.suspects, p.waiting = map[*flight]struct{}{}, map[*cell]struct{}{}, map[*lane]struct{}{}
	p.mu.Unlock()
	for f := range lost {
		f.lane.s.mu.Lock()
		f.lane.blame(f, why, true)
		f.lane.s.mu.Unlock()
	}
	p.r.each(func(s *Session) { s.bereaved(p) })
}

// submit hands a batch over. A panic of the instance counts as an answer.
func (p *process) submit(ctx context.Context, b unit.Batch, done func(unit.Reply)) {
	defer func() {
		if v := recover(); v != nil {
			done(unit.Reply{Err: fmt.Errorf("the instance of plugin %q panicked: %v", p.by.Plugin, v)})
		}
	}()
	p.in.Submit(ctx, b, done)
}

// submitApart hands over a batch of cells that are not live. While suspects are being tried it refuses at once, as it does when the process is
// dead. No lock is held.
func (p *process) submitApart(ctx context.Context, b unit.Batch, done func(unit.Reply)) {
	p.mu.Lock()
	refused := p.gone.Load() != nil || len(p.suspects) > 0
	if !refused {
		p.others++
		p.entries++
	}
	p.mu.Unlock()
	if refused {
		done(unit.Reply{Err: errNotTaken})
		return
	}
	var once sync.Once
	p.submit(ctx, b, func(r unit.Reply) {
		once.Do(func() {
			p.buried(r.Err) // first: nobody is to be let in that would share the blame
			p.mu.Lock()
			p.others--
			p.mu.Unlock()
			p.admit()
		})
		done(r)
	})
}

// buried takes note of an error that says that the process is gone, and whether it was one.
func (p *process) buried(err error) bool {
	code, dead := deadly(err)
	if dead {
		p.die(code, err.Error())
	}
	return dead
}
