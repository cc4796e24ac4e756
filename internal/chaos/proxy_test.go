//go:build unix

package chaos

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fate is what becomes of a connection.
type fate int

const (
	// spared: nothing. cut: both sides are reset. halved: what the server sends gets lost from then on, and nobody is told. stuck: nothing is read from either side any more.
	spared fate = iota
	cut
	halved
	stuck
)

// proxy passes connections on to a server, for a while. What it does depends on how much has passed, and not on the time.
//
// mu guards random and conns.
type proxy struct {
	listener net.Listener
	upstream string

	mu     sync.Mutex
	random *rand.Rand
	conns  map[*link]bool
	// calm: new connections are spared.
	calm atomic.Bool

	cuts, halves, sticks, delays, refused atomic.Int64
	// cutting has an entry when something was cut.
	cutting chan struct{}
	running sync.WaitGroup
}

// link is a connection through the proxy.
type link struct {
	down, up net.Conn
	fate     fate
	// left is how many bytes pass in either direction until then, and slow whether some of them are late.
	left atomic.Int64
	slow bool
	met  atomic.Bool
	// gone is closed when it has ended.
	gone chan struct{}
	once sync.Once
}

func newProxy(t *testing.T, upstream string, seed uint64) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, upstream: upstream, random: rand.New(rand.NewPCG(seed, 1)), conns: map[*link]bool{}, cutting: make(chan struct{}, 1)}
	p.running.Go(p.serve)
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		for c := range p.conns {
			c.end(false)
		}
		p.mu.Unlock()
		p.running.Wait()
	})
	return p
}

func (p *proxy) url() string { return "http://" + p.listener.Addr().String() }

func (p *proxy) serve() {
	for {
		down, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.pass(down) })
	}
}

// draw gives a connection its fate. Most are cut, after anything from nothing to a few dozen frames, and none is spared, or a writer that has it would write as fast as it can for ever.
func (p *proxy) draw(c *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = true
	if p.calm.Load() {
		return
	}
	switch n := p.random.IntN(100); {
	case n < 90:
		c.fate = cut
	case n < 96:
		c.fate = halved
	default:
		c.fate = stuck
	}
	c.slow = p.random.IntN(4) == 0
	c.left.Store(p.random.Int64N(1 << (9 + p.random.IntN(7)))) // up to 32 KiB, rather little
}

func (p *proxy) pass(down net.Conn) {
	up, err := net.Dial("tcp", p.upstream)
	if err != nil {
		p.refused.Add(1)
		reset(down)
		return
	}
	c := &link{down: down, up: up, gone: make(chan struct{})}
	p.draw(c)
	var both sync.WaitGroup
	both.Go(func() { p.copy(c, up, down, true) })
	both.Go(func() { p.copy(c, down, up, false) })
	both.Wait()
	c.end(false)
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

// copy passes on what comes from one side, until the fate of the connection is due.
func (p *proxy) copy(c *link, to, from net.Conn, asking bool) {
	buf := make([]byte, 2048)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if c.slow && c.fate != spared {
				p.delays.Add(1)
				time.Sleep(p.upTo(30 * time.Millisecond)) // That is the fault.
			}
			pass := int64(n)
			due := false
			if c.fate != spared {
				left := c.left.Add(-int64(n))
				if due = left < 0; due {
					pass = max(0, int64(n)+left)
				}
			}
			if _, err := to.Write(buf[:pass]); err != nil {
				c.end(true)
				return
			}
			if due && !p.meet(c, asking) {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				c.end(true)
			} else if half, ok := to.(*net.TCPConn); ok {
				half.CloseWrite()
			}
			return
		}
	}
}

// meet carries out the fate of a connection, whose bytes are used up; false says that nothing more is passed on in this direction.
func (p *proxy) meet(c *link, asking bool) bool {
	first := c.met.CompareAndSwap(false, true)
	switch c.fate {
	case cut:
		if first {
			p.cuts.Add(1)
			select {
			case p.cutting <- struct{}{}:
			default:
			}
		}
		c.end(true)
		return false
	case halved:
		if first {
			p.halves.Add(1)
		}
		if asking { // Requests go on, and their answers do not come.
			return true
		}
		io.Copy(io.Discard, c.up)
	case stuck:
		if first {
			p.sticks.Add(1)
		}
		if !asking { // The server is not read from, and its buffers fill up.
			<-c.gone
			return false
		}
		io.Copy(io.Discard, c.down)
	}
	c.end(true) // Its client has given it up.
	return false
}

func (p *proxy) upTo(d time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Duration(p.random.Int64N(int64(d)))
}

// wait returns when at least n connections were cut.
func (p *proxy) wait(ctx context.Context, n int64) error {
	for p.cuts.Load() < n {
		select {
		case <-p.cutting:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (c *link) end(hard bool) {
	c.once.Do(func() { close(c.gone) })
	for _, conn := range []net.Conn{c.down, c.up} {
		if hard {
			reset(conn)
		}
		conn.Close()
	}
}

// reset closes a connection so that the other side hears of it as of a fault.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.Close()
}
