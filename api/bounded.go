package api

import (
	"container/list"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// bounded is a listener that holds so many connections at once. When there are as many one that is kept without a request ends, the one that has been longest: it needs no token, and would else
// keep out those who ask something. Where there is none, who comes waits where the system lets them wait, until one ends: the files that a process may open are the store's and the plugins' too, and
// a connection less is the smallest harm.
type bounded struct {
	net.Listener
	log *slog.Logger
	// room has a place for each connection.
	room   chan struct{}
	closed chan struct{}
	once   sync.Once
	// told is when a full house was logged last. Accept alone touches it.
	told time.Time

	// mu guards the rest: the connections without a request, the one that has been for longest first, and whether one of them is to end.
	mu     sync.Mutex
	idle   *list.List
	places map[net.Conn]*list.Element
	wanted bool
}

func newBounded(l net.Listener, n int, log *slog.Logger) *bounded {
	return &bounded{Listener: l, log: log, room: make(chan struct{}, n), closed: make(chan struct{}), idle: list.New(), places: map[net.Conn]*list.Element{}}
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
		b.want(true)
		defer b.want(false)
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

// want says whether a connection without a request is to end.
func (b *bounded) want(wanted bool) {
	b.mu.Lock()
	b.wanted = wanted
	one := b.spare()
	b.mu.Unlock()
	if one != nil {
		one.Close()
	}
}

// spare takes the connection that is to end, if one is to and there is one. mu is held.
func (b *bounded) spare() net.Conn {
	first := b.idle.Front()
	if !b.wanted || first == nil {
		return nil
	}
	b.wanted = false
	one := b.idle.Remove(first).(net.Conn)
	delete(b.places, one)
	return one
}

// state hears of every connection, as http.Server tells it, and makes room when one ends.
func (b *bounded) state(c net.Conn, s http.ConnState) {
	b.mu.Lock()
	if at := b.places[c]; at != nil {
		b.idle.Remove(at)
		delete(b.places, c)
	}
	if s == http.StateIdle {
		b.places[c] = b.idle.PushBack(c)
	}
	one := b.spare()
	b.mu.Unlock()
	if one != nil {
		one.Close()
	}
	if s == http.StateClosed || s == http.StateHijacked {
		<-b.room
	}
}

func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}
