package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// clientVariable makes a process one of clients; see Clients.
const clientVariable = "FOLDHOST_BENCH_CLIENTS"

// task is what a process of clients does. They are as lean as can be, so that what is measured is the server.
type task struct {
	Address string
	// Requests has one for each connection, as it goes over the wire, which is sent again once its answer has come; together they send N. The answers have to be Status.
	Requests  []string
	N, Status int
	// Pause is how long a connection waits before each request.
	Pause time.Duration
	// Streams of Path are followed until each has had the events First to Last, or for ever if there is no such range; Stalled more read nothing but the first frames.
	Path             string
	Streams, Stalled int
	First, Last      int64
}

// report is what came of it.
type report struct {
	Ready bool
	Error string
	// Each is the time of each request, or how long after its making each event came to each stream; ToAll is how long after its making an event had come to all. In ns.
	Each, ToAll quantiles
}

type quantiles struct{ P50, P99 float64 }

func quantilesOf(times []time.Duration) (q quantiles) {
	if len(times) > 0 {
		slices.Sort(times)
		q = quantiles{float64(times[len(times)/2].Nanoseconds()), float64(times[len(times)*99/100].Nanoseconds())}
	}
	return q
}

// Clients does what a process of clients has to do, and is true, where this process was started as one. Programs that measure call it first: who measures a server must not hold its
// clients, whose memory and whose collector it would measure too.
func Clients() bool {
	if os.Getenv(clientVariable) == "" {
		return false
	}
	in := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	r := func() (r report) {
		line, err := in.ReadBytes('\n')
		var t task
		if err == nil {
			err = json.Unmarshal(line, &t)
		}
		if err == nil {
			ready := func() {
				out.Encode(report{Ready: true})
				in.ReadByte() // It begins when it is told to.
			}
			if t.Path != "" {
				r, err = t.follow(ready)
			} else {
				r, err = t.request(ready)
			}
		}
		if err != nil {
			r.Error = err.Error()
		}
		return r
	}()
	out.Encode(r)
	return true
}

// request sends the requests, and measures each.
func (t *task) request(ready func()) (r report, err error) {
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for range t.Requests {
		c, err := net.Dial("tcp", t.Address)
		if err != nil {
			return r, err
		}
		conns = append(conns, c)
	}
	ready()
	times := make([][]time.Duration, len(conns))
	errs := make([]error, len(conns))
	var left atomic.Int64
	left.Store(int64(t.N))
	var working sync.WaitGroup
	for i, c := range conns {
		working.Go(func() {
			in := bufio.NewReaderSize(c, 64<<10)
			for left.Add(-1) >= 0 && errs[i] == nil {
				time.Sleep(t.Pause)
				begun := time.Now()
				errs[i] = t.once(c, in, t.Requests[i])
				times[i] = append(times[i], time.Since(begun))
			}
		})
	}
	working.Wait()
	r.Each = quantilesOf(slices.Concat(times...))
	return r, errors.Join(errs...)
}

// once sends a request and reads the answer, no more of it than it takes.
func (t *task) once(c net.Conn, in *bufio.Reader, request string) error {
	if _, err := io.WriteString(c, request); err != nil {
		return err
	}
	length := int64(-1)
	for n := 0; ; n++ {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		if n == 0 && !bytes.HasPrefix(line, t.status()) {
			return fmt.Errorf("the server answers %s", line)
		}
		if name, value, _ := bytes.Cut(line, []byte(": ")); string(name) == "Content-Length" {
			if length, err = strconv.ParseInt(string(value), 10, 64); err != nil {
				return err
			}
		}
	}
	if length >= 0 {
		_, err := in.Discard(int(length))
		return err
	}
	_, err := io.Copy(io.Discard, httputil.NewChunkedReader(in))
	if err == nil {
		_, err = in.Discard(2) // the line break after the last chunk
	}
	return err
}

func (t *task) status() []byte { return fmt.Appendf(nil, "HTTP/1.1 %d ", t.Status) }

