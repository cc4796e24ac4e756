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
	// Search is how many deaths with events in flight within Period park it, unless one of the events was found guilty. It takes up to five to find
	// one, and where several sessions have one, each may be accused before the first is convicted.
	Search = 20
	// Excuses is how many events may be found guilty within Period before the plugin is parked all the same. A plugin that dies by itself, whatever it
	// folds, has an event in flight each time: without a bound one session after the other would be convicted of it. Fifty sessions with an
	// event that a plugin cannot bear are a plugin that is of no use to anybody.
	Excuses = 50
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
type History struct {
	failures []Failure
	// excused are the times at which an event was found guilty.
	excused []time.Time
}

// Add takes note of a failure. What no decision depends on any more is forgotten.
func (h *History) Add(f Failure) {
	h.failures = latest(append(h.failures, f), kept)
}

// kept is how many failures are remembered: those that count must not be forgotten over the search for a guilty event, of which each step is one.
const kept = 2*Limit + 2*Search

// latest keeps the last n.
func latest[T any](all []T, n int) []T {
	if len(all) <= n {
		return all
	}
	return append([]T(nil), all[len(all)-n:]...)
}

// Forgive takes back the failures that one event of one session is to blame for: that one was convicted at now, and the deaths with batches in
// flight since the last other failure were the search for it.
func (h *History) Forgive(now time.Time) {
	h.excused = latest(append(h.excused, now), Excuses)
	n := len(h.failures)
	for n > 0 && h.failures[n-1].Busy {
		n--
	}
	h.failures = h.failures[:n]
}

// Forget takes everything back: somebody asked for a new start.
func (h *History) Forget() { *h = History{} }

// Decision is what to do.
type Decision struct {
	// Park: do not start it again by itself. Otherwise start it at Until.
	Park  bool
	Until time.Time
	// Recent is how many failures within Period there were, and Excused how many events were found guilty.
	Recent, Excused int
	// Searched are those of Recent with events in flight.
	Searched int
}

// Decide says what to do at now about a plugin that is down. random is from [0, 1).
func (h *History) Decide(now time.Time, random float64) Decision {
	var d Decision
	for _, f := range h.failures {
		if now.Sub(f.At) >= Period {
			continue
		}
		d.Recent++
		if f.Busy {
			d.Searched++
		}
	}
	for _, at := range h.excused {
		if now.Sub(at) < Period {
			d.Excused++
		}
	}
	if d.Recent-d.Searched >= Limit || d.Searched >= Search || d.Excused >= Excuses {
		d.Park = true
		return d
	}
	if len(h.failures) == 0 {
		d.Until = now
		return d
	}
	wait := h.wait()
	wait -= time.Duration(float64(wait) * Jitter * random)
	d.Until = h.failures[len(h.failures)-1].At.Add(wait)
	return d
}

// wait doubles with the failures in a row, which are those that came before the plugin had been healthy for long. A search is not slowed down: it
// is bounded, and until it ends others wait for it.
func (h *History) wait() time.Duration {
	row := 0
	for i := len(h.failures) - 1; i >= 0; i-- {
		if !h.failures[i].Busy {
			row++
		}
		if h.failures[i].Up >= Healthy {
			break
		}
	}
	wait := First
	for range row - 1 {
		wait = min(2*wait, Longest)
	}
	return wait
}
