package registry

import (
	"sync"
)

// poison remembers cells of scratches that were in flight when a process died, so that reads of a cold or past session do not
// end the same process again and again. It goes as for live cells: all that were in flight are suspects. The next scratch drives a
// suspect in batches of its own, event by event where it was in flight; if the process dies there again while nothing else is in flight, the
// cell is convicted, and from then on reads report its fault without asking. A suspect that gets through is cleared.
//
// A convict stays one until its definition is replaced, somebody asks for a retry, or there are too many. mu is a leaf.
type poison struct {
	mu      sync.Mutex
	records map[poisonKey]poisonRecord
}

// poisonKey names a cell of a life of a log, as one definition computes it.
type poisonKey struct {
	session, incarnation string
	b                    *binding
}

type poisonRecord struct {
	// It was in flight with events from..to; both are where it was to be opened, or its state was asked for, when there was no event.
	from, to int64
	// state: its state was asked for.
	state bool
	// deaths counts; see maxDoubt.
	deaths int
	// noSeed: opening it from a stored state is what ends the process. It folds from init.
	noSeed bool
	// fault is set for a convict.
	fault *Unavailable
}

// maxPoison bounds the memory: a plugin that dies with so many cells in flight has parked itself long before.
const maxPoison = 4096

// maxDoubt is how many deaths it takes to convict a cell that was alone in its batch while the process had other work as well. The other work is that of
// live sessions and convicts or clears itself.
const maxDoubt = 4

func (p *poison) look(k poisonKey) (poisonRecord, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rec, ok := p.records[k]
	return rec, ok
}

func (p *poison) forget(k poisonKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.records, k)
}

// retire forgets a definition.
func (p *poison) retire(b *binding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.records {
		if k.b == b {
			delete(p.records, k)
		}
	}
}

// death takes note that the process died with the cell in flight. alone says that nothing else was. convicted is how the cell is to be
// reported from now on, if it is.
func (p *poison) death(k poisonKey, f poisonFlight, alone bool) (convicted *Unavailable) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rec, known := p.records[k]
	if !known {
		if len(p.records) >= maxPoison {
			p.dropOne()
		}
		rec.from, rec.to = f.from, f.to
	}
	rec.deaths++
	rec.state = rec.state || f.state
	switch {
	case f.careful && (alone || rec.deaths >= maxDoubt) && f.opening && f.seeded:
		rec = poisonRecord{noSeed: true, from: -1, to: -1}
	case f.careful && (alone || rec.deaths >= maxDoubt):
		rec.fault = faulted(f.to, f.reason)
	default:
		rec.from, rec.to = min(rec.from, f.from), max(rec.to, f.to)
	}
	if p.records == nil {
		p.records = map[poisonKey]poisonRecord{}
	}
	p.records[k] = rec
	return rec.fault
}

// dropOne makes room. Which one goes does not matter: whoever was dropped is found out again.
func (p *poison) dropOne() {
	for k := range p.records {
		delete(p.records, k)
		return
	}
}

// poisonFlight is what a cell was in flight with.
type poisonFlight struct {
	from, to               int64
	opening, seeded, state bool
	// careful: the batch was the cell's own and had at most one event.
	careful bool
	reason  string
}

// quiet says that nothing is in flight in the process but one batch of a scratch, and how many it has ever let in.
func (p *process) quiet() (quiet bool, entries uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.flights) == 0 && p.others == 1, p.entries
}
