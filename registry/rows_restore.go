package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/foldhost/foldhost/event"
)

// Tail is a contiguous end of one life of one log: its events from seq Base on.
type Tail struct {
	Session, Incarnation string
	Base                 int64
	Events               []event.Event
}

// end is the seq of the last event.
func (t *Tail) end() int64 { return t.Base + int64(len(t.Events)) - 1 }

func (t *Tail) check() error {
	if t.Base < 0 {
		return &TailError{Session: t.Session, Want: 0, Have: t.Base}
	}
	for i := range t.Events {
		if want := t.Base + int64(i); t.Events[i].Seq != want {
			return &TailError{Session: t.Session, Want: want, Have: t.Events[i].Seq}
		}
	}
	return nil
}

// TailError: the events handed to Restore are not contiguous from their base, a fault of the caller.
type TailError struct {
	Session    string
	Want, Have int64
}

func (e *TailError) Error() string {
	return fmt.Sprintf("session %q cannot be restored: seq %d stands where %d belongs; hand over every event from the base on", e.Session, e.Have, e.Want)
}

// RereadError: rows cannot be used and the tail does not reach back far enough to do without. Read again from seq 0.
type RereadError struct {
	Session, Key string
	// Base is where the tail began.
	Base   int64
	Reason string
}

func (e *RereadError) Error() string {
	return fmt.Sprintf("session %q cannot be restored from seq %d: the row of %q is of no use (%s); read again from seq 0", e.Session, e.Base, e.Key, e.Reason)
}

// NoEventError: the log has no event where one was expected.
type NoEventError struct {
	Session string
	Seq     int64
}

func (e *NoEventError) Error() string {
	return fmt.Sprintf("session %q has no event %d; look at its head and ask again", e.Session, e.Seq)
}

// Restore folds a tail over rows: the block as of the tail's last event, and rows refreshed to it. A row is usable if it is of this life of the
// log and of the unit as it is now, Base−1 ≤ seq ≤ end, the event at seq is the one it was made at (where the tail has it), and its state passes its
// schema. With base > 0 an unusable row gives a *RereadError; with base 0 its unit is folded from init.
//
// A unit that fails is listed as unavailable and has no refreshed row; one whose plugin cannot be asked now is listed too and keeps
// the row it had. The others go on. Errors: *RereadError, *TailError, the context's.
func (r *Registry) Restore(ctx context.Context, set string, rows Rows, tail Tail) (Block, Rows, error) {
	if err := tail.check(); err != nil {
		return Block{}, Rows{}, err
	}
	job := restoring{r: r, block: r.blank(), rows: rows, log: &tailLog{tail}, base: tail.Base, end: tail.end()}
	return job.run(ctx, r.setBindings(set))
}

// RestoreFrom is Restore for a log that can be read: it gives what Restore would give for the whole log up to the event at end, and reads only
// the single events that rows stand on, the event at end, and events of the types that units fold from where their rows end. It
// never asks to read again: a unit without a usable row is folded from init by itself. keys narrows both results; none is all.
// Errors: *NoEventError when there is no event at end, the log's, the context's.
func (r *Registry) RestoreFrom(ctx context.Context, set string, rows Rows, log Log, end int64, keys ...string) (Block, Rows, error) {
	if end < -1 {
		return Block{}, Rows{}, &NoEventError{Session: log.ID(), Seq: end}
	}
	job := restoring{r: r, block: r.blank(), rows: rows, log: log, end: end}
	return job.run(ctx, narrow(r.setBindings(set), keys))
}

// restoring is one restore under way.
type restoring struct {
	r    *Registry
	rows Rows
	log  Log
	// base is where the log begins for this restore, end its last event.
	base, end int64

	// prints are fingerprints of single events by seq, as far as they were needed.
	prints map[int64]string
	// seeds are the rows that can be used.
	seeds map[string]Row
	// revs are the revisions as they were at the beginning: a session that has become live meanwhile must not look older.
	revs map[string]int64

	// mu guards the results, which several scratches add to.
	mu    sync.Mutex
	block Block
	fresh Rows
}

func (j *restoring) run(ctx context.Context, bindings []*binding) (Block, Rows, error) {
	j.block.AsOfSeq = j.end
	j.fresh = Rows{Session: j.log.ID(), Incarnation: j.log.Incarnation(), Cut: j.end, Rows: make(map[string]Row, len(bindings))}
	j.revs = make(map[string]int64, len(bindings))
	for _, b := range bindings {
		j.revs[b.Key] = b.revision()
	}
	j.prints = map[int64]string{-1: ""}
	if _, err := j.fingerprint(ctx, j.end); err != nil {
		return Block{}, Rows{}, err
	}
	j.seeds = make(map[string]Row, len(bindings))
	for _, b := range bindings {
		row, reason, err := j.usable(ctx, b)
		if err != nil {
			return Block{}, Rows{}, err
		}
		if reason == "" {
			j.seeds[b.Key] = row
		} else if _, down := b.forScratch(); down == nil && j.base > 0 {
			// To read again for a unit that nobody can ask would be in vain.
			return Block{}, Rows{}, j.reread(b.Key, reason)
		}
	}
	if err := j.r.apart(ctx, j.log, bindings, j.fold); err != nil {
		return Block{}, Rows{}, err
	}
	return j.block, j.fresh, nil
}

