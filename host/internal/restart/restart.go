// Package restart is the policy of supervision: when a plugin that failed is started again, and when it is parked. It is a function of
// timestamps and knows no process; a History belongs to its caller, who guards it.
package restart

import "time"

// The numbers of the policy.
const (
	// First is the wait after one failure, doubled with each that follows. 250 ms: most crashes are over by then, and ten restarts a second of
	// a plugin that dies at once would be noise.
	First = 250 * time.Millisecond
	// Longest bounds the wait: an operator who has mended something waits half a minute at most.
	Longest = 30 * time.Second
	// Healthy is how long a plugin must have been up for its failures before to be forgotten in the wait.
	Healthy = 60 * time.Second
	// Limit failures within Period park it.
	Limit  = 5
	Period = 5 * time.Minute
	// Jitter is the largest part by which a wait is shortened, so that plugins that died together do not start together.
	Jitter = 0.2
)

// Failure is one process that failed, or did not start.
type Failure struct {
	At time.Time
	// Up is how long it had been ready before; 0 when it never was.
	Up time.Duration
	// Busy says that it had batches in flight, so that an event of a session may have been the reason.
	Busy bool
}

// History is the failures of one plugin with one config. The zero History has none.
type History struct{ failures []Failure }

// Add takes note of a failure. What no decision depends on any more is forgotten.
func (h *History) Add(f Failure) {
	h.failures = append(h.failures, f)
	if len(h.failures) > 2*Limit {
		h.failures = append([]Failure(nil), h.failures[len(h.failures)-2*Limit:]...)
	}
}

// Forgive takes back the failures that one event of one session is to blame for: that one was convicted, and the deaths with batches in flight since
// the last other failure were the search for it.
func (h *History) Forgive() {
	n := len(h.failures)
	for n > 0 && h.failures[n-1].Busy {
		n--
	}
	h.failures = h.failures[:n]
}

// Forget takes everything back: somebody asked for a new start.
func (h *History) Forget() { h.failures = nil }

// Decision is what to do.
type Decision struct {
	// Park: do not start it again by itself. Otherwise start it at Until.
	Park  bool
	Until time.Time
	// Recent is how many failures within Period there were.
	Recent int
}

// Decide says what to do at now about a plugin that is down. random is from [0, 1).
func (h *History) Decide(now time.Time, random float64) Decision {
	var d Decision
	wait := First
	for i := len(h.failures) - 1; i >= 0; i-- {
		if now.Sub(h.failures[i].At) < Period {
			d.Recent++
		}
	}
	if d.Recent >= Limit {
		d.Park = true
		return d
	}
	// In a row: each that follows one came before the plugin had been healthy for long.
	for i := len(h.failures) - 1; i > 0 && h.failures[i].Up < Healthy && wait < Longest; i-- {
		wait *= 2
	}
	wait = min(wait, Longest)
	if len(h.failures) == 0 {
		d.Until = now
		return d
	}
	wait -= time.Duration(float64(wait) * Jitter * random)
	d.Until = h.failures[len(h.failures)-1].At.Add(wait)
	return d
}
