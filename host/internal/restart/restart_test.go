package restart_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/foldhost/foldhost/host/internal/restart"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// failed is a history of failures at these seconds, each after having been up for so long.
func failed(up time.Duration, busy bool, seconds ...int) *restart.History {
	var h restart.History
	for _, s := range seconds {
		h.Add(restart.Failure{At: at(s), Up: up, Busy: busy})
	}
	return &h
}

func at(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }

func TestTheWaitDoublesAndIsBounded(t *testing.T) {
	for _, c := range []struct {
		name string
		h    *restart.History
		want time.Duration
	}{
		{"no failure", failed(0, false), 0},
		{"one", failed(0, false, 10), 250 * time.Millisecond},
		{"two", failed(0, false, 5, 10), 500 * time.Millisecond},
		{"four", failed(0, false, 7, 8, 9, 10), 2 * time.Second},
		{"old ones count while it was never healthy", failed(0, false, -3000, -2000, -1000, 10), 2 * time.Second},
		{"many", failed(0, false, -9000, -8000, -7000, -6000, -5000, -4000, -3000, -2000, 10), 30 * time.Second},
		{"healthy before the last", failed(time.Minute, false, 5, 10), 250 * time.Millisecond},
		{"not quite healthy", failed(time.Minute-1, false, 5, 10), 500 * time.Millisecond},
	} {
		d := c.h.Decide(at(10), 0)
		if got := d.Until.Sub(at(10)); got != c.want || d.Park {
			t.Errorf("%s: waits %v, parked %v; want %v", c.name, got, d.Park, c.want)
		}
	}
}

func TestFiveFailuresWithinFiveMinutesPark(t *testing.T) {
	for _, c := range []struct {
		name string
		h    *restart.History
		now  int
		park bool
	}{
		{"four", failed(0, false, 1, 2, 3, 4), 5, false},
		{"five", failed(0, false, 1, 2, 3, 4, 5), 5, true},
		{"five, the first five minutes ago", failed(0, false, 0, 1, 2, 3, 300), 300, false},
		{"five, the first a moment less ago", failed(0, false, 1, 2, 3, 4, 300), 300, true},
		{"five that were each healthy", failed(61*time.Second, false, 0, 62, 124, 186, 248), 248, true},
	} {
		if d := c.h.Decide(at(c.now), 0); d.Park != c.park {
			t.Errorf("%s: parked %v", c.name, d.Park)
		}
	}
}

func TestDeathsOfAPoisonedEventAreForgiven(t *testing.T) {
	h := failed(0, false, 1, 2)
	last := 3 + restart.Search
	for s := 3; s < last; s++ {
		h.Add(restart.Failure{At: at(s), Busy: true})
	}
	if !h.Decide(at(last), 0).Park {
		t.Fatal("a search without end does not park")
	}
	h.Forgive(at(last))
	if d := h.Decide(at(last), 0); d.Park || d.Recent != 2 {
		t.Errorf("parked %v with %d failures; only the two that nobody is to blame for count", d.Park, d.Recent)
	}
	h.Forget()
	if d := h.Decide(at(last), 0); d.Recent != 0 || !d.Until.Equal(at(last)) {
		t.Errorf("after forgetting: %+v", d)
	}
}

// TestASearchHasItsOwnMeasure: deaths with events in flight may be the search for one, which takes more of them than park otherwise, and is not
// slowed down; what it is mixed with counts as always.
func TestASearchHasItsOwnMeasure(t *testing.T) {
	for _, c := range []struct {
		name      string
		own, busy int
		park      bool
		wait      time.Duration
	}{
		{"a search", 0, restart.Search - 1, false, restart.First},
		{"one that does not end", 0, restart.Search, true, 0},
		{"failures and a search", restart.Limit - 1, restart.Search - 1, false, 8 * restart.First},
		{"one failure too many and a search", restart.Limit, 1, true, 0},
	} {
		h := failed(0, false, make([]int, c.own)...)
		for range c.busy {
			h.Add(restart.Failure{At: at(0), Up: time.Second, Busy: true})
		}
		d := h.Decide(at(0), 0)
		if d.Park != c.park || d.Searched != c.busy || d.Recent != c.own+c.busy || !c.park && !d.Until.Equal(at(0).Add(c.wait)) {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
}

// TestTheSearchForAGuiltyEventHidesNoOtherFailure: however many deaths it took.
func TestTheSearchForAGuiltyEventHidesNoOtherFailure(t *testing.T) {
	h := failed(0, false, 1, 2, 3, 4)
	for range 40 {
		h.Add(restart.Failure{At: at(5), Busy: true})
	}
	h.Forgive(at(5))
	if d := h.Decide(at(5), 0); d.Recent != 4 {
		t.Errorf("%d failures count", d.Recent)
	}
}

// TestMoreGuiltyEventsThanThereCanBePark: each was forgiven, and all of them within the period are too many.
func TestMoreGuiltyEventsThanThereCanBePark(t *testing.T) {
	for _, c := range []struct {
		name   string
		guilty int
		// every is how many seconds lie between them.
		every float64
		park  bool
	}{
		{"one less", restart.Excuses - 1, 1, false},
		{"as many", restart.Excuses, 1, true},
		{"far more", 10 * restart.Excuses, 1, true},
		{"as many in a longer time", 10 * restart.Excuses, 6.2, false},
	} {
		var h restart.History
		now := start
		for range c.guilty {
			now = now.Add(time.Duration(c.every * float64(time.Second)))
			h.Add(restart.Failure{At: now, Busy: true})
			h.Forgive(now)
		}
		if d := h.Decide(now, 0); d.Park != c.park || d.Recent != 0 {
			t.Errorf("%s: %+v", c.name, d)
		}
		h.Forget()
		if d := h.Decide(now, 0); d.Park || d.Excused != 0 {
			t.Errorf("%s, forgotten: %+v", c.name, d)
		}
	}
}

func TestADecisionIsAlwaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h restart.History
		now := start
		for range rapid.IntRange(1, 40).Draw(t, "failures") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "seconds")) * time.Second)
			h.Add(restart.Failure{At: now, Up: time.Duration(rapid.IntRange(0, 120).Draw(t, "up")) * time.Second, Busy: rapid.Bool().Draw(t, "busy")})
			d := h.Decide(now, rapid.Float64Range(0, 0.999).Draw(t, "random"))
			wait := d.Until.Sub(now)
			if !d.Park && (wait < restart.First*8/10 || wait > restart.Longest) {
				t.Fatalf("waits %v", wait)
			}
			if d.Park != (d.Recent-d.Searched >= restart.Limit || d.Searched >= restart.Search) {
				t.Fatalf("%+v", d)
			}
		}
	})
}
