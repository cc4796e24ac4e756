// Package registry owns ref-counted registrations of units, the per-session cells that fold them, snapshots, the change
// feed, and the algebra of checkpoint rows. It knows neither sessions nor go-plugin, and it never writes to a log.
//
// What guards what, in the order in which locks may be taken:
//
//	Registry.mu   registrations, sets, the list of sessions, generation. Never held while a session's lock is taken.
//	Session.mu    one session's head, cells, lanes, pin and builder. In-process folds of live cells run under it.
//	binding.mu, process.mu, mailbox.mu, poison.mu   leaves: nothing is called while one is held.
//
// Plans (what a set resolves to) are immutable and swapped whole, so a publish reads one without a lock. No lock is held across
// a read of a log, a call of an instance, or a listener. Every goroutine belongs to the registry's wait group, and those
// that work for a session to the session's as well; Close and Detach wait for them.
package registry

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// Log is what the registry asks of a session: its events by seq. Safe for concurrent use.
type Log interface {
	ID() string
	Incarnation() string
	// ReadPage gives events with from ≤ seq < to of the types (nil: all), and where to go on; done when next ≥ to.
	ReadPage(ctx context.Context, from, to int64, types []string) (events []event.Event, next int64, err error)
}

// PastLog is a Log that has rows of the past: states that were kept for good on the way, from which reads of the past begin. Such a row is checked as
// every row is before it counts.
type PastLog interface {
	Log
	// Past gives the row of a key with the highest seq at or below seq; ok is false when there is none.
	Past(ctx context.Context, key string, seq int64) (row Row, ok bool, err error)
}

// Options of a registry. The zero value is usable.
type Options struct {
	Logger *slog.Logger
	// Epoch is "<storeId>.<boot>"; every block carries it.
	Epoch string
	// MaxStateBytes and MaxViewBytes bound a state and a view; 0 is unit.DefaultMaxBytes.
	MaxStateBytes, MaxViewBytes int
	// ReadWait is how long a snapshot waits for keys that trail; 0 is 2 s.
	ReadWait time.Duration
	// BatchDeadline bounds one batch of an instance; 0 is 10 s.
	BatchDeadline time.Duration
	// BatchEvents, BatchBytes and Window bound a batch and how many are in flight per session and instance; 0 is 256, 1 MiB and 2.
	BatchEvents, BatchBytes, Window int
	// MaxScratch bounds how many SnapshotAt run at once; 0 is 4. ScratchWait bounds one; 0 is 10 s.
	MaxScratch  int
	ScratchWait time.Duration
	// Poisoned is told of each process that ended while one event (or the opening, seq −1 or the row's) of one cell was all it had
	// to do. Such a death does not speak against the plugin as a whole. Called on a goroutine of its own, for which Close waits; nil
	// is nobody.
	Poisoned func(by Registrant, session, key string, seq int64)
}

func (o Options) withDefaults() Options {
	def := func(n *int, d int) {
		if *n <= 0 {
			*n = d
		}
	}
	wait := func(n *time.Duration, d time.Duration) {
		if *n <= 0 {
			*n = d
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	def(&o.MaxStateBytes, unit.DefaultMaxBytes)
	def(&o.MaxViewBytes, unit.DefaultMaxBytes)
	wait(&o.ReadWait, 2*time.Second)
	wait(&o.BatchDeadline, 10*time.Second)
	def(&o.BatchEvents, 256)  // what a process folds well within a millisecond, and few enough to replay one by one
	def(&o.BatchBytes, 1<<20) // far below the 16 MiB that a message may have; one event may be larger by itself
	def(&o.Window, 2)         // one being folded, one on its way
	def(&o.MaxScratch, 4)     // time travel is for people looking at one session
	wait(&o.ScratchWait, 10*time.Second)
	return o
}

// Registry is safe for concurrent use.
type Registry struct {
	o      Options
	feed   feed
	cellID atomic.Uint64
	// revs counts revisions over one epoch.
	revs atomic.Int64
	// ends tells the lives of an id apart by revision.
	ends ends
	// scratches has a place for each look into the past that may run at once.
	scratches chan struct{}
	// started is what the times of cells count from.
	started time.Time
	// poison is what reads apart from the live cells have learned about deaths of processes.
	poison poison
	// ctx ends with Close; wg counts every goroutine.
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	gen   int64
	units map[string][]*binding // by key, in order of arrival; slices are replaced, not edited
	// sets have the names that were given members; undeclared is the set of all others.
	sets       map[string]*set
	undeclared set
	sessions   map[*Session]struct{}
	procs      map[procKey]*process
	counts     map[countKey]*counts
	closed     bool
}

// New makes a registry without registrations. Close it.
func New(o Options) *Registry {
	r := &Registry{
		o:        o.withDefaults(),
		units:    map[string][]*binding{},
		sets:     map[string]*set{},
		sessions: map[*Session]struct{}{},
		procs:    map[procKey]*process{},
		counts:   map[countKey]*counts{},
		started:  time.Now(),
		ends:     ends{seed: maphash.MakeSeed()},
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.scratches = make(chan struct{}, r.o.MaxScratch)
	r.undeclared.plan.Store(resolve(0, nil, nil))
	return r
}

// Close detaches every session, stops every drive and listener, and waits for them. It must not be called from a listener.
func (r *Registry) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	for _, s := range r.live() {
		s.Detach(false)
	}
	r.cancel()
	r.feed.close()
	r.wg.Wait()
}

// spawn runs a goroutine of the registry, unless it was closed. No lock is held.
func (r *Registry) spawn(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.wg.Go(f)
	}
}

// live gives the attached sessions.
func (r *Registry) live() []*Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*Session, 0, len(r.sessions))
	for s := range r.sessions {
		all = append(all, s)
	}
	return all
}

// each does something with every attached session, under its lock. No lock is held.
func (r *Registry) each(f func(*Session)) {
	for _, s := range r.live() {
		s.mu.Lock()
		f(s)
		s.mu.Unlock()
	}
}

// nextCell gives a cell id that was never used.
func (r *Registry) nextCell() unit.CellID { return unit.CellID(r.cellID.Add(1)) }
