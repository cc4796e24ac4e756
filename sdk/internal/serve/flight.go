package serve

import (
	"context"
	"sync"
)

// flight counts what is being carried out, so that a drain can wait for it.
type flight struct {
	mu     sync.Mutex
	n      int
	closed bool
	// landed is closed once nothing is in flight after close.
	landed chan struct{}
}

// enter counts one in; false once nothing new is taken.
func (f *flight) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.n++
	return true
}

func (f *flight) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n--; f.n == 0 && f.closed {
		close(f.landed)
	}
}

// close takes nothing new and waits for what is in flight. More than once is harmless.
func (f *flight) close(ctx context.Context) error {
	f.mu.Lock()
	if !f.closed {
		f.closed = true
		f.landed = make(chan struct{})
		if f.n == 0 {
			close(f.landed)
		}
	}
	landed := f.landed
	f.mu.Unlock()
	select {
	case <-landed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
