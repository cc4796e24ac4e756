package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/eventlog/memory"
)

// crowd is how many streams a test opens at once.
func crowd(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// Given a session that many follow, when it is deleted, then each is told so and ends, and nobody follows any more.
func TestADeletionEndsAllStreams(t *testing.T) {
	s := serve(t)
	s.create("s")
	var streams []*follower
	for i := range 100 {
		f := s.follow("s", []string{"", "?events=none", "?after=-1&keys="}[i%3])
		f.opening()
		streams = append(streams, f)
	}
	s.do("DELETE", "/v1/sessions/s", "").want(204)
	for _, f := range streams {
		f.want("session/deleted", `{}`)
		f.ended()
	}
	if n := s.api.Followers(); n > 0 {
		t.Errorf("%d follow it still", n)
	}
}

// inService is a server of a bubble that is served as foldhost serve does.
func inService(t *testing.T, change ...func(*options)) (s *server, l *pipes, end func()) {
	t.Helper()
	o := options{store: memory.New(), units: nil}
	o.host.Session.IdleAfter = -1
	for _, c := range change {
		c(&o)
	}
	s = compose(t, o)
	l = &pipes{calls: make(chan net.Conn), closed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.api.Serve(ctx, l) }()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return l.dial() }}
	s.url, s.http = "http://pipe", &http.Client{Transport: transport}
	return s, l, func() {
		t.Helper()
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
	}
}

// plain opens a stream by hand: a connection that nothing reads but the test.
func plain(t *testing.T, l *pipes, path string) net.Conn {
	t.Helper()
	c, err := l.dial()
	if err == nil {
		_, err = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: pipe\r\n\r\n", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Given many streams, some of which are never read from, when the server is to stop, then those that are read end with a whole frame, and it waits for the others as long as its grace is.
func TestStoppingWithManyStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, end := inService(t)
		defer s.close()
		s.create("s")
		var reading sync.WaitGroup
		for range crowd(1000) {
			c := plain(t, l, "/v1/sessions/s/stream")
			reading.Go(func() {
				defer c.Close()
				res, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Error(err)
					return
				}
				if text, err := io.ReadAll(res.Body); err != nil || !strings.HasSuffix(string(text), "\n\n: the server stops\n\n") {
					t.Errorf("a stream ends with %q, %v", text, err)
				}
			})
		}
		for range 10 {
			defer plain(t, l, "/v1/sessions/s/stream").Close()
		}
		synctest.Wait()
		begun := time.Now()
		end()
		reading.Wait()
		if took := time.Since(begun); took > 11*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Given many streams that have had their first frames, and events, when all of them leave, then nothing is left of them: no follower, no goroutine, no memory.
func TestManyStreamsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, end := inService(t)
		defer s.close()
		defer end()
		s.create("s")
		s.step("s", 10)
		s.http.CloseIdleConnections()
		held := func() (goroutines int, bytes uint64) {
			time.Sleep(time.Hour) // The deadlines of pipes hold them until they pass.
			synctest.Wait()
			for range 3 {
				runtime.GC()
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return runtime.NumGoroutine(), m.HeapAlloc + m.StackInuse
		}
		n := crowd(2000)
		come := func() {
			var conns []net.Conn
			var reading sync.WaitGroup
			for i := range n {
				c := plain(t, l, fmt.Sprintf("/v1/sessions/s/stream?after=%d", i%10-1))
				conns = append(conns, c)
				begun := make(chan struct{})
				reading.Go(func() {
					in := bufio.NewReader(c)
					for line, err := in.ReadString('\n'); err == nil; line, err = in.ReadString('\n') {
						if strings.HasPrefix(line, "data: ") && strings.Contains(line, "session/baseline") {
							close(begun)
						}
					}
				})
				<-begun
			}
			if got := s.api.Followers(); got != n {
				t.Errorf("%d follow", got)
			}
			s.step("s", 10)
			s.get("/v1/sessions/s").want(200)
			s.http.CloseIdleConnections()
			for _, c := range conns {
				c.Close()
			}
			reading.Wait()
		}
		come() // Go keeps what it needs for as many goroutines.
		goroutines, bytes := held()
		come()
		g, b := held()
		if s.api.Followers() > 0 || g > goroutines {
			t.Errorf("%d follow still; %d goroutines, and there were %d", s.api.Followers(), g, goroutines)
		}
		// Each of them had some tens of KiB; what is allowed for is what the heap of a test does by itself, which is up to a MiB and more under the race detector.
		if grown := int64(b) - int64(bytes); grown > 4<<20 {
			t.Errorf("%d bytes more than before, for %d streams", grown, n)
		}
	})
}

