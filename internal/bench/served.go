package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/sqlite"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/internal/heapfloor"
	"github.com/foldhost/foldhost/session"
)

// serveHost serves a host on loopback as `foldhost serve` does, and gives the address. It ends with the benchmark.
func serveHost(b *testing.B, h *host.Host, change ...func(net.Listener) net.Listener) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	address := l.Addr().String()
	for _, c := range change {
		l = c(l)
	}
	a := api.New(api.Options{Host: h, Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- a.Serve(ctx, l) }()
	b.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			b.Error(err)
		}
		a.Close()
	})
	return address
}

// CalledAppend is StoredAppend in a process that collects garbage as foldhost serve does, as ServedAppend and BareAppend are too. With a pause, each caller waits so long before each append.
func CalledAppend(sessions int, pause time.Duration) func(*testing.B) {
	return func(b *testing.B) {
		b.Cleanup(heapfloor.Set())
		storedAppend(sessions, sessions, pause)(b)
	}
}

// NowAndThen is the pause before appends of a program whose appends are not one long row: by then its process, the server's, and the processor have gone to sleep.
const NowAndThen = 5 * time.Millisecond

// ServedAppend measures CalledAppend over HTTP: so many connections of another process, each of which sends one append after the other to its session. An operation is one append; p50-ns is
// the median of what one takes.
func ServedAppend(sessions int, pause time.Duration) func(*testing.B) {
	return servedAppend(sessions, pause, func(b *testing.B, h *host.Host) string { return serveHost(b, h) })
}

// BareAppend is ServedAppend of the least that could be a server: it makes the append that it has made before, and says that it has.
func BareAppend(sessions int) func(*testing.B) {
	_, data := logged(1)
	return servedAppend(sessions, 0, func(b *testing.B, h *host.Host) string {
		return serveBare(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			s, err := h.Sessions().Open(r.Context(), strings.Split(r.URL.Path, "/")[3])
			if err == nil {
				_, err = s.Append(r.Context(), event.AssistantChunk, data, session.Intent{})
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			io.WriteString(w, "{}")
		}))
	})
}

// BarestAppend is BareAppend from one connection and without HTTP: what comes over the connection is read and not looked at, and the answer is always the same bytes. No server on TCP takes less.
func BarestAppend(b *testing.B) {
	_, data := logged(1)
	servedAppend(1, 0, func(b *testing.B, h *host.Host) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		answering := make(chan error, 1)
		go func() { answering <- answerAppends(l, h, data) }()
		b.Cleanup(func() {
			l.Close()
			if err := <-answering; err != nil {
				b.Error(err)
			}
		})
		return l.Addr().String()
	})(b)
}

// answerAppends makes an append for whatever is read from the first connection, until that ends. A request fits into one read.
func answerAppends(l net.Listener, h *host.Host, data []byte) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	s, err := h.Sessions().Open(context.Background(), "s0")
	if err != nil {
		return err
	}
	request := make([]byte, 64<<10)
	for {
		if _, err := conn.Read(request); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if _, err := s.Append(context.Background(), event.AssistantChunk, data, session.Intent{}); err != nil {
			return err
		}
		if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
			return err
		}
	}
}

func servedAppend(sessions int, pause time.Duration, serve func(*testing.B, *host.Host) string) func(*testing.B) {
	return func(b *testing.B) {
		b.Cleanup(heapfloor.Set())
		h := newHost(b, openStore(b, b.TempDir()))
		address := serve(b, h)
		_, data := logged(1)
		body := fmt.Sprintf(`{"type":%q,"data":%s}`, event.AssistantChunk, data)
		t := task{Address: address, N: b.N, Status: http.StatusOK, Pause: pause}
		for i := range sessions {
			newSession(b, h, fmt.Sprint("s", i))
			t.Requests = append(t.Requests, fmt.Sprintf("POST /v1/sessions/s%d/events HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", i, address, len(body), body))
		}
		c := startClients(b, t)
		b.ResetTimer()
		c.begin()
		r := c.report()
		b.StopTimer()
		b.ReportMetric(r.Each.P50, "p50-ns")
	}
}

// ServedHistory measures the last page of a session of 100,000 events that is not live, with its values, over HTTP: 50 messages, some 20 events to each. An operation is one page.
func ServedHistory(b *testing.B) {
	const events = 100_000
	store := stock(b, "messages", func(store *sqlite.Store) {
		talk(b, store, "log", events)
		h := newHost(b, store, shipped(b)...)
		if _, err := h.Values(context.Background(), "log"); err != nil {
			b.Fatal(err)
		}
		if err := h.Close(); err != nil { // rows are written when it returns
			b.Fatal(err)
		}
	})
	h := newHost(b, store, shipped(b)...)
	address := serveHost(b, h)
	request := fmt.Sprintf("GET /v1/sessions/log/history HTTP/1.1\r\nHost: %s\r\n\r\n", address)
	c := startClients(b, task{Address: address, Requests: []string{request}, N: b.N, Status: http.StatusOK})
	b.ResetTimer()
	c.begin()
	r := c.report()
	b.StopTimer()
	b.ReportMetric(r.Each.P50, "p50-ns")
}

