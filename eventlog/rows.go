package eventlog

import (
	"context"
	"fmt"
)

// RowStore keeps checkpoint rows beside the logs they were made from. A Store that has one implements it too, and then an append, a deletion and
// what they mean for the rows commit together. What a row holds is its writer's business; a store gives it back as it was, or not at all.
//
// A row is a shortcut and never an authority: whoever reads one checks what it stands on. So a store may lose rows, but must never give one
// that belongs to another life of a log, and never one that stands beyond the log's end.
//
// All methods may be called concurrently. Errors: *NotFoundError, *IncarnationError, ErrClosed, the context's, and for writes also *InvalidError,
// *DiskFullError, *ReadOnlyError.
type RowStore interface {
	// Rows gives the rows of a log, and the log as it was at that moment.
	Rows(ctx context.Context, l Life) (RowSet, error)

	// RowsOf gives the same for several logs, for lists: those that are there, in no order.
	RowsOf(ctx context.Context, ids []string) ([]RowSet, error)

	// SaveRows writes rows of one log, all or none. A row takes the place of that with its key unless that one has a higher Cut. A row whose
	// Seq is not below the log's length is an *InvalidError: the log is durable before the row that covers it.
	SaveRows(ctx context.Context, l Life, rows []Row) error

	// PastRow gives the row that SavePast kept for the key with the highest seq at or below seq; ok is false when there is none.
	PastRow(ctx context.Context, l Life, key string, seq int64) (r Row, ok bool, err error)

	// SavePast keeps rows for good, beside those of SaveRows: one for each key and seq, the last one written.
	SavePast(ctx context.Context, l Life, rows []Row) error

	// DropRows removes the rows of keys, past ones too; no keys is all. When it returns nil, none that was there when it was called can be read any more. One that comes back with an error,
	// or whose process died, may have removed some of them; a row that is saved meanwhile stays or goes.
	DropRows(ctx context.Context, l Life, keys ...string) error
}

// Row is one checkpoint row.
type Row struct {
	// Key is that of a unit, or SurfaceKey.
	Key string
	// Cut is the last event of the log at the moment that the row is from, −1 for the empty log; Seq the last event that it contains, at most Cut.
	Cut, Seq int64
	// Data is opaque. It is immutable and may be shared.
	Data []byte
}

// SurfaceKey is the key of the row of a session's surface. No unit can have it.
const SurfaceKey = ""

// RowSet are the rows of one log.
type RowSet struct {
	Info Info
	Rows []Row
}

// CheckRows refuses rows that no store would take for a log with so many events.
func CheckRows(length int64, rows []Row) error {
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Seq < -1 || r.Seq > r.Cut:
			return &InvalidError{Reason: fmt.Sprintf("row %q is as of seq %d in a cut at %d", r.Key, r.Seq, r.Cut)}
		case r.Cut >= length:
			return &InvalidError{Reason: fmt.Sprintf("row %q is of a cut at %d, the log ends at %d", r.Key, r.Cut, length-1)}
		}
	}
	return nil
}
