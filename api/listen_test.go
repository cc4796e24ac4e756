package api_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
)

func TestOnlyThisMachineIsServed(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "127.8.8.8:0", "localhost:0"} {
		l, err := api.Listen(t.Context(), address, nil)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		l.Close()
	}
	for _, address := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "8.8.8.8:7420", "7420", "", "127.0.0.1", "nobody.invalid:0"} {
		l, err := api.Listen(t.Context(), address, nil)
		if e := (*api.ListenError)(nil); !errors.As(err, &e) || e.Address != address {
			t.Errorf("%s: %v", address, err)
		}
		if l != nil {
			l.Close()
		}
	}
	// What is no address anywhere is told from what cannot be had here.
	for address, malformed := range map[string]bool{
		"127.0.0.1:99999": true, "127.0.0.1:-1": true, "127.0.0.1:": false, "127.0.0.1:none-such": true, "127.0.0.1:1e3": true, ":65536": true, "::1:0": true, "127.0.0.1": true, "nobody.invalid:0": false, ":0": false,
	} {
		err := api.CheckAddress(t.Context(), address, nil)
		if e := (*api.ListenError)(nil); malformed && (!errors.As(err, &e) || !e.Malformed) || errors.As(err, &e) && e.Malformed != malformed {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := api.Listen(t.Context(), "192.0.2.1:0", &api.Tokens{}); err == nil || strings.Contains(err.Error(), "port,") {
		t.Errorf("an address of another machine: %v", err)
	}
	taken, err := api.Listen(t.Context(), "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = api.Listen(t.Context(), taken.Addr().String(), nil)
	if e := (*api.ListenError)(nil); !errors.As(err, &e) || e.Err == nil {
		t.Errorf("a port that is taken: %v", err)
	}
}

// Given an append, a stream and a read that waits, when the server is to end, then the append is finished and answered, and the other two are ended.
func TestServeEndsInOrder(t *testing.T) {
	store := logtest.Slow(memory.New())
	s := compose(t, options{store: store})
	defer s.close()
	l, err := api.Listen(t.Context(), "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	s.url, s.http = "http://"+l.Addr().String(), &http.Client{Transport: transport}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- s.api.Serve(ctx, l) }()

	s.create("s")
	f := s.follow("s", "")
	f.opening()
	// Both have arrived, or the server would rightly know nothing of them when it ends.
	look := store.Hold(logtest.Info)
	waiting := s.later(func() *answer { return s.get("/v1/sessions/s/projections?minSeq=99&wait=1m") })
	<-look.Arrived()
	look.Release()
	gate := store.Hold(logtest.Append)
	appended := s.later(func() *answer { return s.post("/v1/sessions/s/events", `{"type":"step","data":1}`) })
	<-gate.Arrived()
	cancel()
	waiting().problem(503, "overloaded")
	f.ended()
	select {
	case err := <-served:
		t.Fatalf("it ended before the append did: %v", err)
	default:
	}
	gate.Release()
	appended().want(200)
	if err := <-served; err != nil {
		t.Error(err)
	}
	if _, err := s.http.Get(s.url + "/healthz"); err == nil {
		t.Error("it still answers")
	}
	// A handler that is asked after the end refuses.
	s.api.Close()
	w := &recorder{header: http.Header{}}
	s.api.ServeHTTP(w, mustRequest(t, "/v1/sessions"))
	if w.status != 503 || !strings.Contains(w.text.String(), `"overloaded"`) {
		t.Errorf("after the end: %d %s", w.status, w.text.String())
	}
}

// Headers are bounded.
func TestHeadersAreBounded(t *testing.T) {
	s := compose(t, options{store: memory.New()})
	defer s.close()
	l, err := api.Listen(t.Context(), "127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- s.api.Serve(ctx, l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET /healthz HTTP/1.1\r\nX: "+strings.Repeat("x", 128<<10)+"\r\n\r\n")
	conn.SetReadDeadline(time.Now().Add(patient))
	answer, err := io.ReadAll(conn)
	if !strings.Contains(string(answer), "431") {
		t.Errorf("headers of 128 KiB: %q, %v", answer, err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// recorder is a response in memory.
type recorder struct {
	header http.Header
	status int
	text   strings.Builder
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.text.Write(p) }

func mustRequest(t *testing.T, path string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
