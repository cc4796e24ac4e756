package registry

import (
	"sync"
)

// poison remembers cells of scratches that were in flight when a process died, so that reads of a cold or past session do not
// end the same process again and again. It goes as for live cells: all that were in flight are suspects. The next scratch drives a
// suspect in batches of its own, event by event where it was in flight. The event with which the process dies there is accused; if the
// process dies with it a second time running, and with nothing else in flight, the cell is convicted, and from then on reads report its fault without
// asking. Once is not enough: somebody may have killed the process. A suspect that gets through is cleared.
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
	// suspect: it was in flight when a process died, with events from..to; both are where it was to be opened, or its state was asked for, when
	// there was no event.
	suspect  bool
	from, to int64
	// state: its state was asked for.
	state bool
	// accused is what it was tried with when the process died the last time, times how often running.
	accused accusation
	times   int
	// noSeed: opening it from a stored state is what ends the process. It folds from init.
	noSeed bool
	// fault is set for a convict.
	fault *Unavailable
}

// maxPoison bounds the memory: a plugin that dies with so many cells in flight has parked itself long before.
const maxPoison = 4096

// accusation is what a suspect was tried with, alone, when a process died.
type accusation struct {
	step step
	seq  int64
}

// enough is how many deaths running with the same accusation convict. One may be somebody's kill -9; two with the same single event, out of
// the thousands that the process folded in between, are the event.
const enough = 2

// maxDoubt is the same for a cell that was alone in its batch while the process had other work as well. The other work is that of live sessions and
// convicts or clears itself.
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
	if !known && len(p.records) >= maxPoison {
		p.dropOne()
	}
	rec.take(f, alone)
	if p.records == nil {
		p.records = map[poisonKey]poisonRecord{}
	}
	p.records[k] = rec
	return rec.fault
}

// take draws the conclusions of one death. The range that is tried event by event is always that of the last flight: what lies before it was
// folded since, and what lies behind it is suspected again should it kill again.
func (rec *poisonRecord) take(f poisonFlight, alone bool) {
	rec.suspect, rec.state = true, rec.state || f.state
	if !f.careful {
		rec.from, rec.to, rec.accused, rec.times = f.from, f.to, accusation{}, 0
		return
	}
	if f.step == stepOpen && f.seeded {
		*rec = poisonRecord{noSeed: true, from: -1, to: -1}
		return
	}
	// What came before was survived one by one in this very try; what comes after is still to be tried.
	rec.from, rec.to = f.from, max(rec.to, f.to)
	if a := (accusation{f.step, f.to}); a != rec.accused {
		rec.accused, rec.times = a, 0
	}
	if rec.times++; rec.times >= maxDoubt || alone && rec.times >= enough {
		rec.fault = faulted(f.to, f.reason)
	}
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
	from, to int64
	step     step
	// seeded: it was to be opened from a stored state. state: its state was asked for.
	seeded, state bool
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
