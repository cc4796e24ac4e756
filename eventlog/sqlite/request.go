package sqlite

import (
	"context"
	"sync/atomic"
)

// request is a change that stands in the writer's line.
type request struct {
	ctx context.Context
	// size is about how many bytes it writes.
	size int
	// apply makes the change inside the transaction of a group. It finds out first whether the change is refused, so that a refusal has written nothing; a *dbError fails
	// the whole group. It may be called again when a group is tried one by one, and keeps its result only if the last call succeeded.
	apply func(*writer) error

	// state tells whether the caller may still leave.
	state atomic.Int32
	err   error
	done  chan struct{}
}

const (
	waiting int32 = iota
	taken
	left
)

// take makes the request the writer's, unless its caller has left.
func (r *request) take() bool { return r.state.CompareAndSwap(waiting, taken) }

func (r *request) finish(err error) {
	r.err = err
	close(r.done)
}

// change puts a change in line and waits for it. A context that ends before the writer has come to it takes it out again; after that, the commit is waited for.
func (s *Store) change(ctx context.Context, size int, apply func(*writer) error) error {
	if err := s.Failed(); err != nil {
		return err
	}
	r := &request{ctx: ctx, size: size, apply: apply, done: make(chan struct{})}
	s.writer.put(r)
	select {
	case <-r.done:
	case <-ctx.Done():
		if r.state.CompareAndSwap(waiting, left) {
			return ctx.Err()
		}
		<-r.done
	}
	return r.err
}
