package client_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/internal/countunit"
	"github.com/foldhost/foldhost/unit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counting counts "step" events, and fails at "break".
type counting = countunit.Inline

func steps() unit.Definition {
	schema := json.RawMessage(`{"type":"integer"}`)
	return unit.Definition{Key: "steps", StateVersion: 1, StateSchema: schema, ViewSchema: schema, Events: []string{"step", "break"}, Inline: counting{}}
}

// server is a real API over a host with the unit "steps".
type server struct {
	t     testing.TB
	store eventlog.Store
	host  *host.Host
	api   *api.API
	url   string
	close func()
}

// serve starts a server over a store, a new one for nil; it ends with the test.
func serve(t testing.TB, store eventlog.Store, o api.Options, change ...func(*host.Options)) *server {
	t.Helper()
	s := &server{t: t, store: store}
	if store == nil {
		s.store = memory.New()
	}
	of := host.Options{Store: s.store, Logger: slog.New(slog.DiscardHandler)}
	for _, c := range change {
		c(&of)
	}
	var err error
	if s.host, err = host.Open(of); err != nil {
		t.Fatal(err)
	}
	if _, err := s.host.Register("test", steps()); err != nil {
		t.Fatal(err)
	}
	o.Host, o.Logger = s.host, slog.New(slog.DiscardHandler)
	s.api = api.New(o)
	web := httptest.NewServer(s.api)
	s.url = web.URL
	s.close = sync.OnceFunc(func() {
		s.api.Stop()
		web.Close()
		s.api.Close()
		if err := s.host.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.close)
	return s
}

// client talks to the server, or to what stands before it.
func (s *server) client(change ...func(*client.Options)) *client.Client {
	s.t.Helper()
	o := client.Options{URL: s.url}
	for _, c := range change {
		c(&o)
	}
	return dial(s.t, o)
}

func dial(t testing.TB, o client.Options) *client.Client {
	t.Helper()
	c, err := client.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// inProcess is a client without a network.
func (s *server) inProcess() *client.Client {
	return dial(s.t, client.Options{URL: "http://in.process", HTTP: &http.Client{Transport: client.InProcess(s.api)}})
}

// bounded is a context that no test that passes waits out.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// step is an event that counts.
func step(n int) client.Item {
	return client.Item{Type: "step", Data: map[string]int{"n": n}}
}

// fill makes a session of n steps.
func fill(t testing.TB, c *client.Client, id string, n int) {
	t.Helper()
	if _, _, err := c.Create(bounded(t), client.NewSession{ID: id}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := c.Append(bounded(t), id, []client.Item{step(i)}, client.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// carrier is a RoundTripper made of a function.
type carrier func(*http.Request) (*http.Response, error)

func (f carrier) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// cutting is a proxy before a server. Each connection ends once so many bytes of answers have passed, cut in the middle of whatever it is; next says how many, and −1 is no end.
type cutting struct {
	url  string
	cuts func() int
}

func cut(t testing.TB, target string, next func() int64) *cutting {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	cuts, open := 0, map[net.Conn]bool{}
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", strings.TrimPrefix(target, "http://"))
			if err != nil {
				in.Close()
				continue
			}
			mu.Lock()
			open[in], open[out] = true, true
			limit := next()
			mu.Unlock()
			all.Go(func() { io.Copy(out, in); out.Close(); in.Close() })
			all.Go(func() {
				if limit < 0 {
					io.Copy(in, out)
				} else {
					io.CopyN(in, out, limit)
					mu.Lock()
					cuts++
					mu.Unlock()
				}
				in.Close()
				out.Close()
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for c := range open {
			c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return &cutting{"http://" + l.Addr().String(), func() int { mu.Lock(); defer mu.Unlock(); return cuts }}
}

// dialMoving makes a client of a server that may be another one by the next request: each goes to what now points to.
func dialMoving(t *testing.T, now **server) *client.Client {
	t.Helper()
	net := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(net.CloseIdleConnections)
	return dial(t, client.Options{URL: "http://localhost", HTTP: &http.Client{Transport: carrier(func(r *http.Request) (*http.Response, error) {
		r.URL.Host = strings.TrimPrefix((*now).url, "http://")
		return net.RoundTrip(r)
	})}})
}
