package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foldhost/foldhost/eventlog/logtest"
	"github.com/foldhost/foldhost/eventlog/memory"
)

// Given somebody who sends slowly, in whatever part of a request, when time passes, then the connection ends, and the answer says why where one is still due. Time is that of a bubble.
func TestSlowSenders(t *testing.T) {
	post := func(path, more string) string {
		return "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + more + "Content-Length: 100\r\n\r\n"
	}
	for name, c := range map[string]struct {
		// begin is sent at once, then a piece every pause.
		begin, piece string
		pause        time.Duration
		// status is that of the answer, 0 for none; within is when all is over.
		status int
		within time.Duration
	}{
		"nothing at all":                     {"", "", 0, 0, time.Minute},
		"a request line":                     {"GET /heal", "t", 5 * time.Second, 400, time.Minute},
		"headers without an end":             {"GET /healthz HTTP/1.1\r\nHost: x\r\n", "A: b\r\n", time.Second, 0, time.Minute},
		"a body":                             {post("/v1/sessions", ""), " ", 10 * time.Second, 400, 2 * time.Minute},
		"a body that stands still":           {post("/v1/sessions", ""), "", 0, 400, 2 * time.Minute},
		"a body in pieces":                   {strings.Replace(post("/v1/sessions", ""), "Content-Length: 100", "Transfer-Encoding: chunked", 1), "1\r\n \r\n", 10 * time.Second, 400, 2 * time.Minute},
		"the body of what is not there":      {post("/v1/nothing", ""), " ", time.Second, 404, 20 * time.Second},
		"the body of a foreign page":         {post("/v1/sessions", "Origin: https://evil.example\r\n"), " ", time.Second, 403, 20 * time.Second},
		"the body of what no session is for": {post("/v1/sessions/nobody/detach", ""), " ", time.Second, 400, 2 * time.Minute},
		"a body of another type":             {strings.Replace(post("/v1/import", ""), "json", "xml", 1), " ", time.Second, 415, 20 * time.Second},
		"the body of a stream":               {"GET /v1/sessions/s/stream HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", "", 0, 400, 20 * time.Second},
		"a log":                              {strings.Replace(post("/v1/import", ""), "json", "x-ndjson", 1), "", 0, 400, 2 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := compose(t, options{store: memory.New()})
				defer s.close()
				ctx, cancel := context.WithCancel(t.Context())
				l := &pipes{calls: make(chan net.Conn), closed: make(chan struct{})}
				served := make(chan error, 1)
				go func() { served <- s.api.Serve(ctx, l) }()
				conn, err := l.dial()
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				sent := make(chan struct{})
				go func() {
					defer close(sent)
					_, err := io.WriteString(conn, c.begin)
					for err == nil && c.piece != "" {
						time.Sleep(c.pause)
						_, err = io.WriteString(conn, c.piece)
					}
				}()
				conn.SetReadDeadline(began.Add(time.Hour))
				status := 0
				in := bufio.NewReader(conn)
				if res, err := http.ReadResponse(in, nil); err == nil {
					status = res.StatusCode
					io.Copy(io.Discard, res.Body)
				}
				_, err = in.ReadByte()
				if took := time.Since(began); status != c.status || err == nil || took > c.within {
					t.Errorf("it answers %d and ends after %v: %v", status, took, err)
				}
				conn.Close()
				<-sent
				cancel()
				if err := <-served; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What takes longer than a body may is not cut off for it: the body is there.
func TestWorkMayTakeLongerThanABody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := logtest.Slow(memory.New())
		s := serveInBubble(t, func(o *options) { o.store, o.api.BodyTimeout = store, 10*time.Second })
		defer s.close()
		s.create("s")
		gate := store.Hold(logtest.Append)
		done := make(chan *answer, 1)
		go func() { done <- s.post("/v1/sessions/s/events", `{"type":"step","data":1}`) }()
		<-gate.Arrived()
		time.Sleep(20 * time.Second)
		gate.Release()
		(<-done).want(200)
		s.post("/v1/sessions/s/events", `{"type":"step","data":2}`).want(200)
	})
}

// Who takes little gets what is large as well, however long that lasts: else it would be cut off each time in the same place. Who takes next to nothing is given up.
func TestWhatIsLargeComesSlowly(t *testing.T) {
	const size = 4 << 20
	for name, path := range map[string]string{"a stream": "/v1/sessions/s/stream?after=-1&keys=", "an answer": "/v1/sessions/s/events"} {
		for rate, whole := range map[int64]bool{32 << 10: true, 1: false} { // Bytes a second.
			t.Run(fmt.Sprint(name, rate), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := serveInBubble(t)
					defer s.close()
					s.create("s")
					s.post("/v1/sessions/s/events", `{"type":"large","data":"`+strings.Repeat("x", size-500)+`"}`).want(200)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
					if err != nil {
						t.Fatal(err)
					}
					res, err := s.http.Do(r)
					if err != nil {
						t.Fatal(err)
					}
					defer res.Body.Close()
					got := int64(0)
					for began := time.Now(); err == nil && got < size-1000 && time.Since(began) < 2*time.Hour; time.Sleep(time.Second) {
						var n int64
						n, err = io.CopyN(io.Discard, res.Body, rate)
						got += n
					}
					if whole != (got >= size-1000) {
						t.Errorf("%d bytes came: %v", got, err)
					}
				})
			})
		}
	}
}
