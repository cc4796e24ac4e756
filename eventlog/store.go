// Package eventlog is the seam to storage: what a store of logs promises, its queries and its errors. Stores live in
// packages below; eventlog/logtest is the suite that each of them passes, and eventlog/jsonl the interchange format.
//
// Commit is where a seq becomes real: dense per session, never handed out twice in one life of a log. A store knows
// nothing of surfaces or shapes; what it is given has been accepted.
package eventlog

import (
	"context"
	"iter"

	"github.com/foldhost/foldhost/event"
)

// Store holds logs. All methods may be called concurrently; every method returns the context's error, and has changed
// nothing, when its context ends before the commit. Events handed in and out are immutable and may be shared.
type Store interface {
	// Identity says which store this is and which of its starts.
	Identity() Identity

	// Create makes a log with its first events, all or nothing: events are pulled once and in order, and an error they yield is
	// returned as it is with nothing created. *ExistsError when the id is taken.
	Create(ctx context.Context, c Creation) (Info, error)

	// Append commits a batch, all or nothing. It looks at the idempotency key before it looks at the seq.
	Append(ctx context.Context, b Batch) (Commit, error)

	// Info describes one log, *NotFoundError when there is none.
	Info(ctx context.Context, id string) (Info, error)

	// List pages over the logs, latest commit first. A page may be shorter than the limit. A log that is damaged as a whole is left out: those that are whole can be
	// found whatever becomes of one.
	List(ctx context.Context, q ListQuery) (ListPage, error)

	// Read gives events of one log in seq order. A page may be shorter than the limit, even empty, and still not be the last.
	Read(ctx context.Context, q Query) (Page, error)

	// Tail gives events of all logs in the order of their commit positions. Deleted logs are simply not there any more.
	Tail(ctx context.Context, q TailQuery) (TailPage, error)

	// Lookup finds what was committed under an idempotency key; ok is false for a key that this log does not know.
	Lookup(ctx context.Context, l Life, key string) (k KeyRecord, ok bool, err error)

	// Delete removes a log with all that belongs to it. The same id may be created again and is then another life.
	Delete(ctx context.Context, l Life) error

	// Close ends the store; later calls give ErrClosed.
	Close() error
}

// Grouper is a Store that takes several appends to one log at once. A session needs one to let appends that come while another is being committed share the next commit.
type Grouper interface {
	// AppendGroup commits batches of one life in order, all of them or none, each as Append would commit it right after the one before. What Append
	// would refuse, or answer with a commit that was made before, refuses the group: *GroupError. Any other error is about all of them, as one of Append is.
	AppendGroup(ctx context.Context, batches []Batch) ([]Commit, error)
}

// Identity tells stores, and the starts of one store, apart.
type Identity struct {
	// StoreID is random, given when the store is made.
	StoreID string
	// Boot counts the starts, from 1.
	Boot int64
}

// Life is one life of a log: the id, and the incarnation given when it was created, imported or restored. In queries an empty
// incarnation means whichever life there is now; a wrong one gives *IncarnationError.
type Life struct {
	ID          string
	Incarnation string
}

// Info describes a log.
type Info struct {
	Header      event.Header
	Incarnation string
	// Seq is the length: the seq that the next event gets.
	Seq int64
	// FirstLiveSeq is how many of the events were a seed.
	FirstLiveSeq int64
	// Position is the commit position of the last commit.
	Position int64
	// UpdatedAt is the wall time of the last commit, ms since the epoch.
	UpdatedAt int64
}

// Creation is what Create takes.
type Creation struct {
	Header event.Header
	// FirstLiveSeq is kept and given back.
	FirstLiveSeq int64
	// Events may be nil. Their seqs must count from 0.
	Events iter.Seq2[event.Event, error]
	// Key and Digest, where there is a key, are kept in the new log as those of a Batch that wrote all of it: Lookup tells whether a log that exists is
	// what a repeated creation has made. Digest is asked once, when all events were pulled, since it may be one of what they came from.
	Key    string
	Digest func() string
}

// Batch is what Append takes. Events must have the seqs from Events[0].Seq on, and Events[0].Seq must be the log's length,
// else *SeqConflictError. A batch without events is an error, unless it has a key: then the key alone is kept, with a commit from the log's length to it, and the log
// stays as it is.
type Batch struct {
	Life   Life
	Events []event.Event
	// Key makes the append idempotent when it is not empty. A key that was used with the same Digest gives the first commit again with
	// Repeated set; with another digest it gives *KeyReusedError. A store may forget a key after 24 hours, unless it is among the last 2,000 of its log.
	Key    string
	Digest string
	// Answer is kept with the key as it is, and given back by Lookup: what the request was answered with, where its events do not tell.
	Answer string
}

// Commit says where a batch went.
type Commit struct {
	// First is the seq of the first event, Seq the length of the log afterwards.
	First, Seq int64
	// Position is that of the commit's last event. It rises over all logs of the store: each event has a position of its own, and a
	// creation without events takes one too.
	Position int64
	// Time is the wall time of the commit, ms since the epoch.
	Time int64
	// Repeated says that nothing was written because the key was known.
	Repeated bool
}

// KeyRecord is what is kept of an idempotent append.
type KeyRecord struct {
	Digest string
	Answer string
	Commit Commit
}

// Query asks for events of one log with From ≤ seq < To. Negative From, Limit or MaxBytes give *InvalidError.
type Query struct {
	Life Life
	From int64
	// To is exclusive; 0 or less means the end of the log at the time of the call.
	To int64
	// Types narrows the answer: nil is every type, empty and not nil is none.
	Types []string
	// Limit and MaxBytes bound the page, up to the store's own bounds, which 0 stands for. MaxBytes counts at least the bytes of
	// data. At least one event comes whatever its size.
	Limit    int
	MaxBytes int
	// Positions asks for Page.Positions as well.
	Positions bool
}

// Page is a part of an answer.
type Page struct {
	Events []event.Event
	// Positions are the commit positions of Events, when they were asked for: those that Tail gives. Within a log they rise with the seq. A read that begins after a call
	// has told the end of the store, as TailPage.End, sees all events up to there.
	Positions []int64
	// Next is where to go on: every matching event below it has been given. It is above From unless the answer is complete,
	// which it is when Next ≥ End.
	Next int64
	// End is To, or the end of the log as this call saw it when To is not within the log.
	End int64
	// Incarnation is the life that the page was read from.
	Incarnation string
}

// ListQuery pages over logs. Cursor is opaque; empty starts at the latest. Across the pages of one listing no log comes twice, and
// one that is not committed to meanwhile comes once.
type ListQuery struct {
	Limit  int
	Cursor string
}

// ListPage is one page of logs; an empty Cursor is the end.
type ListPage struct {
	Logs   []Info
	Cursor string
}

// TailQuery asks for what was committed after a position: 0 for everything, or any position that the store gave. Types and Limit
// are those of Query.
type TailQuery struct {
	After int64
	Types []string
	Limit int
}

// TailPage is a part of what was committed. Position is where to go on from: every matching event up to it has been given. It is
// above After unless the answer is complete, which it is when Position ≥ End. A page may be empty and not the last.
type TailPage struct {
	Events   []TailEvent
	Position int64
	End      int64
}

// TailEvent is an event with the life of the log it belongs to and its position, which no other event of the store has.
type TailEvent struct {
	Life     Life
	Position int64
	Event    event.Event
}
