package session

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/internal/measure"
)

const (
	// A turn of an agent is minutes apart at most; ten of them keep a conversation warm and let a forgotten one go.
	defaultIdleAfter = 10 * time.Minute
	defaultMaxLive   = 10_000
	// 16 MiB is some hundred thousand tokens of text many times over; a session with more in it is read again for each look.
	defaultMaxMessageBytes = 16 << 20
	// Half of what a session waits for its last rows, and a hundred times what it takes.
	defaultSlowClose = time.Second
)

// Options of a set of sessions. The zero value is usable.
type Options struct {
	// Logger gets what is contained: panics of observers and drives. nil is slog.Default.
	Logger *slog.Logger
	// Now gives event times; nil is the wall clock.
	Now func() time.Time
	// IdleAfter is how long a session stays live without a touch; 0 is 10 minutes, negative is for ever. A session may stay up to a quarter longer.
	IdleAfter time.Duration
	// MaxLive is how many sessions stay live at most while they are not in use; 0 is 10,000, some 500 MB with a hundred messages each, negative is any
	// number. Beyond it those that were not touched for longest go cold first, as far as that is known; what is in use or held stays.
	MaxLive int
	// MaxEventBytes bounds one encoded event; 0 is event.DefaultMaxBytes.
	MaxEventBytes int
	// MaxMessageBytes bounds the derived messages kept in memory per session; 0 is 16 MiB. Beyond it they are read again.
	MaxMessageBytes int
	// SlowClose is what a session may take to go cold before that is logged and counted; 0 is 1 s.
	SlowClose time.Duration
	Driver    Driver
	// Deleted is told of each deletion, whether the session is live or not: before the log goes, and when it has gone and its drive is detached, before anything of the id is attached again. A
	// deletion that fails may have done nothing. It must not block; nil is nobody.
	Deleted func(id string)
}

func (o *Options) setDefaults() {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.IdleAfter == 0 {
		o.IdleAfter = defaultIdleAfter
	}
	if o.MaxLive == 0 {
		o.MaxLive = defaultMaxLive
	}
	if o.MaxEventBytes == 0 {
		o.MaxEventBytes = event.DefaultMaxBytes
	}
	if o.MaxMessageBytes == 0 {
		o.MaxMessageBytes = defaultMaxMessageBytes
	}
	if o.SlowClose <= 0 {
		o.SlowClose = defaultSlowClose
	}
}

// Set is the set of sessions over one store. Safe for concurrent use.
type Set struct {
	store eventlog.Store
	// rows is nil when the store keeps none.
	rows eventlog.RowStore
	// grouper is nil when each append is a commit of its own.
	grouper   eventlog.Grouper
	o         Options
	guards    listeners[Hook]
	hooks     listeners[Hook]
	observers listeners[Observer]
	stats     Stats

	// ctx ends when the set closes; what the set does on its own account runs under it.
	ctx  context.Context
	stop context.CancelFunc
	// running counts the set's goroutines and the calls that have no slot yet; added to only while mu is held and closed is false.
	running sync.WaitGroup

	// mu guards what follows; nothing is called while it is held. closed is set under mu, and read without it by those who have a turn.
	mu     sync.Mutex
	closed atomic.Bool
	slots  map[string]*slot
	// crowded has one place: there are more slots than MaxLive.
	crowded chan struct{}
	// creating are the creations under way, by id.
	creating map[string]*making
}

// NewSet returns a set over store, which stays the caller's to close. Close the set before the store.
func NewSet(store eventlog.Store, o Options) *Set {
	o.setDefaults()
	t := &Set{store: store, o: o, slots: make(map[string]*slot), creating: make(map[string]*making), crowded: make(chan struct{}, 1)}
	t.stats.OpenSeconds, t.stats.CloseSeconds = measure.NewSeconds(), measure.NewSeconds()
	t.rows, _ = store.(eventlog.RowStore)
	t.grouper, _ = store.(eventlog.Grouper)
	t.ctx, t.stop = context.WithCancel(context.Background())
	if o.IdleAfter > 0 || o.MaxLive > 0 {
		t.running.Go(t.runJanitor)
	}
	return t
}

// AddHook, AddGuard and AddObserver return a function that takes it away again. Guards come first, then hooks, each kind in the order in which they were added, and
// observers after the commit in theirs. What is added or taken away while an append runs counts from the next look at the list.
//
// A hook sees the session as it is before the append. As long as there is one, each append is a commit of its own.
func (t *Set) AddHook(h Hook) (remove func()) { return t.hooks.add(h) }

// AddGuard adds a hook that judges by the events alone. The events before them may not be in the log yet: they are about to be committed together. A guard
// that has to look at the log for some appends has them ask for a commit of their own, with Batch.Alone.
func (t *Set) AddGuard(h Hook) (remove func()) { return t.guards.add(h) }

// AddObserver adds an observer; see AddHook.
func (t *Set) AddObserver(o Observer) (remove func()) { return t.observers.add(o) }

// Close detaches every session and waits for what is running. Appends in their turn finish; what is queued or comes later gets
// ErrClosed. The store is the caller's to close. Not to be called from a hook, an observer or a drive.
func (t *Set) Close() error {
	t.mu.Lock()
	t.closed.Store(true)
	slots := make([]*slot, 0, len(t.slots))
	for _, sl := range t.slots {
		slots = append(slots, sl)
	}
	t.mu.Unlock()
	t.stop()
	var all sync.WaitGroup
	for _, sl := range slots {
		all.Go(func() {
			t.dropSlot(sl)
			<-sl.drained
		})
	}
	all.Wait()
	t.running.Wait()
	return nil
}

// MaxEventBytes is the limit on one encoded event.
func (t *Set) MaxEventBytes() int { return t.o.MaxEventBytes }

// begin admits a call that works without a slot; end with running.Done.
func (t *Set) begin() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed.Load() {
		return ErrClosed
	}
	t.running.Add(1)
	return nil
}
