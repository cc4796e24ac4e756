package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/session"
)

// Options of an API. Host must be set.
type Options struct {
	Host *host.Host
	// Store is what is served about the store as a whole; nil is nothing.
	Store Store
	// Metrics answers GET /metrics, as the package metrics does from the Stats of the parts; nil is nothing.
	Metrics http.Handler
	// Tokens are asked for, and say who may do what; nil lets everybody do everything.
	Tokens *Tokens
	// AllowedOrigins are those, such as https://app.example.com, whose pages may call the server, beside its own. Names are those of hosts that it goes by, beside localhost
	// and the hosts of these origins.
	AllowedOrigins, Names []string
	// Logger hears of what callers cannot be told; nil is slog.Default.
	Logger *slog.Logger
	// MaxBodyBytes bounds the body of a request; 0 is 16 MiB: four of the largest events.
	MaxBodyBytes int64
	// BodyTimeout is how long a body may take to come, and one that is imported may pause; WriteTimeout how long a reader may take nothing of what is sent to it; 0 is 1 minute and 30 s.
	BodyTimeout, WriteTimeout time.Duration
	// MaxConnections is how many connections Serve holds at once; for others one without a request ends, or they wait until one does. 0 is any number.
	MaxConnections int
	// Heartbeat is the time between the comments of a stream that has nothing else to say; 0 is 15 s, half of what proxies give up after.
	Heartbeat time.Duration
}

// What requests may ask for. defaultWait is what reads of values wait by themselves as well; maxWait is what clients and proxies usually bear. baselineWait is how long the
// first look of a stream waits for keys that trail, which follow as frames.
const (
	defaultWait  = 2 * time.Second
	maxWait      = time.Minute
	baselineWait = 250 * time.Millisecond
)

// API serves the sessions of a host over HTTP. It is an http.Handler, safe for concurrent use. Close it before the host.
type API struct {
	o        Options
	host     *host.Host
	sessions *session.Set
	hub      *hub
	mux      *http.ServeMux
	access   *access
	served   served

	// stopped is closed by Stop.
	stopped chan struct{}
	stop    sync.Once
	// closing guards closed, and that requests are counted only before it is set.
	closing  sync.Mutex
	closed   bool
	requests sync.WaitGroup
	// tried says that the first start of every plugin has ended.
	tried  atomic.Bool
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// New makes an API over a host.
func New(o Options) *API {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.MaxBodyBytes = cmp.Or(o.MaxBodyBytes, 16<<20)
	o.BodyTimeout = cmp.Or(o.BodyTimeout, time.Minute)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 30*time.Second)
	o.Heartbeat = cmp.Or(o.Heartbeat, 15*time.Second)
	a := &API{o: o, host: o.Host, sessions: o.Host.Sessions(), stopped: make(chan struct{})}
	a.hub = newHub(a.sessions, o.Host.Registry())
	a.access = newAccess(&o)
	a.mux = a.mount()
	var ctx context.Context
	ctx, a.cancel = context.WithCancel(context.Background())
	a.wg.Go(func() { a.tried.Store(a.host.WaitPlugins(ctx) == nil) })
	return a
}

// Stop ends streams and reads that wait, and refuses new ones, so that a server that shuts down has only short requests to wait for. Everything else is
// served on. More than once is harmless.
func (a *API) Stop() {
	a.stop.Do(func() {
		close(a.stopped)
		a.hub.ringAll() // Who follows from now on looks first.
	})
}

// Close is Stop, waits for the requests under way and lets go of the host. What comes later is refused. More than once is harmless.
func (a *API) Close() {
	a.Stop()
	a.closing.Lock()
	a.closed = true
	a.closing.Unlock()
	a.requests.Wait()
	a.cancel()
	a.wg.Wait()
	a.hub.close()
}

// enter counts a request, which ends by requests.Done; false says that none is taken any more.
func (a *API) enter() bool {
	a.closing.Lock()
	defer a.closing.Unlock()
	if !a.closed {
		a.requests.Add(1)
	}
	return !a.closed
}

func (a *API) stopping() bool {
	select {
	case <-a.stopped:
		return true
	default:
		return false
	}
}
