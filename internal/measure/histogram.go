// Package measure counts in the places that work, without a lock and without knowing who will read: what it gives are plain numbers.
package measure

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// Histogram counts values in buckets. The zero Histogram has none; use New. Safe for concurrent use: an observation is two atomic additions and no allocation.
type Histogram struct {
	bounds []float64
	// counts has one place for each bound, and a last one for what is above them all.
	counts []atomic.Uint64
	// sum is the sum of all values in units of 1/scale: an integer, so that it can be added to at once. 2^63 of them are 292 years of nanoseconds.
	sum   atomic.Int64
	scale float64
}

// What buckets hold. Seconds: from what is hardly anything, 50 µs, to what is too long, 30 s. Counts: powers of four up to a thousand, and beyond.
var (
	Seconds = []float64{0.00005, 0.0002, 0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 30}
	Counts  = []float64{1, 4, 16, 64, 256, 1024}
)

// NewSeconds makes a histogram of durations, in seconds.
func NewSeconds() *Histogram { return newHistogram(Seconds, 1e9) }

// NewCounts makes a histogram of whole numbers.
func NewCounts() *Histogram { return newHistogram(Counts, 1) }

func newHistogram(bounds []float64, scale float64) *Histogram {
	return &Histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1), scale: scale}
}

// Took observes a duration, in a histogram of seconds.
func (h *Histogram) Took(d time.Duration) {
	h.counts[h.place(d.Seconds())].Add(1)
	h.sum.Add(int64(d))
}

// Had observes a number, in a histogram of counts.
func (h *Histogram) Had(n int) {
	h.counts[h.place(float64(n))].Add(1)
	h.sum.Add(int64(n))
}

// place is that of the first bound that is not below v.
func (h *Histogram) place(v float64) int {
	i, _ := slices.BinarySearch(h.bounds, v)
	return i
}

// Distribution is what a histogram holds at one time. Values observed meanwhile may be in the buckets and not yet in the sum.
type Distribution struct {
	// Bounds are the upper ends of the buckets, inclusive; Cumulative counts the values up to each, Count all of them.
	Bounds     []float64
	Cumulative []uint64
	Count      uint64
	Sum        float64
}

// Read gives what the histogram holds; of nil, nothing.
func (h *Histogram) Read() Distribution {
	if h == nil {
		return Distribution{}
	}
	d := Distribution{Bounds: h.bounds, Cumulative: make([]uint64, len(h.bounds))}
	for i := range h.counts {
		d.Count += h.counts[i].Load()
		if i < len(h.bounds) {
			d.Cumulative[i] = d.Count
		}
	}
	d.Sum = float64(h.sum.Load()) / h.scale
	return d
}

// Age is how long ago a time was, in seconds; of the zero time, and of one to come, 0.
func Age(since, now time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return math.Max(0, now.Sub(since).Seconds())
}
