package registry

import (
	"sync"

	"github.com/foldhost/foldhost/unit"
)

// binding is one registrant's definition of one key together with the instance that serves it at present. Cells hold the
// binding and ask it, each time they drive, who serves.
type binding struct {
	*unit.Compiled
	by Registrant
	// rev is the revision that the registration got.
	rev int64

	// mu guards what follows; nothing is called while it is held.
	mu   sync.Mutex
	inst unit.Instance
	// gen counts instances: what an older one says about a cell is dropped.
	gen  uint64
	down *Unavailable
}

// serving says which instance to ask and which generation it is, or why there is none. Inline definitions have neither: their
// fold is called directly.
func (b *binding) serving() (in unit.Instance, gen uint64, down *Unavailable) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.inst, b.gen, b.down
}
