package registry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/foldhost/foldhost/event"
)

// SnapshotAt gives the values right after event seq, −1 for those of the empty log, in cells of its own that start from the best
// row at or below seq. keys narrows it; none is all. It reads only the types that the units fold, by pages.
//
// At most Options.MaxScratch run at once; the others wait their turn. After ScratchWait the keys that did not get there are listed as
// unavailable. The block is marked Historical. Errors: *SeqRangeError, *BusyError, ErrDetached, the log's, the
// context's.
func (s *Session) SnapshotAt(ctx context.Context, seq int64, keys ...string) (Block, error) {
	r := s.r
	block := r.blank()
	if s.detached() {
		return Block{}, ErrDetached
	}
	bindings, head := s.bindings(false, keys...)
	if seq < -1 || seq > head {
		return Block{}, &SeqRangeError{Session: s.log.ID(), Seq: seq, Head: head}
	}
	return r.look(ctx, block, s.log, bindings, seq, s.startOf)
}

// startOf gives the latest state at or below seq to fold a unit from: one that the live cell left behind, or a stored row. It goes no further than
// the fault of the live cell. nil is init.
func (s *Session) startOf(ctx context.Context, c *scratchCell, seq int64) (*Row, error) {
	c.bound(s.knownFault(c.Key))
	above := int64(math.MinInt64)
	memory, ok := s.bestRow(c.Key, seq)
	if ok = ok && memory.Ver == c.StateVersion && memory.Def == c.Digest; ok {
		above = memory.Seq
	}
	row, err := s.r.bestStored(ctx, c.binding, s.rows, s.log, seq, above)
	if row == nil && ok {
		row = &memory
	}
	return row, err
}

// SnapshotAt is Session.SnapshotAt for a session that is not attached, from what is stored for it: rows, and what a PastLog has beside them.
// That the log reaches to seq is the caller's to know. Errors: *BusyError, the log's, the context's.
func (r *Registry) SnapshotAt(ctx context.Context, set string, rows Rows, log Log, seq int64, keys ...string) (Block, error) {
	block := r.blank()
	var visible []*binding
	for _, b := range narrow(r.setBindings(set), keys) {
		if !b.HostOnly() {
			visible = append(visible, b)
		}
	}
	return r.look(ctx, block, log, visible, seq, func(ctx context.Context, c *scratchCell, seq int64) (*Row, error) {
		return r.bestStored(ctx, c.binding, rows, log, seq, math.MinInt64)
	})
}

// starter gives the state at or below seq to fold a cell from, nil for init. Its error is one of reading the log.
type starter func(ctx context.Context, c *scratchCell, seq int64) (*Row, error)

