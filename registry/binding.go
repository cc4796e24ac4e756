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
	// rev is the revision that the registration got; revision gives the latest of its cells.
	rev    int64
	latest atomic.Int64
	// late counts the batches that missed their deadline: each halves what a batch may hold from then on.
	late atomic.Int32

	// mu guards what follows; nothing is called while it is held.
	mu   sync.Mutex
	proc *process
	// gen counts instances: what an older one says about a cell is dropped.
	gen  uint64
	down *Unavailable
}

// serving says which instance to ask and which generation it is, or why there is none. Inline definitions have neither: their
// fold is called directly. The instance counts what is in flight, so that a batch that must run alone does.
func (b *binding) serving() (in unit.Instance, gen uint64, down *Unavailable) {
	p, gen, down := b.process()
	if p == nil {
		return nil, gen, down
	}
	if down == nil && p.isolating() {
		down = &Unavailable{Code: Restarting, Message: "the plugin is looking for the event that ended its process"}
	}
	return p, gen, down
}

// process is serving for the live cells.
func (b *binding) process() (p *process, gen uint64, down *Unavailable) {
	b.mu.Lock()
	p, gen, down = b.proc, b.gen, b.down
	b.mu.Unlock()
	if down == nil && p != nil {
		down = p.death()
	}
	return p, gen, down
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
