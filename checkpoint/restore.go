package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
)

// restoring is the work of a flight: the ladder from the rows down to the log.
type restoring struct {
	r    *Reader
	f    *flight
	life eventlog.Life
	head int64
	// stored are the rows as they were.
	stored registry.Rows
	log    registry.Log
	set    string
	// full says that a unit was folded from init, folded that one folded anything.
	full, folded atomic.Bool
}

// restore restores the keys of each who computes some by themselves: a plugin that hangs delays nobody else.
func (r *Reader) restore(ctx context.Context, f *flight, set eventlog.RowSet, keys []string) error {
	j := restoring{r: r, f: f, life: lifeOf(set.Info), head: set.Info.Seq - 1, stored: decode(set, r.o.Logger), set: r.logs.Set(set.Info.Header)}
	j.log = r.logs.Log(j.life)
	groups := r.units.Needs(j.set, j.stored, keys...)
	f.expect(groups)
	work, ctx := errgroup.WithContext(ctx)
	for _, group := range groups {
		work.Go(func() error { return j.group(ctx, group) })
	}
	err := work.Wait()
	switch {
	case err != nil:
	case j.full.Load():
		r.stats.Full.Add(1)
	case j.folded.Load():
		r.stats.Tail.Add(1)
	default:
		r.stats.Rows.Add(1)
	}
	return err
}

// group restores keys that share their work: first those that have little to fold, then the others, leg by leg, so that what was done is not lost
// when it ends before its time.
func (j *restoring) group(ctx context.Context, group []registry.Need) error {
	leg := j.r.o.PastEvery
	rows := j.stored
	rows.Rows = maps.Clone(rows.Rows)
	var near, far []registry.Need
	for _, n := range group {
		if n.From == 0 && j.head >= 0 {
			j.full.Store(true)
		}
		if j.head-n.From < leg {
			near = append(near, n)
		} else {
			far = append(far, n)
		}
	}
	if err := j.finish(ctx, rows, near); err != nil {
		return err
	}
	for len(far) > 0 {
		together, to := nextLeg(far, leg, j.head)
		far = far[len(together):]
		if to == j.head {
			if err := j.finish(ctx, rows, together); err != nil {
				return err
			}
			continue
		}
		block, fresh, err := j.fold(ctx, rows, to, together)
		if err != nil {
			return err
		}
		var rest []registry.Need
		for _, n := range together {
			row, ok := fresh[n.Key]
			switch {
			case hasKey(block.Unavailable, n.Key):
				j.f.arrived(n, &block)
			case ok:
				rows.Rows[n.Key] = row
				n.From = row.Seq + 1
				j.f.reached(n)
				far = append(far, n)
			default:
				rest = append(rest, n) // no row can be made of its state, so there are no legs
			}
		}
		if err := j.finish(ctx, rows, rest); err != nil {
			return err
		}
	}
	return nil
}

func hasKey[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}

// nextLeg gives those that are furthest back, first of all needs, and how far they go: so many events, or to where the next ones stand. A rest that
// is not worth a leg of its own goes with the last.
func nextLeg(needs []registry.Need, leg, head int64) (together []registry.Need, to int64) {
	slices.SortStableFunc(needs, func(a, b registry.Need) int { return cmp.Compare(a.From, b.From) })
	n := 1
	for n < len(needs) && needs[n].From == needs[0].From {
		n++
	}
	to = needs[0].From + leg - 1
	if n < len(needs) {
		to = min(to, needs[n].From-1)
	}
	if head-to < leg/2 {
		to = head
	}
	return needs[:n:n], to
}

// finish takes keys to the head and shows what came of them.
func (j *restoring) finish(ctx context.Context, rows registry.Rows, needs []registry.Need) error {
	if len(needs) == 0 {
		return nil
	}
	block, _, err := j.fold(ctx, rows, j.head, needs)
	if err != nil {
		return err
	}
	for _, n := range needs {
		j.f.arrived(n, &block)
	}
	return nil
}

// fold takes keys to an event, and hands over the rows that came of it.
func (j *restoring) fold(ctx context.Context, rows registry.Rows, to int64, needs []registry.Need) (registry.Block, map[string]registry.Row, error) {
	keys := make([]string, len(needs))
	for i, n := range needs {
		keys[i] = n.Key
	}
	block, fresh, err := j.r.units.RestoreFrom(ctx, j.set, rows, j.log, to, keys...)
	if err != nil {
		return registry.Block{}, nil, err
	}
	changed := make(map[string]registry.Row, len(needs))
	var past map[string]registry.Row
	for _, n := range needs {
		row, ok := fresh.Rows[n.Key]
		had := j.stored.Rows[n.Key]
		if !ok || same(&had, &row) {
			continue
		}
		changed[n.Key] = row
		if row.Seq != had.Seq {
			j.folded.Store(true)
		}
		if to < j.head && row.Seq-n.From+1 >= j.r.o.PastEvery {
			if past == nil {
				past = map[string]registry.Row{}
			}
			past[n.Key] = row
		}
	}
	if j.r.w != nil && len(changed) > 0 {
		j.r.w.put(j.life, encode(changed, j.head), encode(past, j.head), time.Time{})
	}
	return block, fresh.Rows, nil
}

func same(a, b *registry.Row) bool {
	return a.Ver == b.Ver && a.Def == b.Def && a.Seq == b.Seq && a.Anchor == b.Anchor && a.Config == b.Config && bytes.Equal(a.Val, b.Val) && bytes.Equal(a.View, b.View)
}
