package registry

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/internal/measure"
)

// Stats is what a registry has done since it was made, and how its cells stand.
type Stats struct {
	// Units are sorted by plugin, then key. One that is registered again after its last registration was released counts from 0.
	Units []UnitStats
	// Sessions are attached. Busy ones could not be looked at, since they were folding each time: their cells count nowhere.
	Sessions, Busy int
}

// UnitStats are those of one unit of one plugin.
type UnitStats struct {
	Plugin, Key string
	// Folded counts events that were folded, each time that they were: live, for building a cell, again after a crash, for a read of a cold session or of the past.
	Folded int64
	// Faults counts cells that failed; Faulted are cells of live sessions that have, and were not tried again since.
	Faults  int64
	Faulted int
	// Behind are cells of live sessions that have something to fold. Lag is the distance from the head of the one that is furthest behind, in events of
	// the log, and LagAge since when that one is; Oldest is the longest that any is.
	Behind         int
	Lag            int64
	LagAge, Oldest time.Duration
	// BatchEvents and BatchSeconds are what was folded at once: batches of a process, from when they were handed over to the answer, and pages of units in this process that
	// are being built. EventSeconds are single events of those, folded as they are appended: one in sampleEvery is measured.
	BatchEvents, BatchSeconds, EventSeconds measure.Distribution
}

// sampleEvery: a fold in this process takes about as long as looking at the clock twice.
const sampleEvery = 64

// counts are what is counted of one unit of one plugin, whoever computes it: successive definitions share them.
type counts struct {
	// bindings are those that there are; Registry.mu guards it.
	bindings int

	folded, faults            atomic.Int64
	batchEvents, batchSeconds *measure.Histogram
	eventSeconds              *measure.Histogram
}

// countKey names counts.
type countKey struct{ plugin, key string }

// countLocked gives the counts of a unit for one more binding. r.mu is held.
func (r *Registry) countLocked(k countKey) *counts {
	c := r.counts[k]
	if c == nil {
		c = &counts{batchEvents: measure.NewCounts(), batchSeconds: measure.NewSeconds(), eventSeconds: measure.NewSeconds()}
		r.counts[k] = c
	}
	c.bindings++
	return c
}

// uncountLocked is one binding less. What nobody registers is not counted, or a plugin that registers ever other keys would grow the host. r.mu is held.
func (r *Registry) uncountLocked(b *binding) {
	if b.counts.bindings--; b.counts.bindings == 0 {
		delete(r.counts, countKey{b.by.Plugin, b.Key})
	}
}

// batch counts events that were folded at once.
func (c *counts) batch(events int, took time.Duration) {
	if events == 0 {
		return
	}
	c.folded.Add(int64(events))
	c.batchEvents.Had(events)
	c.batchSeconds.Took(took)
}

// event counts an event that is folded by itself, and says whether to measure it.
func (c *counts) event() (sample bool) { return c.folded.Add(1)%sampleEvery == 1 }

// sinceStart is a time as cells keep it: 8 bytes.
func (r *Registry) sinceStart() time.Duration { return time.Since(r.started) }

// trails says that the cell has something to fold.
func (c *cell) trails() bool {
	return c.fault == nil && (!c.ready() || c.due > c.asOf())
}

// Stats looks at every cell of every live session, and delays nobody: a session that is folding is come back to, and left out when it always is. Of 10,000 sessions with four
// cells each it takes about a millisecond.
func (r *Registry) Stats() Stats {
	units := map[*counts]*UnitStats{}
	r.mu.Lock()
	for k, c := range r.counts {
		units[c] = &UnitStats{Plugin: k.plugin, Key: k.key}
	}
	r.mu.Unlock()
	sessions := r.live()
	st := Stats{Sessions: len(sessions)}
	for tries := 0; len(sessions) > 0 && tries < statsTries; tries++ {
		if tries > 0 {
			time.Sleep(statsPause)
		}
		now := r.sinceStart()
		busy := sessions[:0]
		for _, s := range sessions {
			if !s.mu.TryLock() {
				busy = append(busy, s)
				continue
			}
			s.countCells(units, now)
			s.mu.Unlock()
		}
		sessions = busy
	}
	st.Busy = len(sessions)
	for c, u := range units {
		u.Folded, u.Faults = c.folded.Load(), c.faults.Load()
		u.BatchEvents, u.BatchSeconds, u.EventSeconds = c.batchEvents.Read(), c.batchSeconds.Read(), c.eventSeconds.Read()
		st.Units = append(st.Units, *u)
	}
	slices.SortFunc(st.Units, func(a, b UnitStats) int { return cmp.Or(cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.Key, b.Key)) })
	return st
}

// A session holds its lock for microseconds, unless a unit in this process hangs.
const (
	statsTries = 5
	statsPause = time.Millisecond
)

// countCells adds the cells that serve. mu is held.
func (s *Session) countCells(units map[*counts]*UnitStats, now time.Duration) {
	if s.closed {
		return
	}
	for k := range s.slots {
		c := s.slots[k].cur
		if c == nil {
			continue
		}
		u := units[c.b.counts]
		switch {
		case u == nil: // Registered a moment ago, or released.
		case c.fault != nil:
			u.Faulted++
		case c.trails():
			u.Behind++
			age, lag := max(now-c.behind, 0), s.head-c.asOf()
			if lag > u.Lag || lag == u.Lag && age > u.LagAge {
				u.Lag, u.LagAge = lag, age
			}
			u.Oldest = max(u.Oldest, age)
		}
	}
}