// talk stores a log in which every twentieth event is a message.
func talk(b *testing.B, store eventlog.Store, id string, n int64) {
	b.Helper()
	_, err := store.Create(context.Background(), eventlog.Creation{Header: event.Header{ID: id}, Events: func(yield func(event.Event, error) bool) {
		for seq := range n {
			ev := event.Event{Seq: seq, Time: 1_700_000_000_000 + 20*seq}
			ev.Type, ev.Data = logged(seq)
			if seq%20 == 19 {
				text := strings.Repeat("a line of what was said, ", 16)
				ev.Type, ev.Op = event.UserMessage, event.Append()
				ev.Data = fmt.Appendf(nil, `{"id":"m%d","role":"user","content":[{"type":"text","text":%q}],"source":{"kind":"user"}}`, seq, text)
			}
			if !yield(ev, nil) {
				return
			}
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
}

const (
	// Of streams to one session: each of the events of a run goes to each of them, and the run has so many events a second.
	fanStreams, fanEvents, fanRate = 1_000, 40, 20
	idleStreams                    = 5_000
	// Of the streams beside one that stands still.
	fewStreams, fewEvents, fewRate = 50, 3_000, 1_000
)

// dated is the data of an event that says when it was made.
func dated() json.RawMessage {
	return fmt.Appendf(nil, `{"at":%d,"turn":1,"step":1,"chunk":{"type":"text-delta","index":0,"text":"a word or two "}}`, time.Now().UnixMicro())
}

// paced does n things, so many a second, on a few goroutines, and gives how long each took.
func paced(n, rate, goroutines int, do func()) []time.Duration {
	times := make([]time.Duration, n)
	begun := time.Now()
	var working sync.WaitGroup
	for g := range goroutines {
		working.Go(func() {
			for i := g; i < n; i += goroutines {
				time.Sleep(time.Until(begun.Add(time.Duration(i) * time.Second / time.Duration(rate))))
				start := time.Now()
				do()
				times[i] = time.Since(start)
			}
		})
	}
	working.Wait()
	return times
}

// FanOut measures 1,000 streams of one stored session that gets 20 events a second, full sync. An operation is a run of 40 events, each of which must come to each stream, in order; p50-ms
// is the median of how long after its making an event has come to all. Units are counters that fold the events.
func FanOut(units int) func(*testing.B) {
	return func(b *testing.B) {
		h := newHost(b, openStore(b, b.TempDir()), counters(units, "note")...)
		s := newSession(b, h, "s")
		t := task{Address: serveHost(b, h), Path: "/v1/sessions/s/stream", Streams: fanStreams, Last: -1}
		for b.Loop() {
			fanOut(b, t, func() {
				if _, err := s.Append(context.Background(), "note", dated(), session.Intent{}); err != nil {
					b.Error(err)
				}
			})
			t.Last += fanEvents // where the next run begins
		}
	}
}

// FanOutMany is FanOut of 200 streams, each of the same 20 sessions, one of which gets the events.
func FanOutMany(b *testing.B) {
	h := newHost(b, openStore(b, b.TempDir()))
	s := newSession(b, h, "s")
	t := task{Address: serveHost(b, h), Path: "/v1/stream?session=s", Streams: fanStreams / 5, Last: -1}
	for i := range 19 {
		newSession(b, h, fmt.Sprint("other", i))
		t.Path += fmt.Sprint("&session=other", i)
	}
	for b.Loop() {
		fanOut(b, t, func() {
			if _, err := s.Append(context.Background(), "note", dated(), session.Intent{}); err != nil {
				b.Error(err)
			}
		})
		t.Last += fanEvents
	}
}

func fanOut(b *testing.B, t task, publish func()) {
	b.Helper()
	t.First, t.Last = t.Last+1, t.Last+fanEvents
	c := startClients(b, t)
	c.begin()
	paced(fanEvents, fanRate, 1, publish)
	b.ReportMetric(c.report().ToAll.P50/1e6, "p50-ms")
}

// BareFanOut is FanOut of the least that could be a server: it holds the frames of a session, made once, and each stream writes those that it has not written.
func BareFanOut(b *testing.B) {
	bare := newBare()
	t := task{Address: serveBare(b, bare), Path: "/", Streams: fanStreams, Last: -1}
	for b.Loop() {
		fanOut(b, t, bare.publish)
		t.Last += fanEvents
	}
}

// bare is that server.
type bare struct {
	mu     sync.Mutex
	frames [][]byte
	bells  map[chan struct{}]bool
}

func newBare() *bare { return &bare{bells: map[chan struct{}]bool{}} }

func (s *bare) publish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	seq := len(s.frames)
	ev := event.Event{Type: "note", Seq: int64(seq), Time: time.Now().UnixMilli(), Data: dated()}
	frame := fmt.Appendf(nil, "event: session/event\nid: 0123456789abcdef0123456789:%d\ndata: {\"type\":\"session/event\",\"sessionId\":\"s\",\"event\":%s}\n\n", seq, ev.AppendJSON(nil))
	s.frames = append(s.frames, frame)
	for bell := range s.bells {
		select {
		case bell <- struct{}{}:
		default:
		}
	}
}

func (s *bare) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	bell := make(chan struct{}, 1)
	s.mu.Lock()
	at := len(s.frames)
	s.bells[bell] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.bells, bell)
	}()
	w.Write([]byte("event: session/baseline\ndata: {\"type\":\"session/baseline\"}\n\n"))
	for conn.Flush() == nil {
		select {
		case <-bell:
		case <-r.Context().Done():
			return
		}
		s.mu.Lock()
		frames := s.frames[at:]
		s.mu.Unlock()
		at += len(frames)
		for _, frame := range frames {
			w.Write(frame)
		}
	}
}

