// Package registry owns ref-counted registrations of units, the per-session cells that fold them, snapshots, the change
// feed, and the algebra of checkpoint rows. It knows neither sessions nor go-plugin.
package registry

// Signatures that the other packages build against.

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
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
	// BatchEvents, BatchBytes and Window bound a batch and how many are in flight per session and instance.
	BatchEvents, BatchBytes, Window int
	// MaxScratch bounds how many SnapshotAt run at once; 0 is 4. ScratchWait bounds one; 0 is 10 s.
	MaxScratch  int
	ScratchWait time.Duration
}

// Registry is safe for concurrent use.
type Registry struct{}

func New(o Options) *Registry { panic("not yet") }

// Registrant is who registers: a plugin with one config. Variant is the config's digest, or empty.
type Registrant struct{ Plugin, Variant string }

// SetMembers says which registrants make up a named set, in any order. A name that was never set means every registrant with
// an empty Variant. Open sessions follow.
func (r *Registry) SetMembers(set string, members []Registrant) { panic("not yet") }

// Register adds a definition. Errors: *unit.DefinitionError, *VersionConflictError.
func (r *Registry) Register(by Registrant, def unit.Definition) (*Registration, error) {
	panic("not yet")
}

// Replace moves a registration to another definition of the same key, whatever its version, cell by cell, each once the new cell has reached the
// last seq published for that key. *VersionConflictError when somebody else holds the old version and the new one differs.
func (r *Registry) Replace(reg *Registration, def unit.Definition) error { panic("not yet") }

// Registration is one reference to a key.
type Registration struct{}

// Release gives the reference back; more than once is harmless.
func (g *Registration) Release() { panic("not yet") }

// Suspend says that the instance cannot be asked now: code is starting, restarting or parked.
func (g *Registration) Suspend(code UnavailableCode, message string) { panic("not yet") }

// Resume says that this instance serves from now on: the first, or the one after a crash. What the one before it still says is dropped.
func (g *Registration) Resume(in unit.Instance) { panic("not yet") }

// Attach starts the cells of a live session. head is the seq of its last event, rows what was stored for it.
func (r *Registry) Attach(log Log, set string, head int64, rows Rows) *Session { panic("not yet") }

// Session is the registry's side of one live session.
type Session struct{}

func (s *Session) Publish(ctx context.Context, events []event.Event) { panic("not yet") }
func (s *Session) Detach(deleted bool)                               { panic("not yet") }

// Block is the one shape in which values go out.
type Block struct {
	Epoch       string
	Gen         int64
	AsOfSeq     int64
	Values      map[string]json.RawMessage
	Revs        map[string]int64
	Unavailable map[string]Unavailable
	// Historical marks a block of SnapshotAt: it never seeds a client store.
	Historical bool
}

// AppendJSON appends the block's fixed JSON, keys sorted.
func (b *Block) AppendJSON(dst []byte) []byte { panic("not yet") }

// UnavailableCode says why a key has no value as of the cut.
type UnavailableCode string

const (
	Starting   UnavailableCode = "starting"
	Restarting UnavailableCode = "restarting"
	Parked     UnavailableCode = "parked"
	Faulted    UnavailableCode = "faulted"
	Behind     UnavailableCode = "behind"
)

// Unavailable is a key that did not reach the cut. Seq is what it did reach.
type Unavailable struct {
	Code    UnavailableCode
	Seq     int64
	Message string
}

// Snapshot is one cut. keys narrows it; none is all.
func (s *Session) Snapshot(ctx context.Context, keys ...string) (Block, error) { panic("not yet") }

// SnapshotWithin is Snapshot with a wait of its own.
func (s *Session) SnapshotWithin(ctx context.Context, wait time.Duration, keys ...string) (Block, error) {
	panic("not yet")
}

// SnapshotAt gives the values right after event seq, in scratch cells.
func (s *Session) SnapshotAt(ctx context.Context, seq int64, keys ...string) (Block, error) {
	panic("not yet")
}

// StateOf gives a copy of the state of a key, host-only units too.
func (s *Session) StateOf(ctx context.Context, key string) (json.RawMessage, int64, error) {
	panic("not yet")
}

// Change is one entry of the feed or of the pull.
type Change struct {
	Session string
	Kind    ChangeKind
	Key     string
	Value   json.RawMessage
	Seq     int64
	Rev     int64
	// Unavailable is set for KindUnavailable.
	Unavailable *Unavailable
}

type ChangeKind uint8

const (
	KindValue ChangeKind = iota
	KindUnavailable
	KindRemoved
)

// OnChange adds a listener, called on a goroutine of its own; of each session and key only the latest waits when it falls behind.
func (r *Registry) OnChange(f func(Change)) (remove func()) { panic("not yet") }

// Changes is the lossless pull: every change of every key from event `from` on up to the head at the call, ordered by seq, then key.
func (s *Session) Changes(ctx context.Context, from int64) iter.Seq2[Change, error] { panic("not yet") }

// Row is a checkpoint row.
type Row struct {
	Ver    int64           `json:"ver"`
	Def    string          `json:"def"`
	Seq    int64           `json:"seq"`
	Val    json.RawMessage `json:"val"`
	View   json.RawMessage `json:"view,omitempty"`
	Anchor string          `json:"anchor"`
}

// Rows are the rows of one session by key, of one life of its log.
type Rows struct {
	Session, Incarnation string
	Rows                 map[string]Row
}

// Checkpoint gives a row per registered unit at one cut; faulted cells are left out.
func (s *Session) Checkpoint(ctx context.Context) (Rows, error) { panic("not yet") }

// VersionConflictError: the key is registered at another stateVersion.
type VersionConflictError struct {
	Key        string
	Have, Want int64
}

func (e *VersionConflictError) Error() string { panic("not yet") }

// Close stops every drive and waits.
func (r *Registry) Close() { panic("not yet") }

// bindings gives the session's computing bindings, sorted by key, narrowed to keys when there are any, with the head that they
// belong to; client-visible ones only unless hostOnly.
func (s *Session) bindings(hostOnly bool, keys ...string) (bs []*binding, head int64) { panic("not yet") }

// nextCell gives a cell id that was never used.
func (r *Registry) nextCell() unit.CellID { panic("not yet") }
