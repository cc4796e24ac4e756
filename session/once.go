package session

import (
	"context"

	"github.com/foldhost/foldhost/eventlog"
)

// Once is the key of a request that is to be carried out once, with the digest of all that the request says; an empty key is none. Keys belong to one life of one session, and
// a key that comes with another digest is refused with *eventlog.KeyReusedError.
type Once struct{ Key, Digest string }

func (o Once) digest() string { return o.Digest }

// Claim keeps the key of a request that changes something elsewhere than in this session, which stays as it is and is not touched. To claim again by the same request is fine: a
// claim says who has the key, not what has come of it. Errors: *eventlog.KeyReusedError, *eventlog.NotFoundError, ErrClosed, what the store says.
func (s *Session) Claim(ctx context.Context, once Once) error {
	if err := s.set.begin(); err != nil {
		return err
	}
	defer s.set.running.Done()
	_, err := s.set.store.Append(ctx, eventlog.Batch{Life: s.life(), Key: once.Key, Digest: once.Digest})
	return notFound(err)
}

// Committed says what a request has committed to this session, without touching it: for a creation or a fork, all that the session began with. known is true with
// *eventlog.KeyReusedError as well: another request has the key. Other errors: *eventlog.NotFoundError, ErrClosed, what the store says.
func (s *Session) Committed(ctx context.Context, once Once) (commit eventlog.Commit, known bool, err error) {
	if s.set.closed.Load() {
		return eventlog.Commit{}, false, ErrClosed
	}
	return s.set.known(ctx, s.life(), once)
}

// known looks for the key of a request.
func (t *Set) known(ctx context.Context, l eventlog.Life, once Once) (commit eventlog.Commit, known bool, err error) {
	k, known, err := t.store.Lookup(ctx, l, once.Key)
	if err != nil || !known {
		return eventlog.Commit{}, false, notFound(err)
	}
	if k.Digest != once.Digest {
		return eventlog.Commit{}, true, &eventlog.KeyReusedError{ID: l.ID, Key: once.Key}
	}
	k.Commit.Repeated = true
	return k.Commit, true, nil
}