// serveBare serves on loopback until the benchmark ends, and gives the address.
func serveBare(b *testing.B, handler http.Handler) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	served := make(chan struct{})
	go func() {
		defer close(served)
		server.Serve(l)
	}()
	b.Cleanup(func() {
		server.Close()
		<-served
	})
	return l.Addr().String()
}

// IdleStreams measures the memory of 5,000 streams of one stored session with the values of the units that ship, on which nothing happens. An operation is all of them; bytes/stream is the
// share of one in the heap and in the stacks.
func IdleStreams(b *testing.B) {
	h := newHost(b, openStore(b, b.TempDir()), shipped(b)...)
	s := newSession(b, h, "s")
	for n := range int64(200) {
		typ, data := logged(n)
		if _, err := s.Append(b.Context(), typ, data, session.Intent{}); err != nil {
			b.Fatal(err)
		}
	}
	idle(b, serveHost(b, h), "/v1/sessions/s/stream")
}

// BareIdleStreams is IdleStreams of the least that could be a server.
func BareIdleStreams(b *testing.B) { idle(b, serveBare(b, newBare()), "/") }

func idle(b *testing.B, address, path string) {
	for b.Loop() {
		before := heapAndStacks()
		c := startClients(b, task{Address: address, Path: path, Streams: idleStreams, Last: -1})
		after := heapAndStacks()
		b.ReportMetric(float64(after-before)/idleStreams, "bytes/stream")
		c.begin() // They leave.
		c.report()
	}
}

// heapAndStacks is what the heap and the stacks take, once stacks that were deep a moment ago have shrunk as far as they do.
func heapAndStacks() uint64 {
	for range 5 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// BesideStalled measures 50 streams of one stored session that gets 1,000 events a second, full sync, with so many more that do not read. An operation is a run of 3,000 events;
// append-p99-ms and stream-p99-ms are what an append takes and how long after its making an event comes, KiB is by how much the heap has grown.
func BesideStalled(stalled int) func(*testing.B) {
	return func(b *testing.B) {
		h := newHost(b, openStore(b, b.TempDir()))
		s := newSession(b, h, "s")
		address := serveHost(b, h, func(l net.Listener) net.Listener { return shortBuffers{l} })
		t := task{Address: address, Path: "/v1/sessions/s/stream", Streams: fewStreams, Stalled: stalled, Last: -1}
		for b.Loop() {
			t.First, t.Last = t.Last+1, t.Last+fewEvents
			c := startClients(b, t)
			before := heap()
			c.begin()
			appends := quantilesOf(paced(fewEvents, fewRate, 4, func() {
				if _, err := s.Append(context.Background(), "note", dated(), session.Intent{}); err != nil {
					b.Error(err)
				}
			}))
			after := heap()
			b.ReportMetric(appends.P99/1e6, "append-p99-ms")
			b.ReportMetric(c.report().Each.P99/1e6, "stream-p99-ms")
			b.ReportMetric((float64(after)-float64(before))/1024, "KiB")
		}
	}
}

// shortBuffers is a listener whose connections hold little of what nobody reads, so that who does not read is felt.
type shortBuffers struct{ net.Listener }

func (l shortBuffers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(8 << 10)
	}
	return c, err
}
