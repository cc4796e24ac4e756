package registry

import (
	"context"
	"fmt"
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
	block.AsOfSeq, block.Historical = seq, true
	if err := r.enterScratch(ctx); err != nil {
		return Block{}, fmt.Errorf("snapshot of session %q at seq %d: %w", s.log.ID(), seq, err)
	}
	defer func() { <-r.scratches }()

	within, cancel := context.WithTimeout(ctx, r.o.ScratchWait)
	defer cancel()
	var mu sync.Mutex // guards block, which several scratches add to
	err := r.apart(within, s.log, bindings, func(within context.Context, sc *scratch) error {
		if err := s.foldTo(within, sc, seq); err != nil && within.Err() == nil {
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
		return Block{}, fmt.Errorf("snapshot of session %q at seq %d: %w", s.log.ID(), seq, err)
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
func (s *Session) foldTo(ctx context.Context, sc *scratch, seq int64) error {
	for _, c := range sc.cells {
		if c.down != nil {
			continue
		}
		c.bound(s.knownFault(c.Key))
		row, err := s.startOf(ctx, c.binding, seq)
		if err != nil {
			return err
		}
		if row == nil {
			continue
		}
		if state, err := c.AcceptState(row.Val, s.r.o.MaxStateBytes); err == nil {
			c.seed(state, row.Seq)
		}
	}
	if err := sc.openAll(ctx, func(*scratchCell, string) bool { return true }); err != nil {
		return err
	}
	return sc.advance(ctx, seq)
}

// startOf gives the latest state at or below seq to fold a unit from: one that the live cell left behind, or the stored row when the log
// still has the event that it stands on. nil is init.
func (s *Session) startOf(ctx context.Context, b *binding, seq int64) (*Row, error) {
	memory, ok := s.bestRow(b.Key, seq)
	ok = ok && memory.Ver == b.StateVersion && memory.Def == b.Digest
	stored, has := s.rows.Rows[b.Key]
	if has && (stored.Seq > seq || !s.rows.of(s.log.ID(), s.log.Incarnation())) {
		has = false
	}
	if log, can := s.log.(PastLog); can {
		past, found, err := log.Past(ctx, b.Key, seq)
		if err != nil {
			return nil, err
		}
		if found && past.Seq <= seq && (!has || past.Seq > stored.Seq) {
			stored, has = past, true
		}
	}
	if has && (!ok || stored.Seq > memory.Seq) && b.mismatch(stored) == "" {
		anchor := ""
		if stored.Seq >= 0 {
			var err error
			if anchor, err = fingerprintAt(ctx, s.log, stored.Seq); err != nil {
				return nil, err
			}
		}
		if anchor == stored.Anchor {
			return &stored, nil
		}
	}
	if ok {
		return &memory, nil
	}
	return nil, nil
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
	return fmt.Sprintf("session %q has the seqs from -1 (the empty log) to %d; there is no %d", e.Session, e.Head, e.Seq)
}

// BusyError: too many looks into the past were under way for too long. Try again later.
type BusyError struct {
	Running int
	Waited  time.Duration
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("%d looks into the past are under way and none ended within %v; try again later", e.Running, e.Waited)
}
