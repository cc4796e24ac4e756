package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/memory"
	"github.com/foldhost/foldhost/unit"
)

// copying is a store whose reads give copies, as those of a store on a disk are.
type copying struct{ eventlog.Store }

func (s copying) Read(ctx context.Context, q eventlog.Query) (eventlog.Page, error) {
	page, err := s.Store.Read(ctx, q)
	for i := range page.Events {
		page.Events[i].Data = bytes.Clone(page.Events[i].Data)
	}
	return page, err
}

// wide counts, and its value is large.
type wide struct{ counting }

func (wide) View(s unit.State) (json.RawMessage, error) {
	return fmt.Appendf(nil, `"%s %d"`, strings.Repeat("x", 900<<10), s), nil
}

// Given many who ask for what is large and stop reading in the middle of it, then each holds little: streams share the event or the value that they are sending, whether it is new or has been read
// from the log, and whoever reads a log holds no more than one of its events.
func TestWhatStalledReadersHold(t *testing.T) {
	const (
		size    = 1 << 20
		readers = 50
		// A connection has some tens of KiB by itself, and its part of what all share.
		little = 128 << 10
		one    = size + little
	)
	for name, c := range map[string]struct {
		path string
		// before and after are how many events are there, and come when all follow.
		before, after int
		most          int64
	}{
		"a stream that reads the log":             {"/v1/sessions/s/stream?after=-1", 8, 0, little},
		"a stream of many that reads the log":     {"/v1/stream?session=s&after=-1", 8, 0, little},
		"a stream that has come to the end":       {"/v1/sessions/s/stream?keys=", 1, 8, little},
		"a stream of many that has come to it":    {"/v1/stream?session=s&keys=", 1, 8, little},
		"a stream that begins with a large value": {"/v1/sessions/s/stream?events=none", 1, 0, little},
		"events":            {"/v1/sessions/s/events", 8, 0, one},
		"a page of history": {"/v1/sessions/s/history", 8, 0, one},
		"an export, a line of which is one beside": {"/v1/sessions/s/export", 8, 0, 2 * one},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				def := counter("wide", "large")
				def.ViewSchema = json.RawMessage(`{"type":"string"}`)
				def.Inline = wide{}
				s, l, end := inService(t, func(o *options) { o.store, o.units = copying{memory.New()}, []unit.Definition{def} })
				defer s.close()
				defer end()
				s.create("s")
				add := func(n int) {
					for range n {
						s.post("/v1/sessions/s/events", `{"type":"large","data":"`+strings.Repeat("x", size)+`"}`).want(200)
					}
					s.http.CloseIdleConnections()
				}
				add(c.before)
				held := func() int64 {
					synctest.Wait()
					for range 3 {
						runtime.GC()
					}
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					return int64(m.HeapAlloc)
				}
				before := held()
				var conns []net.Conn
				for range readers {
					conns = append(conns, plain(t, l, c.path))
				}
				// They read up to what is large, and a little of it.
				until := func(marker string) {
					var reading sync.WaitGroup
					for _, conn := range conns {
						reading.Go(func() {
							buf := make([]byte, 1024)
							for got := ""; !strings.Contains(got, marker); {
								n, err := conn.Read(buf)
								if err != nil {
									t.Error(err)
									return
								}
								got += string(buf[:n])
							}
						})
					}
					reading.Wait()
				}
				if c.after > 0 {
					until("session/baseline")
					come := s.later(func() *answer { add(c.after); return s.get("/healthz") })
					until("xxxx")
					come()
				} else {
					until("xxxx")
				}
				each := (held() - before - int64(c.after)*one) / readers
				if each > c.most {
					t.Errorf("each holds %d bytes, and may hold %d", each, c.most)
				}
				for _, conn := range conns {
					conn.Close()
				}
			})
		})
	}
}
