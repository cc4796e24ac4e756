package launch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// Options of a Launcher. The zero value is usable.
type Options struct {
	// Logger gets what plugins write, each with its name, and what happens to them. nil discards it.
	Logger *slog.Logger
	// SocketDir is where sockets lie while plugins start; empty picks one. It must belong to the host's user and be short.
	SocketDir string
}

// Launcher starts plugin processes of one host. Safe for concurrent use.
type Launcher struct {
	logger  *slog.Logger
	sockets *sockets
	thread  *thread
	// ctx ends when the launcher closes, and every start with it.
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	closed  bool
	running map[*Process]struct{}
	// busy counts starts and processes.
	busy sync.WaitGroup
}

// New makes a launcher and removes what hosts that died have left behind. Errors: *SocketDirError. Close it.
func New(o Options) (*Launcher, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	sockets, err := openSockets(o.SocketDir)
	if err != nil {
		return nil, err
	}
	l := &Launcher{logger: o.Logger, sockets: sockets, thread: newThread(), running: map[*Process]struct{}{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l, nil
}

// ErrClosed is what Start says after Close.
var ErrClosed = errors.New("the launcher is closed")

// Spec says what to start and how.
type Spec struct {
	// Plugin is the operator's name for it, in errors and logs. Presets are told beside it in logs: they are there for one of several processes of a
	// plugin; empty for none.
	Plugin, Presets string
	Path            string
	Args            []string
	// Env are the plugin's own variables, "NAME=value". They win over those that it gets of the host's.
	Env []string
	// SHA256, in hex, pins the file: what was hashed is what is executed. Empty does not pin.
	SHA256 string
	// MTLS turns on mutual TLS. On systems without unix sockets it is on anyway.
	MTLS     bool
	Timeouts Timeouts
}

// Timeouts of one plugin. Zero is the default.
type Timeouts struct {
	// Start bounds Start: from the checks of the file until the connection stands. 10 s: a Go plugin takes 20 ms, one in Python up
	// to 2 s, and virus scanners have been seen to hold a first start for longer.
	Start time.Duration
	// Drain bounds the answer to Drain. 5 s.
	Drain time.Duration
	// Exit is how long a process that was asked to end may take before it gets SIGTERM, and then again before SIGKILL. 2 s.
	Exit time.Duration
}

func (t Timeouts) withDefaults() Timeouts {
	set := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	set(&t.Start, 10*time.Second)
	set(&t.Drain, 5*time.Second)
	set(&t.Exit, 2*time.Second)
	return t
}

// Close ends every process at once, without asking, waits until nothing of them is left, and ends the launcher. Whoever wants them
// asked calls Process.Stop before.
func (l *Launcher) Close() {
	l.mu.Lock()
	already := l.closed
	l.closed = true
	l.cancel()
	for p := range l.running {
		p.child.expect()
		p.child.kill("")
	}
	l.mu.Unlock()
	l.busy.Wait()
	if !already {
		l.thread.close()
	}
}

// enter counts a start in; the launcher does not end before leave.
func (l *Launcher) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.busy.Add(1)
	return true
}

func (l *Launcher) leave() { l.busy.Done() }

// adopt counts a process in that runs; false when the launcher is closing.
func (l *Launcher) adopt(p *Process) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.running[p] = struct{}{}
	l.busy.Add(1)
	return true
}

func (l *Launcher) forget(p *Process) {
	l.mu.Lock()
	delete(l.running, p)
	l.mu.Unlock()
	l.busy.Done()
}