// Given somebody who asks and reads nothing of the answer, of whatever kind, when time passes, then the connection ends and nothing of it is left.
func TestWhoNeverReadsIsGivenUp(t *testing.T) {
	for _, path := range []string{
		"/v1/sessions/s/stream", "/v1/sessions/s/stream?after=-1", "/v1/stream?session=s", "/v1/sessions/s/events", "/v1/sessions/s/history", "/v1/sessions/s/export",
		"/v1/sessions/s/messages", "/v1/sessions", "/v1/openapi.json", "/v1/nothing", "/healthz",
	} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, l, end := inService(t)
				defer s.close()
				defer end()
				s.create("s")
				s.step("s", 100)
				s.http.CloseIdleConnections()
				c := plain(t, l, path)
				defer c.Close()
				time.Sleep(40 * time.Second) // WriteTimeout is 30 s.
				if n, err := c.Read(make([]byte, 1)); err == nil || n > 0 {
					t.Errorf("it is still there: %d, %v", n, err)
				}
				synctest.Wait()
				if n := s.api.Followers(); n > 0 {
					t.Errorf("%d follow", n)
				}
			})
		})
	}
}

// Given as many connections as the server may have, who comes next waits until one ends, and is served then; and a server that is full stops as any other.
func TestAFullHouse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, end := inService(t, func(o *options) { o.api = api.Options{MaxConnections: 3} })
		defer s.close()
		s.create("s")
		s.http.CloseIdleConnections()
		synctest.Wait()
		var conns []net.Conn
		for range 3 {
			c := plain(t, l, "/v1/sessions/s/stream")
			go io.Copy(io.Discard, c)
			conns = append(conns, c)
		}
		early := true
		answered := s.later(func() *answer {
			a := s.get("/healthz")
			if early {
				t.Error("a fourth was served beside three")
			}
			return a
		})
		synctest.Wait()
		if n := s.api.Followers(); n != 3 {
			t.Errorf("%d follow", n)
		}
		time.Sleep(20 * time.Second)
		early = false
		conns[0].Close()
		answered().want(200)
		conns[0] = plain(t, l, "/v1/sessions/s/stream")
		go io.Copy(io.Discard, conns[0])
		synctest.Wait()
		end() // It is full again.
		for _, c := range conns {
			c.Close()
		}
	})
}

// Given as many connections as the server may have, of which some are kept without a request, which needs no token, then who comes next is served at once, and the one that was kept for longest ends.
func TestAFullHouseOfNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l, end := inService(t, func(o *options) { o.api = api.Options{MaxConnections: 3} })
		defer s.close()
		s.create("s")
		s.http.CloseIdleConnections()
		synctest.Wait()
		stream := plain(t, l, "/v1/sessions/s/stream")
		go io.Copy(io.Discard, stream)
		began := time.Now()
		var kept []*bufio.Reader
		for range 5 {
			c := plain(t, l, "/healthz")
			defer c.Close()
			in := bufio.NewReader(c)
			res, err := http.ReadResponse(in, nil)
			if err != nil || res.StatusCode != 200 {
				t.Fatalf("%v: %v", res, err)
			}
			io.Copy(io.Discard, res.Body)
			kept = append(kept, in)
			synctest.Wait()
			time.Sleep(time.Second)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		for i, in := range kept[:3] {
			if _, err := in.ReadByte(); err == nil {
				t.Errorf("%d is still there", i)
			}
		}
		if n := s.api.Followers(); n != 1 {
			t.Errorf("%d follow", n)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("those before the last ended after %v", took)
		}
		stream.Close()
		end()
	})
}