// fold restores the cells of one scratch.
func (j *restoring) fold(ctx context.Context, s *scratch) error {
	for _, c := range s.cells {
		if row, ok := j.seeds[c.Key]; ok {
			c.seed(row.Val, row.Seq)
		}
		if c.down == nil && c.seedSeq < j.base-1 {
			// Its row is known to be of no use, by what happened to a process.
			if c.limit == nil {
				return j.reread(c.Key, "a process died of it")
			}
			c.down = c.limit
		}
	}
	var reread error
	err := s.openAll(ctx, func(c *scratchCell, message string) bool {
		reread = j.reread(c.Key, message)
		return j.base == 0
	})
	if err != nil {
		return err
	}
	if reread != nil && j.base > 0 {
		return reread
	}
	if err := s.advance(ctx, j.end); err != nil {
		return err
	}
	values := make(map[*scratchCell]json.RawMessage, len(s.cells))
	for _, c := range s.cells {
		values[c] = s.value(c)
	}
	states, err := s.states(ctx)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range s.cells {
		j.take(c, values[c], states[c])
	}
	return nil
}

// take adds what became of one cell. mu is held.
func (j *restoring) take(c *scratchCell, value, state json.RawMessage) {
	old, seeded := j.seeds[c.Key]
	if c.down != nil {
		if !c.HostOnly() {
			j.block.Unavailable[c.Key] = *c.down
		}
		if seeded && c.down.Code != Faulted {
			j.fresh.Rows[c.Key] = old
		}
		return
	}
	if !c.HostOnly() {
		j.block.Values[c.Key], j.block.Revs[c.Key] = value, j.revs[c.Key]
	}
	if state == nil {
		return
	}
	anchor := j.prints[j.end]
	if j.end < j.base {
		// Nothing was read: the row stands where it stood, on the event it stood on.
		anchor = old.Anchor
	}
	j.fresh.Rows[c.Key] = Row{Ver: c.StateVersion, Def: c.Digest, Seq: j.end, Val: state, View: value, Config: c.ConfigDigest, Anchor: anchor}
}

// usable gives the row of a unit in the form in which it can seed a cell, or why it cannot.
func (j *restoring) usable(ctx context.Context, b *binding) (row Row, reason string, err error) {
	row, ok := j.rows.Rows[b.Key]
	switch {
	case !ok:
		return row, "there is none", nil
	case !j.rows.of(j.log.ID(), j.log.Incarnation()):
		return row, "it belongs to another life of the log", nil
	}
	if reason = b.mismatch(row); reason != "" {
		return row, reason, nil
	}
	if row.Seq < j.base-1 || row.Seq > j.end {
		return row, fmt.Sprintf("it stands at seq %d, outside of %d to %d", row.Seq, j.base-1, j.end), nil
	}
	if row.Seq >= j.base {
		got, err := j.fingerprint(ctx, row.Seq)
		if err != nil {
			return row, "", err
		}
		if got != row.Anchor {
			return row, fmt.Sprintf("the event at seq %d is not the one it stood on", row.Seq), nil
		}
	}
	if row.Val, err = b.AcceptState(row.Val, j.r.o.MaxStateBytes); err != nil {
		return row, err.Error(), nil
	}
	return row, "", nil
}

// fingerprint gives the fingerprint of the event at seq, and nothing for one below the base.
func (j *restoring) fingerprint(ctx context.Context, seq int64) (string, error) {
	if got, ok := j.prints[seq]; ok || seq < j.base {
		return got, nil
	}
	got, err := fingerprintAt(ctx, j.log, seq)
	if err != nil {
		return "", err
	}
	j.prints[seq] = got
	return got, nil
}

func (j *restoring) reread(key, reason string) error {
	return &RereadError{Session: j.log.ID(), Key: key, Base: j.base, Reason: reason}
}

// tailLog reads a tail as if it were a log.
type tailLog struct{ Tail }

func (t *tailLog) ID() string          { return t.Session }
func (t *tailLog) Incarnation() string { return t.Tail.Incarnation }

func (t *tailLog) ReadPage(_ context.Context, from, to int64, types []string) ([]event.Event, int64, error) {
	if from < t.Base {
		return nil, 0, &NoEventError{Session: t.Session, Seq: from}
	}
	end := min(to, t.end()+1)
	if from >= end {
		return nil, to, nil
	}
	events := t.Events[from-t.Base : end-t.Base]
	if types == nil {
		return events, to, nil
	}
	wanted := make(map[string]bool, len(types))
	for _, typ := range types {
		wanted[typ] = true
	}
	var some []event.Event
	for i := range events {
		if wanted[events[i].Type] {
			some = append(some, events[i])
		}
	}
	return some, to, nil
}
