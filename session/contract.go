// Package session owns sessions: acceptance of events, sequence numbers, the one surface manager, derived messages, seeds,
// forks, closers, and the set of live sessions with its single event subscription.
package session

// Signatures that the other packages build against.

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// Driver is the single subscription. It hears of every session before any observer does.
type Driver interface {
	// Attach is called when a session becomes live, before anything is published for it. head is the seq of its last
	// event, −1 when it is empty.
	Attach(s *Session, head int64) Drive
}

// Drive is what a driver keeps for one live session. Calls for one session are serial.
type Drive interface {
	// Publish tells what was committed, in log order and once. It must not block on I/O and cannot refuse.
	Publish(ctx context.Context, events []event.Event)
	// Detach is the last call: the session goes cold, or is deleted.
	Detach(deleted bool)
}

// Hook is asked before each commit and may veto by an error. The context makes Append of the same session give ErrReentrant.
type Hook func(ctx context.Context, s *Session, events []event.Event) error

// Observer is told after each commit, in log order. Panics are contained; the context is as for hooks.
type Observer func(ctx context.Context, s *Session, events []event.Event)

// Options of a set of sessions. The zero value is usable.
type Options struct {
	Logger *slog.Logger
	// Now gives event times; nil is the wall clock.
	Now func() time.Time
	// IdleAfter is how long a session stays live without a touch; 0 is 10 minutes, negative is for ever.
	IdleAfter time.Duration
	// MaxEventBytes bounds one encoded event; 0 is event.DefaultMaxBytes.
	MaxEventBytes int
	// MaxMessageBytes bounds the derived messages kept in memory per session; 0 is 16 MiB. Beyond it they are read again.
	MaxMessageBytes int
	Driver          Driver
}

// Set is the set of sessions over one store. Safe for concurrent use.
type Set struct{}

func NewSet(store eventlog.Store, o Options) *Set { panic("not yet") }

// AddHook and AddObserver return a function that takes it away again. Hooks and observers are called in the order in which they were added.
func (t *Set) AddHook(h Hook) (remove func())         { panic("not yet") }
func (t *Set) AddObserver(o Observer) (remove func()) { panic("not yet") }

// New is a session to be made.
type New struct {
	Header event.Header // ID empty: one is made up. CreatedAt 0: now.
	// Seed is nil for none; an empty seed is a seed. Elements are validated as appends would be.
	Seed []event.Draft
}

// Create makes a session and leaves it live. Errors: *eventlog.ExistsError, *event.Error (header), *event.IndexError (seed).
func (t *Set) Create(ctx context.Context, n New) (*Session, error) { panic("not yet") }

// Import makes a session from the events of a log: no seed, nothing is added. All or nothing.
func (t *Set) Import(ctx context.Context, h event.Header, events iter.Seq2[event.Draft, error]) (*Session, error) {
	panic("not yet")
}

// Open gives a session that exists, live or cold.
func (t *Set) Open(ctx context.Context, id string) (*Session, error) { panic("not yet") }

// Fork makes a child from the events of a session up to and with the boundary seq. See ForkError.
func (t *Set) Fork(ctx context.Context, source string, f Fork) (*Session, error) { panic("not yet") }

// Fork says how to fork: Boundary nil is the last event, Child empty is an id made up.
type Fork struct {
	Boundary *int64
	Child    string
}

// Delete removes a session and its log.
func (t *Set) Delete(ctx context.Context, id string) error { panic("not yet") }

// Close detaches every session and waits for what is running. The store is the caller's to close.
func (t *Set) Close() error { panic("not yet") }

// Session is a handle on one life of one session. It stays good while the session goes cold and live again; after a deletion every call
// gives *eventlog.NotFoundError. Safe for concurrent use.
type Session struct{}

func (s *Session) ID() string           { panic("not yet") }
func (s *Session) Incarnation() string  { panic("not yet") }
func (s *Session) Header() event.Header { panic("not yet") }

// Info is the session as the store has it.
func (s *Session) Info(ctx context.Context) (eventlog.Info, error) { panic("not yet") }

// Live says whether the session is live now, without touching it.
func (s *Session) Live() bool { panic("not yet") }

// Intent is what an event does besides being logged.
type Intent struct {
	Op      event.Op
	Sources []int64
}

// Append appends one event. data is any Go value that JSON carries losslessly, or JSON text as json.RawMessage.
func (s *Session) Append(ctx context.Context, typ string, data any, in Intent) (event.Event, error) {
	panic("not yet")
}

// Item is one event of a batch.
type Item struct {
	Type      string
	Data      json.RawMessage
	Intent    Intent
	Time      *int64 // nil: now
	Ignorable bool
	// OpFault and SourcesFault carry what a carrier could not even express in Intent; see event.Draft.
	OpFault, SourcesFault string
}

// Batch is appended as a whole or not at all.
type Batch struct {
	Items []Item
	// ExpectedSeq makes it conditional: the seq that the first event is to get.
	ExpectedSeq *int64
	// Key and Digest make it idempotent, see eventlog.Batch.
	Key, Digest string
}

// AppendBatch appends the items and says where they went. Refusals of an item are *event.IndexError.
func (s *Session) AppendBatch(ctx context.Context, b Batch) (eventlog.Commit, []event.Event, error) {
	panic("not yet")
}

// Read gives a page of events; Scan all of a range.
func (s *Session) Read(ctx context.Context, from, to int64, types []string) (eventlog.Page, error) {
	panic("not yet")
}
func (s *Session) Scan(ctx context.Context, from, to int64, types []string) iter.Seq2[event.Event, error] {
	panic("not yet")
}

// Surface is the read-only face of the session's one surface manager: the same object for the life of the handle.
func (s *Session) Surface() *Surface { panic("not yet") }

// Messages derives the messages that a model would see, verbatim, in node order.
func (s *Session) Messages(ctx context.Context) ([]json.RawMessage, error) { panic("not yet") }

// Compact appends one user/message that replaces the range of nodes from start to end, with sources naming all it shadows.
func (s *Session) Compact(ctx context.Context, start, end int64, message any) (event.Event, error) {
	panic("not yet")
}

// Recover appends the closers of an interrupted turn and returns them; nothing when there is none.
func (s *Session) Recover(ctx context.Context) ([]event.Event, error) { panic("not yet") }

// Detach lets the session go cold now.
func (s *Session) Detach(ctx context.Context) error { panic("not yet") }

// Surface is a read-only face. Its methods touch the session: a cold one is opened.
type Surface struct{}

// SurfaceState is one consistent look at a surface.
type SurfaceState struct {
	Nodes             []int64
	ReplaceGeneration int64
	AsOfSeq           int64
}

func (f *Surface) State(ctx context.Context) (SurfaceState, error)       { panic("not yet") }
func (f *Surface) Contains(ctx context.Context, seq int64) (bool, error) { panic("not yet") }

// Closers gives the events that close the turn in which a log ends: a pure function. events are those of the types of CloserTypes at
// least, last is the log's last event (nil: empty log).
func Closers(events iter.Seq2[event.Event, error], last *event.Event) ([]event.Event, error) {
	panic("not yet")
}
