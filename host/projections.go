package host

import (
	"context"
	"errors"

	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// Projections calls use with the registry's side of a session, which a cold session gets by being opened. Going idle waits for use. A detach
// does not: use then gets registry.ErrDetached, and when it returns that, it is called again with the new side, so it must be
// fit to start over. Other errors are those of session and of use.
func (h *Host) Projections(ctx context.Context, s *session.Session, use func(*registry.Session) error) error {
	for {
		release, err := s.Hold(ctx)
		if err != nil {
			return err
		}
		err = registry.ErrDetached // Until there is a drive: it may have been detached between the two lines.
		if rs := h.driver.of(lifeOf(s)); rs != nil {
			err = use(rs)
		}
		release()
		if !errors.Is(err, registry.ErrDetached) {
			return err
		}
	}
}

// Snapshot is one consistent cut of a session's values: all of its keys, or the given ones. See registry.Session.Snapshot.
func (h *Host) Snapshot(ctx context.Context, s *session.Session, keys ...string) (block registry.Block, err error) {
	err = h.Projections(ctx, s, func(rs *registry.Session) error {
		block, err = rs.Snapshot(ctx, keys...)
		return err
	})
	return block, err
}

// Retry tries faulted keys of a session again, all of them or the given ones, and gives their values as Snapshot does. See registry.Session.Retry.
func (h *Host) Retry(ctx context.Context, s *session.Session, keys ...string) (block registry.Block, err error) {
	err = h.Projections(ctx, s, func(rs *registry.Session) error {
		block, err = rs.Retry(ctx, keys...)
		return err
	})
	return block, err
}

// SnapshotAt gives the values right after event seq. See registry.Session.SnapshotAt.
func (h *Host) SnapshotAt(ctx context.Context, s *session.Session, seq int64, keys ...string) (block registry.Block, err error) {
	err = h.Projections(ctx, s, func(rs *registry.Session) error {
		block, err = rs.SnapshotAt(ctx, seq, keys...)
		return err
	})
	return block, err
}
