package session

import (
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/internal/measure"
)

// Stats are what a set has done since it was made, as live counters.
type Stats struct {
	// Appends were committed, with Events events. Refused are those of Append and AppendBatch that came to nothing, whoever is to blame.
	Appends, Events, Refused atomic.Int64
	// Created and Opened sessions became live, Closed went cold again or were deleted. Of those SlowCloses took longer than Options.SlowClose.
	Created, Opened, Closed, SlowCloses atomic.Int64
	// SurfaceRows of sessions were stored; SurfaceFailed could not be; SurfaceUnused were there and could not be used, so that the surface was folded from the log.
	SurfaceRows, SurfaceFailed, SurfaceUnused atomic.Int64
	// OpenSeconds and CloseSeconds are how long opening and going cold took.
	OpenSeconds, CloseSeconds *measure.Histogram
}

// Stats are live counters.
func (t *Set) Stats() *Stats { return &t.stats }

// Len is how many sessions are live, or on the way there or back.
func (t *Set) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.slots)
}

// committed counts an append.
func (s *Stats) committed(events int) {
	s.Appends.Add(1)
	s.Events.Add(int64(events))
}

// opened counts one that was opened.
func (s *Stats) opened(took time.Duration) {
	s.Opened.Add(1)
	s.OpenSeconds.Took(took)
}

// closed counts a core that ended, and logs one that took too long: with a store or a plugin that is slow many sessions stay in memory that nobody uses.
func (c *core) closed(took time.Duration) {
	s := &c.set.stats
	s.Closed.Add(1)
	s.CloseSeconds.Took(took)
	if took > c.set.o.SlowClose {
		s.SlowCloses.Add(1)
		c.set.o.Logger.Warn("a session took long to go cold: the store or a plugin is slow", "session", c.s.id, "took", took)
	}
}
