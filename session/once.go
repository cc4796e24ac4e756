package session

import (
	"context"

	"github.com/foldhost/foldhost/event"
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

// Answer keeps what a request was answered with that appended nothing, and gives what is kept: by a twin that was first, its answer and what it appended. It does not touch the
// session. Errors are those of Claim.
func (s *Session) Answer(ctx context.Context, once Once, answer string) (Answered, error) {
	if err := s.set.begin(); err != nil {
		return Answered{}, err
	}
	defer s.set.running.Done()
	commit, err := s.set.store.Append(ctx, eventlog.Batch{Life: s.life(), Key: once.Key, Digest: once.Digest, Answer: answer})
	if err != nil || !commit.Repeated {
		return Answered{Answer: answer}, notFound(err)
	}
	a, _, err := s.answered(ctx, once)
	return a, err
}

// Answered is what a request with a key came to: what was kept with it, and the events that it appended.
type Answered struct {
	Answer string
	Events []event.Event
}

// Answered gives what a request came to that was carried out before, without touching the session; known is false for a key that nobody has used. Errors are those of Committed.
func (s *Session) Answered(ctx context.Context, once Once) (a Answered, known bool, err error) {
	if err := s.set.begin(); err != nil {
		return Answered{}, false, err
	}
	defer s.set.running.Done()
	return s.answered(ctx, once)
}

func (s *Session) answered(ctx context.Context, once Once) (a Answered, known bool, err error) {
	k, known, err := s.set.store.Lookup(ctx, s.life(), once.Key)
	switch {
	case err != nil || !known:
		return Answered{}, false, notFound(err)
	case k.Digest != once.Digest:
		return Answered{}, true, &eventlog.KeyReusedError{ID: s.id, Key: once.Key}
	}
	a.Answer = k.Answer
	_, a.Events, err = s.set.readCommit(ctx, s.life(), k.Commit)
	return a, true, err
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
