package host

import (
	"context"
	"errors"
	"time"

	"github.com/foldhost/foldhost/checkpoint"
	"github.com/foldhost/foldhost/registry"
)

// Values gives the values of a session as of its last event: from its cells when it is live, else from its rows and the events since,
// without making it live. keys narrows it; none is all. Errors: *eventlog.NotFoundError, the store's, the context's.
func (h *Host) Values(ctx context.Context, id string, keys ...string) (registry.Block, error) {
	if block, live, err := h.live(id, func(rs *registry.Session) (registry.Block, error) { return rs.Snapshot(ctx, keys...) }); live {
		return block, err
	}
	_, block, err := h.reader.Read(ctx, id, keys...)
	return block, err
}

// ValuesAt gives the values of a session right after event seq, live or not, without making it live. Errors: *registry.SeqRangeError,
// *registry.BusyError, and those of Values.
func (h *Host) ValuesAt(ctx context.Context, id string, seq int64, keys ...string) (registry.Block, error) {
	if block, live, err := h.live(id, func(rs *registry.Session) (registry.Block, error) { return rs.SnapshotAt(ctx, seq, keys...) }); live {
		return block, err
	}
	_, block, err := h.reader.At(ctx, id, seq, keys...)
	return block, err
}

// live asks a live session. A session that goes cold meanwhile is not live: its rows say more than it does by then.
func (h *Host) live(id string, ask func(*registry.Session) (registry.Block, error)) (block registry.Block, live bool, err error) {
	rs := h.driver.byID(id)
	if rs == nil {
		return registry.Block{}, false, nil
	}
	block, err = ask(rs)
	if errors.Is(err, registry.ErrDetached) {
		return registry.Block{}, false, nil
	}
	return block, true, err
}

// listWait is how long a list waits for keys of live sessions that trail: it shows many, and those that are late follow.
const listWait = 250 * time.Millisecond

// ListValues gives values of many sessions without reading a log or asking a plugin for those that are not live: their rows say what they say, as
// of the lowest seq among them. Live sessions answer from their cells, and wait at most for a moment. Sessions that are not there are left out.
func (h *Host) ListValues(ctx context.Context, ids []string, keys ...string) ([]checkpoint.Item, error) {
	items, err := h.reader.List(ctx, ids, keys...)
	if err != nil {
		return nil, err
	}
	for i := range items {
		id := items[i].Info.Header.ID
		block, live, err := h.live(id, func(rs *registry.Session) (registry.Block, error) { return rs.SnapshotWithin(ctx, listWait, keys...) })
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if live && err == nil {
			items[i].Block = block
		}
	}
	return items, nil
}