// follow follows streams.
func (t *task) follow(ready func()) (r report, err error) {
	n := t.Streams + t.Stalled
	streams := make([]*reading, n)
	errs := make([]error, n)
	var next atomic.Int64
	var opening sync.WaitGroup
	for range 16 {
		opening.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				streams[i], errs[i] = t.open(i >= int64(t.Streams))
			}
		})
	}
	opening.Wait()
	defer func() {
		for _, s := range streams {
			if s != nil {
				s.conn.Close()
			}
		}
	}()
	if err := errors.Join(errs...); err != nil {
		return r, err
	}
	if t.Last < t.First {
		ready()
		return r, nil
	}
	var working sync.WaitGroup
	for i, s := range streams[:t.Streams] {
		working.Go(func() { errs[i] = s.events(t.First, t.Last) })
	}
	ready()
	working.Wait()
	var each, toAll []time.Duration
	for k := range t.Last - t.First + 1 {
		var last time.Duration
		for _, s := range streams[:t.Streams] {
			if k < int64(len(s.delays)) {
				each, last = append(each, s.delays[k]), max(last, s.delays[k])
			}
		}
		toAll = append(toAll, last)
	}
	r.Each, r.ToAll = quantilesOf(each), quantilesOf(toAll)
	return r, errors.Join(errs...)
}

// reading is the reading end of a stream.
type reading struct {
	conn  net.Conn
	lines *bufio.Reader
	// delays are how long after its making each event came.
	delays []time.Duration
}

// open opens a stream and reads up to its baseline.
func (t *task) open(stalled bool) (*reading, error) {
	c, err := net.Dial("tcp", t.Address)
	if err != nil {
		return nil, err
	}
	s := &reading{conn: c}
	if stalled {
		err = c.(*net.TCPConn).SetReadBuffer(4 << 10)
	}
	if err == nil {
		_, err = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", t.Path, t.Address)
	}
	if err != nil {
		return s, err
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return s, err
	}
	if res.StatusCode != http.StatusOK {
		return s, fmt.Errorf("the server answers %s", res.Status)
	}
	s.lines = bufio.NewReader(res.Body)
	for {
		line, err := s.lines.ReadSlice('\n')
		if err != nil {
			return s, err
		}
		if bytes.HasPrefix(line, []byte("event: session/baseline")) {
			return s, nil
		}
	}
}

// events reads events up to last, which must be all of them from first on.
func (s *reading) events(first, last int64) error {
	for next := first; next <= last; {
		line, err := s.lines.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("event %d: %w", next, err)
		}
		if !bytes.HasPrefix(line, []byte(`data: {"type":"session/event"`)) {
			continue
		}
		now := time.Now().UnixMicro()
		seq, found := member(line, `"seq":`)
		made, dated := member(line, `"at":`)
		if !found || !dated || seq != next {
			return fmt.Errorf("in the place of event %d there is %s", next, line)
		}
		s.delays = append(s.delays, time.Duration(now-made)*time.Microsecond)
		next++
	}
	return nil
}

// member reads the number behind a name.
func member(line []byte, name string) (int64, bool) {
	_, rest, found := bytes.Cut(line, []byte(name))
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(string(rest[:end]), 10, 64)
	return n, found && err == nil
}

// clients are a process of clients, seen from the one that measures.
type clients struct {
	b   *testing.B
	in  io.WriteCloser
	out *json.Decoder
}

// startClients starts a process of clients and waits until they are connected. It ends with the benchmark.
func startClients(b *testing.B, t task) *clients {
	b.Helper()
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), clientVariable+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	c := &clients{b, in, json.NewDecoder(out)}
	line, err := json.Marshal(t)
	if err == nil {
		_, err = in.Write(append(line, '\n'))
	}
	if err != nil {
		b.Fatal(err)
	}
	if !c.report().Ready {
		b.Fatal("the clients have nothing to do")
	}
	return c
}

// begin lets them begin.
func (c *clients) begin() {
	if _, err := c.in.Write([]byte{'\n'}); err != nil {
		c.b.Fatal(err)
	}
}

// report waits for what they say next.
func (c *clients) report() (r report) {
	c.b.Helper()
	if err := c.out.Decode(&r); err != nil {
		c.b.Fatalf("the clients ended: %v", err)
	}
	if r.Error != "" {
		c.b.Fatalf("the clients say: %s", r.Error)
	}
	return r
}
