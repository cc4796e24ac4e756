package api_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/unit"
)

// serveInBubble is serve for a test in a bubble of testing/synctest: its network is made of pipes, which hold nothing, so that time stands still only when everybody waits
// and a reader that does not read is felt at once. The caller closes it.
func serveInBubble(t testing.TB, change ...func(*options)) *server {
	t.Helper()
	o := options{store: memory.New(), units: []unit.Definition{counter("steps", "step")}}
	o.host.Session.IdleAfter = -1
	for _, c := range change {
		c(&o)
	}
	s := compose(t, o)
	l := &pipes{calls: make(chan net.Conn), closed: make(chan struct{})}
	web := &http.Server{Handler: s.api}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return l.dial() }}
	s.url, s.http = "http://pipe", &http.Client{Transport: transport}
	end := s.close
	s.close = func() {
		s.api.Stop()
		transport.CloseIdleConnections()
		web.Shutdown(context.Background())
		<-served
		end()
	}
	return s
}

// abandoned sends a request that is given up with ctx.
func (s *server) abandoned(ctx context.Context, path string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := s.http.Do(r)
	if err == nil {
		res.Body.Close()
	}
	return err
}

// pipes is a listener whose connections are net.Pipe.
type pipes struct {
	calls  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) dial() (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.calls <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, io.ErrClosedPipe
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.calls:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