// look is one look into the past.
func (r *Registry) look(ctx context.Context, block Block, log Log, bindings []*binding, seq int64, start starter) (Block, error) {
	block.AsOfSeq, block.Historical = seq, true
	if err := r.enterScratch(ctx); err != nil {
		return Block{}, fmt.Errorf("snapshot of session %q at seq %d: %w", log.ID(), seq, err)
	}
	defer func() { <-r.scratches }()

	within, cancel := context.WithTimeout(ctx, r.o.ScratchWait)
	defer cancel()
	var mu sync.Mutex // guards block, which several scratches add to
	err := r.apart(within, log, bindings, func(within context.Context, sc *scratch) error {
		if err := r.foldTo(within, sc, seq, start); err != nil && within.Err() == nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, c := range sc.cells {
			if c.down == nil && (!c.open || c.seq < seq) {
				c.lag(Behind, fmt.Sprintf("the plugin did not fold its way to seq %d within %v", seq, r.o.ScratchWait))
			}
			if view := sc.value(c); c.down == nil {
				block.Values[c.Key], block.Revs[c.Key] = view, c.rev
				continue
			}
			block.Unavailable[c.Key] = *c.down
		}
		return nil
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return Block{}, fmt.Errorf("snapshot of session %q at seq %d: %w", log.ID(), seq, err)
	}
	return block, nil
}

func (s *Session) detached() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// enterScratch waits for a token of scratches, at most as long as one SnapshotAt may take.
func (r *Registry) enterScratch(ctx context.Context) error {
	select {
	case r.scratches <- struct{}{}:
		return nil
	default:
	}
	patience := time.NewTimer(r.o.ScratchWait)
	defer patience.Stop()
	select {
	case r.scratches <- struct{}{}:
		return nil
	case <-patience.C:
		return &BusyError{Running: r.o.MaxScratch, Waited: r.o.ScratchWait}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// foldTo opens the cells of a scratch from the best states that are known of the session and drives them to seq, but into no
// event that has ended the live cell.
func (r *Registry) foldTo(ctx context.Context, sc *scratch, seq int64, start starter) error {
	for _, c := range sc.cells {
		if c.down != nil {
			continue
		}
		row, err := start(ctx, c, seq)
		if err != nil {
			return err
		}
		if row == nil {
			continue
		}
		if state, err := c.AcceptState(row.Val, r.o.MaxStateBytes); err == nil {
			c.seed(state, row.Seq)
		}
	}
	if err := sc.openAll(ctx, func(*scratchCell, string) bool { return true }); err != nil {
		return err
	}
	return sc.advance(ctx, seq)
}

// bestStored gives the latest stored row at or below seq and above another seq that a unit can be folded from: one of the definition as it is,
// on an event that the log still has. nil when there is none.
func (r *Registry) bestStored(ctx context.Context, b *binding, rows Rows, log Log, seq, above int64) (*Row, error) {
	latest, has := rows.Rows[b.Key]
	has = has && latest.Seq <= seq && rows.of(log.ID(), log.Incarnation())
	kept, _ := log.(PastLog)
	for at := seq; ; {
		var row Row
		found := false
		if kept != nil && at > above {
			var err error
			row, found, err = kept.Past(ctx, b.Key, at)
			if err != nil && ctx.Err() != nil {
				return nil, err
			}
			if err != nil {
				r.o.Logger.Warn("rows of the past cannot be read; the fold begins without them", "session", log.ID(), "plugin", b.by.Plugin, "unit", b.Key, "error", err)
				kept, found = nil, false
			}
		}
		if has && (!found || latest.Seq >= row.Seq) {
			row, found, has = latest, true, false
		} else {
			at = row.Seq - 1
		}
		if !found || row.Seq <= above || row.Seq > seq {
			return nil, nil
		}
		if ok, err := holds(ctx, b, row, log); err != nil || ok {
			return &row, err
		}
	}
}

// holds says whether a row was made by the definition at an event that the log has.
func holds(ctx context.Context, b *binding, row Row, log Log) (bool, error) {
	if b.mismatch(row) != "" {
		return false, nil
	}
	if row.Seq < 0 {
		return true, nil
	}
	anchor, err := fingerprintAt(ctx, log, row.Seq)
	var none *NoEventError
	if errors.As(err, &none) {
		return false, nil
	}
	return anchor == row.Anchor, err
}

// knownFault gives the fault of the live cell of a key, nil when there is none.
func (s *Session) knownFault(key string) *Unavailable {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.plan.index[key]
	if !ok || s.slots[k].cur == nil || s.slots[k].cur.fault == nil {
		return nil
	}
	fault := *s.slots[k].cur.fault
	return &fault
}

// fingerprintAt gives the fingerprint of the event at seq; *NoEventError when the log has none there.
func fingerprintAt(ctx context.Context, log Log, seq int64) (string, error) {
	for from := seq; from <= seq; {
		events, next, err := log.ReadPage(ctx, from, seq+1, nil)
		if err != nil {
			return "", err
		}
		if len(events) > 0 {
			return event.Fingerprint(&events[0]), nil
		}
		if next <= from {
			return "", stuck(log, from, next)
		}
		from = next
	}
	return "", &NoEventError{Session: log.ID(), Seq: seq}
}

// SeqRangeError: the session has no such seq. Head is the seq of its last event, −1 when it is empty.
type SeqRangeError struct {
	Session   string
	Seq, Head int64
}

func (e *SeqRangeError) Error() string {
	has := "has no events, and so"
	if e.Head >= 0 {
		has = fmt.Sprintf("ends at seq %d, and has", e.Head)
	}
	return fmt.Sprintf("session %q %s no seq %d: ask for less, or again once it is there; -1 is the empty log", e.Session, has, e.Seq)
}

// BusyError: too many looks into the past were under way for too long. Try again later.
type BusyError struct {
	Running int
	Waited  time.Duration
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("%d looks into the past are under way and none ended within %v; try again later", e.Running, e.Waited)
}
