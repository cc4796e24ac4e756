package api

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// bounded is a listener that holds so many connections at once. Who comes when there are as many waits where the system lets them wait, until one ends: the files that a process may open are the
// store's and the plugins' too, and a connection less is the smallest harm.
type bounded struct {
	net.Listener
	log *slog.Logger
	// room has a place for each connection.
	room   chan struct{}
	closed chan struct{}
	once   sync.Once
	// told is when a full house was logged last. Accept alone touches it.
	told time.Time
}

func newBounded(l net.Listener, n int, log *slog.Logger) *bounded {
	return &bounded{Listener: l, log: log, room: make(chan struct{}, n), closed: make(chan struct{})}
}

// Accept implements net.Listener. It is not for concurrent use; http.Server calls it on one goroutine.
func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.room <- struct{}{}:
	default:
		if now := time.Now(); now.Sub(b.told) >= time.Minute {
			b.told = now
			b.log.Warn("as many connections are open as there may be, and more wait: let the process open more files (ulimit -n)", "connections", cap(b.room))
		}
		select {
		case b.room <- struct{}{}:
		case <-b.closed:
			return nil, net.ErrClosed
		}
	}
	c, err := b.Listener.Accept()
	if err != nil {
		<-b.room
	}
	return c, err
}

// state hears of every connection, as http.Server tells it, and makes room when one ends.
func (b *bounded) state(_ net.Conn, s http.ConnState) {
	if s == http.StateClosed || s == http.StateHijacked {
		<-b.room
	}
}

func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}
