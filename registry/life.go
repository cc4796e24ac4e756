package registry

import (
	"hash/maphash"
	"math"
	"sync/atomic"
)

// A block does not say of which life of a session it is, so revisions do: within an epoch, those of a later life of an id are above every one that an
// earlier life gave. Else who has values of a log of 100 events would keep them over those of its successor of 2, which have the lower seq. The revisions
// of a binding alone do not tell lives apart, because they are the same for all sessions.
//
// So a deletion takes a revision, which is above all that were given before, as the least of its id; see Registry.Deleted. Who says something of the id takes no less:
//
//   - Cells, when they are made. Those of the life before are gone by then: its session is detached before Deleted is called for the last time, and no other can be attached
//     before that. Cells that are renewed take a revision of their own, which is above any.
//   - Reads apart from cells, of the log or of rows alone. They take a Mark before they look at what is stored. A read that took it before the deletion may give values of the life before
//     however late: below the least. One that took it later finds the life before no more. It asks the bindings later, and they may have been raised above the
//     least meanwhile, so after a deletion the mark bounds what they say.
//
// Neither goes back: the least of an id only rises, and within a life it stays. So the cells of one life and the reads between them are in the order that they would have
// without. Sets make no difference, as the least is of the id and not of who computes.
//
// ends holds the least of each id. Ids share places, so that it does not grow: then a deletion raises the least of others too, which are in their first life or another, live or not. Their cells that there are
// keep their revisions, and cells and reads from then on have higher ones. That is as after a recovery in another session, which raises a binding.
type ends struct {
	seed maphash.Seed
	// 64 KB; one deletion in 8192 is felt by a given session.
	least [1 << 13]atomic.Int64
}

func (e *ends) of(id string) *atomic.Int64 {
	return &e.least[maphash.String(e.seed, id)%uint64(len(e.least))]
}

// Deleted says that a session is deleted: what is said of its id from now on counts as newer than all that was said before. To be called before its log goes, so that nothing of a
// successor is ever older, and again when it has gone and its Session is detached, before another of its id can be attached, so that nothing of the life before, read between the two, is as new.
func (r *Registry) Deleted(id string) {
	rev := r.revs.Add(1)
	least := r.ends.of(id)
	for {
		have := least.Load()
		if have >= rev || least.CompareAndSwap(have, rev) {
			return
		}
	}
}

// Mark is when a read began that looks at what is stored of a session and not at its cells.
type Mark struct {
	// end is the least of the id, as it was then.
	end         *atomic.Int64
	least, most int64
}

// Mark is to be taken before anything of the session is looked at, the store's word for what there is of it included.
func (r *Registry) Mark(id string) Mark {
	m := Mark{end: r.ends.of(id)}
	// In this order: least is never above most.
	m.least = m.end.Load()
	m.most = r.revs.Load()
	return m
}

// Stamp gives a block the revisions of a read that began at the mark. The block must be the caller's own.
func (m Mark) Stamp(b *Block) {
	most := int64(math.MaxInt64)
	if m.end.Load() != m.least {
		most = m.most
	}
	for key, rev := range b.Revs {
		b.Revs[key] = max(min(rev, most), m.least)
	}
}
