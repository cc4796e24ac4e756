package client

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// InProcess carries requests to a handler of this process, without a port and without copies of what is in flight: for programs that embed a server and want to be its client as well.
// Give it to an http.Client. A handler runs on a goroutine of its own for as long as it wants; an answer that nobody reads ends when its body is closed.
func InProcess(h http.Handler) http.RoundTripper { return inProcess{h} }

type inProcess struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	in := r.Clone(ctx)
	in.RequestURI, in.RemoteAddr = in.URL.RequestURI(), "in-process"
	if in.Host == "" {
		in.Host = in.URL.Host
	}
	from, to := net.Pipe() // Which, unlike io.Pipe, has deadlines: a handler gives up a reader that takes nothing.
	a := &answering{header: http.Header{}, to: to, begun: make(chan struct{})}
	finish := a.ask(ctx, in)
	// Neither end of a pipe hears of the end of a context by itself.
	stop := context.AfterFunc(ctx, func() { from.Close() })
	go func() {
		defer finish()
		defer func() {
			if v := recover(); v != nil && v != http.ErrAbortHandler {
				a.end(fmt.Errorf("the handler panicked: %v", v))
			} else if v != nil {
				a.end(io.ErrUnexpectedEOF)
			} else {
				a.WriteHeader(http.StatusOK)
				a.end(nil)
			}
		}()
		p.handler.ServeHTTP(a, in)
	}()
	select {
	case <-a.begun:
	case <-ctx.Done():
		cancel()
		return nil, ctx.Err()
	}
	if a.status == 0 {
		cancel()
		return nil, a.failed
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: a.sent, ContentLength: -1, Request: r,
		Body: &answerBody{from, a, r.Context(), func() { stop(); cancel() }},
	}, nil
}

// answering is the handler's side of an answer. once guards what is set when it begins; begun is closed then.
type answering struct {
	header, sent http.Header
	to           net.Conn
	// asking is nil for a request whose body is in memory, or that has none.
	asking *asking
	once   sync.Once
	begun  chan struct{}
	// status is 0 for a handler that ended without an answer.
	status int
	// failed says how it ended, and is set before the pipe is closed.
	failed error
}

func (a *answering) Header() http.Header { return a.header }

func (a *answering) WriteHeader(status int) {
	a.once.Do(func() {
		a.status, a.sent = status, a.header.Clone()
		close(a.begun)
	})
}

func (a *answering) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.to.Write(p)
}

// FlushError and the deadlines implement what http.ResponseController asks for. Nothing is held back.
func (a *answering) FlushError() error {
	a.WriteHeader(http.StatusOK)
	return nil
}

func (a *answering) SetWriteDeadline(t time.Time) error { return a.to.SetWriteDeadline(t) }

func (a *answering) SetReadDeadline(t time.Time) error {
	if a.asking == nil {
		return nil // Nobody waits for it.
	}
	return a.asking.from.SetReadDeadline(t)
}

// end ends the answer.
func (a *answering) end(err error) {
	a.failed = err
	a.once.Do(func() { close(a.begun) })
	a.to.Close()
}

// answerBody is the reader's side. Closing it ends the request.
type answerBody struct {
	from   net.Conn
	answer *answering
	ctx    context.Context
	done   func()
}

func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	switch {
	case err == nil:
	case b.ctx.Err() != nil:
		err = b.ctx.Err()
	case err == io.EOF && b.answer.failed != nil: // The other end is closed, so it is set.
		err = b.answer.failed
	}
	return n, err
}

func (b *answerBody) Close() error {
	b.done()
	return b.from.Close()
}

// asking is the handler's side of a body that comes from elsewhere: whoever gives it may stand still, and a handler must not wait for that longer than it wants to, or than there is a request.
type asking struct {
	from net.Conn
	ctx  context.Context
	// failed says how the body ended, and is set before the other end is closed.
	failed error
}

// ask gives a request its body. finish is for the end of the handler: it ends what brings the body, and waits for that.
func (a *answering) ask(ctx context.Context, in *http.Request) (finish func()) {
	switch body := in.Body; {
	case body == nil:
		in.Body = http.NoBody
		return func() {}
	case body == http.NoBody || in.GetBody != nil: // By which the package http knows bodies in memory.
		return func() { body.Close() }
	default:
		from, to := net.Pipe()
		a.asking = &asking{from: from, ctx: ctx}
		in.Body = a.asking
		// Closing the body is what ends a read of it, as far as it can be ended. The handler does not wait for that, as its own end of the pipe is closed too.
		end := sync.OnceFunc(func() { from.Close(); body.Close() })
		stop := context.AfterFunc(ctx, end)
		brought := make(chan struct{})
		go func() {
			defer close(brought)
			_, a.asking.failed = io.Copy(to, body)
			to.Close()
		}()
		return func() { stop(); end(); <-brought }
	}
}

func (b *asking) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	switch {
	case err == nil:
	case b.ctx.Err() != nil:
		err = b.ctx.Err()
	case err == io.EOF && b.failed != nil:
		err = b.failed
	}
	return n, err
}

func (b *asking) Close() error { return b.from.Close() }
