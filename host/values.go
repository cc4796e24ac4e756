package host

import (
	"context"
	"errors"
	"time"

	"github.com/foldhost/foldhost/checkpoint"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/registry"
)

// Values gives the values of a session as of its last event: from its cells when it is live, else from its rows and the events since,
// without making it live. Keys that trail are waited for, as long as Options.Registry.ReadWait says in both cases, and then named under Unavailable.
// keys narrows it; none is all. Errors: *eventlog.NotFoundError, the store's, the context's.
func (h *Host) Values(ctx context.Context, id string, keys ...string) (registry.Block, error) {
	block, live, err := ask(h.driver.byID(id), func(rs *registry.Session) (registry.Block, error) { return rs.Snapshot(ctx, keys...) })
	if !live {
		_, block, err = h.reader.Read(ctx, id, keys...)
	}
	return block, err
}

// ValuesAt gives the values of a session right after event seq, live or not, without making it live. Errors: *registry.SeqRangeError,
// *registry.BusyError, and those of Values.
func (h *Host) ValuesAt(ctx context.Context, id string, seq int64, keys ...string) (registry.Block, error) {
	block, live, err := ask(h.driver.byID(id), func(rs *registry.Session) (registry.Block, error) { return rs.SnapshotAt(ctx, seq, keys...) })
	if !live {
		_, block, err = h.reader.At(ctx, id, seq, keys...)
	}
	return block, err
}

// ask asks a live session; nil is none. One that goes cold meanwhile is not live: its rows say more than it does by then.
func ask(rs *registry.Session, f func(*registry.Session) (registry.Block, error)) (block registry.Block, live bool, err error) {
	if rs == nil {
		return registry.Block{}, false, nil
	}
	block, err = f(rs)
	if errors.Is(err, registry.ErrDetached) {
		return registry.Block{}, false, nil
	}
	return block, true, err
}

// listWait is how long a list waits for keys of live sessions that trail, all together: it shows many, and those that are late follow.
const listWait = 250 * time.Millisecond

// ListValues gives values of many sessions without reading a log or asking a plugin for those that are not live: their rows say what they say, as
// of the lowest seq among them. Live sessions answer from their cells, and wait at most for a moment. Sessions that are not there are left out.
// Errors: the store's, the context's.
func (h *Host) ListValues(ctx context.Context, ids []string, keys ...string) ([]checkpoint.Item, error) {
	items, err := h.reader.List(ctx, ids, keys...)
	if err != nil {
		return nil, err
	}
	patience := time.Now().Add(listWait)
	for i := range items {
		info := items[i].Info
		rs := h.driver.of(eventlog.Life{ID: info.Header.ID, Incarnation: info.Incarnation})
		block, live, err := ask(rs, func(rs *registry.Session) (registry.Block, error) {
			return rs.SnapshotWithin(ctx, time.Until(patience), keys...)
		})
		if err != nil {
			return nil, err
		}
		if live {
			items[i].Block = block
		}
	}
	return items, nil
}

// VerifyValues compares what is served of a session, live or not, with a fold from zero. See checkpoint.Reader.Verify.
func (h *Host) VerifyValues(ctx context.Context, id string) (checkpoint.Report, error) {
	rs := h.driver.byID(id)
	if rs == nil {
		return h.reader.Verify(ctx, id, nil)
	}
	report, err := h.reader.Verify(ctx, id, func(ctx context.Context) (registry.Block, error) { return rs.Snapshot(ctx) })
	if errors.Is(err, registry.ErrDetached) {
		return h.reader.Verify(ctx, id, nil)
	}
	return report, err
}
