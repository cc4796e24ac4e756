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
	for s := 3; s < 9; s++ {
		h.Add(restart.Failure{At: at(s), Busy: true})
	}
	if !h.Decide(at(9), 0).Park {
		t.Fatal("eight failures do not park")
	}
	h.Forgive()
	if d := h.Decide(at(9), 0); d.Park || d.Recent != 2 {
		t.Errorf("parked %v with %d failures; only the two that nobody is to blame for count", d.Park, d.Recent)
	}
	h.Forget()
	if d := h.Decide(at(9), 0); d.Recent != 0 || !d.Until.Equal(at(9)) {
		t.Errorf("after forgetting: %+v", d)
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
			if d.Park != (d.Recent >= restart.Limit) {
				t.Fatalf("%+v", d)
			}
		}
	})
}
