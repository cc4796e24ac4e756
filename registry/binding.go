package registry

import (
	"sync"
	"sync/atomic"

	"github.com/foldhost/foldhost/unit"
)

// binding is one registrant's definition of one key together with the instance that serves it at present. Cells hold the
// binding and ask it, each time they drive, who serves.
type binding struct {
	*unit.Compiled
	by Registrant
	// counts are shared with the definitions of the key that its plugin had before.
	counts *counts
	// rev is the revision that the registration got; revision gives the latest of its cells.
	rev    int64
	latest atomic.Int64
	// late counts the batches that missed their deadline: each halves what a batch may hold from then on.
	late atomic.Int32

	// mu guards what follows; nothing is called while it is held.
	mu   sync.Mutex
	proc *process
	down *Unavailable
}

// process says which process serves, and why it cannot be asked where that is so. Inline definitions have none: their fold is called
// directly. What is said by one that served before is about cells that are opened elsewhere by now, and is dropped.
func (b *binding) process() (p *process, down *Unavailable) {
	b.mu.Lock()
	p, down = b.proc, b.down
	b.mu.Unlock()
	if down == nil && p != nil {
		down = p.death()
	}
	return p, down
}

// forScratch is process for cells that are not live: they also wait while suspects are being tried.
func (b *binding) forScratch() (p *process, down *Unavailable) {
	p, down = b.process()
	if down == nil && p != nil && p.isolating() {
		down = &Unavailable{Code: Restarting, Message: "the plugin is looking for the event that ended its process"}
	}
	return p, down
}

// batchEvents is how many events a batch may hold. A unit for which the usual number is too slow must not lose its process to every
// batch of a long build.
func (b *binding) batchEvents(most int) int { return max(most>>min(b.late.Load(), 16), 1) }

// inline says that the fold is called directly.
func (b *binding) inline() bool { return b.Inline != nil }

// revision is what a cell that is made now gets: it never goes back, so that a session that was cold meanwhile is not taken for older.
func (b *binding) revision() int64 { return max(b.rev, b.latest.Load()) }

// raise makes sure that cells made from now on have at least rev.
func (b *binding) raise(rev int64) {
	for {
		have := b.latest.Load()
		if have >= rev || b.latest.CompareAndSwap(have, rev) {
			return
		}
	}
}
