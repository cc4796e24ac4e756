package checkpoint

import (
	"log/slog"
	"time"
)

// Options of a cache. The zero value is usable.
type Options struct {
	Policy Policy
	// Logger gets failed writes and rows that are not used; nil is slog.Default.
	Logger *slog.Logger
	// Writers is how many sessions are written at once; 0 is 4.
	Writers int
	// TakeWait is how long a write waits for units that trail, which keep the row they have; 0 is 1 s. DetachWait bounds all that a session waits for
	// that goes cold; 0 is 2 s. WriteWait bounds one write, and Close; 0 is 10 s.
	TakeWait, DetachWait, WriteWait time.Duration
	// PastEvery is the least distance of the rows kept for reads of the past, in events of the log, and how much of a long log is folded between
	// two rows; 0 is 10,000.
	PastEvery int64
	// ReadWait is how long a cold read waits for keys that have much to fold; 0 is 2 s. BuildWait bounds the work itself, which goes on without the
	// reader; 0 is 10 min. Builders is how many sessions are worked on so at once; 0 is 2.
	ReadWait, BuildWait time.Duration
	Builders            int
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Policy = o.Policy.withDefaults()
	def(&o.Writers, 4)
	def(&o.TakeWait, time.Second)
	def(&o.DetachWait, 2*time.Second)
	def(&o.WriteWait, 10*time.Second)
	def(&o.PastEvery, 10_000)
	def(&o.ReadWait, 2*time.Second)
	def(&o.BuildWait, 10*time.Minute)
	def(&o.Builders, 2)
	return o
}

func def[N int | int64 | time.Duration](n *N, is N) {
	if *n <= 0 {
		*n = is
	}
}
