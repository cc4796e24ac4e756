package session

import (
	"slices"
	"sync"
	"sync/atomic"
)

// listeners is a list of functions that is read without a lock and replaced as a whole when it changes.
type listeners[F any] struct {
	// mu makes changes serial.
	mu   sync.Mutex
	list atomic.Pointer[[]*F]
}

// all returns the functions in the order in which they were added; nobody changes the slice.
func (l *listeners[F]) all() []*F {
	if p := l.list.Load(); p != nil {
		return *p
	}
	return nil
}

// add appends f and returns what takes it away; taking it away twice does nothing.
func (l *listeners[F]) add(f F) (remove func()) {
	entry := &f
	l.change(func(list []*F) []*F { return append(list, entry) })
	return func() {
		l.change(func(list []*F) []*F {
			return slices.DeleteFunc(list, func(e *F) bool { return e == entry })
		})
	}
}

func (l *listeners[F]) change(f func([]*F) []*F) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := f(slices.Clone(l.all()))
	l.list.Store(&next)
}
