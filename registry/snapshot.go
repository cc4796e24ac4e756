package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// UnavailableCode says why a key has no value as of the cut.
type UnavailableCode string

// The codes. A key that is starting or behind is waited for within the wait, restarting and parked ones are not.
const (
	Starting   UnavailableCode = "starting"
	Restarting UnavailableCode = "restarting"
	Parked     UnavailableCode = "parked"
	Faulted    UnavailableCode = "faulted"
	Behind     UnavailableCode = "behind"
)

// Unavailable is a key that did not reach the cut.
type Unavailable struct {
	Code UnavailableCode
	// Seq is what it did reach, −1 for nothing.
	Seq     int64
	Message string
	// FailedAt is for Faulted alone: the event that it failed on or, when it could not be opened, where it was to stand, −1 for init.
	// It does not go out; Message names it.
	FailedAt int64
}

// faulted is a key that failed at a seq.
func faulted(seq int64, why string) *Unavailable {
	return &Unavailable{Code: Faulted, Seq: max(seq-1, -1), Message: fmt.Sprintf("failed at seq %d: %s", seq, why), FailedAt: seq}
}

// Snapshot is one cut: every value is as of AsOfSeq, the head at the call. keys narrows it; none is all; a key that the session's set
// does not have, or that is host-only, is absent. Keys that trail are waited for, Options.ReadWait at most, and then named under Unavailable.
// Appends go on meanwhile. The error is ctx's or ErrDetached.
func (s *Session) Snapshot(ctx context.Context, keys ...string) (Block, error) {
	return s.SnapshotWithin(ctx, s.r.o.ReadWait, keys...)
}

// SnapshotWithin is Snapshot with a wait of its own; 0 waits for nothing.
func (s *Session) SnapshotWithin(ctx context.Context, wait time.Duration, keys ...string) (Block, error) {
	at, gen, cuts, err := s.cut(ctx, ask{wait: wait, keys: keys})
	if err != nil {
		return Block{}, err
	}
	b := Block{Epoch: s.r.o.Epoch, Gen: gen, AsOfSeq: at, Values: make(map[string]json.RawMessage, len(cuts)), Revs: make(map[string]int64, len(cuts))}
	for i := range cuts {
		c := &cuts[i]
		var view json.RawMessage
		if c.down == nil && c.val != nil {
			if view, err = c.val.leave(s.r.o.MaxViewBytes); err != nil {
				s.condemn(c.k, c.val, err)
				c.down = faulted(c.val.seq, err.Error())
			}
		}
		if c.down != nil {
			if b.Unavailable == nil {
				b.Unavailable = map[string]Unavailable{}
			}
			b.Unavailable[c.b.Key] = *c.down
			continue
		}
		b.Values[c.b.Key], b.Revs[c.b.Key] = view, c.rev
	}
	return b, nil
}

// StateOf gives a copy of the state of a key and the seq that it is as of, host-only units too. It waits as Snapshot does.
// Errors: *UnknownKeyError, *UnavailableError, *unit.ValueError, those of Snapshot.
func (s *Session) StateOf(ctx context.Context, key string) (json.RawMessage, int64, error) {
	at, _, cuts, err := s.cut(ctx, ask{wait: s.r.o.ReadWait, keys: []string{key}, hostOnly: true, states: true})
	if err != nil {
		return nil, 0, err
	}
	if len(cuts) == 0 {
		return nil, 0, &UnknownKeyError{Key: key, Set: s.setName}
	}
	if down := cuts[0].down; down != nil {
		return nil, 0, &UnavailableError{Session: s.id, Key: key, Unavailable: *down}
	}
	raw, err := cuts[0].encode(s.r.o.MaxStateBytes)
	if err != nil {
		return nil, 0, err
	}
	return bytes.Clone(raw), at, nil
}

// Retry tries faulted keys again, those named or all, from their last rows, and gives them as Snapshot does. One that ended a process
// is approached one event at a time.
func (s *Session) Retry(ctx context.Context, keys ...string) (Block, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return Block{}, ErrDetached
	}
	s.follow()
	for _, k := range s.places(true, keys) {
		s.r.poison.forget(poisonKey{session: s.id, incarnation: s.log.Incarnation(), b: s.plan.units[k]})
		s.tryAgain(k)
	}
	s.mu.Unlock()
	return s.Snapshot(ctx, keys...)
}

// tryAgain gives a key whose cell is faulted another one. mu is held.
func (s *Session) tryAgain(k int) {
	sl := &s.slots[k]
	old := sl.cur
	if old == nil || old.fault == nil {
		return
	}
	n := s.makeCell(k, s.head+1)
	s.owe(n)
	if old.poison {
		n.suspicion = &suspicion{to: old.fault.FailedAt, survived: -1}
	}
	s.drop(old)
	sl.cur = n
	s.renew(n)
	if n.fault != nil {
		s.tellDown(n, *n.fault)
	}
	s.drive(n)
	s.settle(k)
}
