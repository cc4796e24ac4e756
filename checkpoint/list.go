package checkpoint

import (
	"context"
	"errors"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
)

// Item is one session of a list.
type Item struct {
	Info eventlog.Info
	// Block is partial: what rows say, as of the lowest seq among them.
	Block registry.Block
}

// List gives values from rows alone: no log is read and no plugin asked. Sessions that are not there are left out; the others come in the order of
// ids. Where rows cannot be read there are no values. Errors: the store's, the context's.
func (r *Reader) List(ctx context.Context, ids []string, keys ...string) ([]Item, error) {
	marks := make([]registry.Mark, len(ids))
	for i, id := range ids {
		marks[i] = r.units.Mark(id)
	}
	sets, err := r.sets(ctx, ids)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]*eventlog.RowSet, len(sets))
	for i := range sets {
		byID[sets[i].Info.Header.ID] = &sets[i]
	}
	items := make([]Item, 0, len(sets))
	for i, id := range ids {
		if set := byID[id]; set != nil {
			block := r.units.ViewRows(r.logs.Set(set.Info.Header), decode(*set, r.o.Logger), keys...)
			marks[i].Stamp(&block)
			items = append(items, Item{Info: set.Info, Block: block})
		}
	}
	return items, nil
}

// sets gives the sessions with their rows, without any where those cannot be read.
func (r *Reader) sets(ctx context.Context, ids []string) ([]eventlog.RowSet, error) {
	if r.w != nil {
		sets, err := r.w.rows.RowsOf(ctx, ids)
		if err == nil || ctx.Err() != nil {
			return sets, err
		}
		r.o.Logger.Warn("checkpoint rows cannot be read: a list comes without values", "error", err)
	}
	sets := make([]eventlog.RowSet, 0, len(ids))
	for _, id := range ids {
		info, err := r.logs.Info(ctx, id)
		var none *eventlog.NotFoundError
		switch {
		case errors.As(err, &none):
		case err != nil:
			return nil, err
		default:
			sets = append(sets, eventlog.RowSet{Info: info})
		}
	}
	return sets, nil
}
