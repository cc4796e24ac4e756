package checkpoint

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRowsAreDueAtTheEndOfATurnAfterSoManyEventsOrSoLong(t *testing.T) {
	base := time.Unix(1000, 0)
	after := func(d time.Duration) time.Time { return base.Add(d) }
	for name, c := range map[string]struct {
		have  Pending
		now   time.Time
		due   bool
		again time.Duration
	}{
		"nothing":                    {Pending{}, base, false, 0},
		"nothing, long ago":          {Pending{Since: base, TurnEnded: true}, after(time.Hour), false, 0},
		"one event":                  {Pending{Events: 1, Since: base}, base, false, 5 * time.Second},
		"one event, a while ago":     {Pending{Events: 1, Since: base}, after(4 * time.Second), false, time.Second},
		"one event, the interval":    {Pending{Events: 1, Since: base}, after(5 * time.Second), true, 0},
		"one event, and a turn end":  {Pending{Events: 1, Since: base, TurnEnded: true}, base, true, 0},
		"almost too many":            {Pending{Events: 199, Since: base}, base, false, 5 * time.Second},
		"too many":                   {Pending{Events: 200, Since: base}, base, true, 0},
		"a clock that was set back":  {Pending{Events: 1, Since: base}, after(-time.Second), false, 6 * time.Second},
		"too many at once, no delay": {Pending{Events: 1000, Since: base}, base, true, 0},
	} {
		if due, again := (Policy{}).Due(c.have, c.now); due != c.due || again != c.again {
			t.Errorf("%s: due %v, again in %v; want %v, %v", name, due, again, c.due, c.again)
		}
	}
}

func TestThePolicyNeverSleepsOverWhatIsPending(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{EveryEvents: rapid.IntRange(0, 50).Draw(t, "every"), Interval: time.Duration(rapid.IntRange(0, 1000).Draw(t, "interval")) * time.Millisecond}
		have := Pending{Events: rapid.IntRange(0, 300).Draw(t, "events"), Since: time.Unix(0, 0), TurnEnded: rapid.Bool().Draw(t, "ended")}
		now := have.Since.Add(time.Duration(rapid.IntRange(0, 10_000).Draw(t, "passed")) * time.Millisecond)
		due, again := p.Due(have, now)
		switch {
		case due && have.Events == 0:
			t.Fatal("due with nothing to write")
		case due && again != 0:
			t.Fatalf("due, and again in %v", again)
		case !due && have.Events > 0 && again <= 0:
			t.Fatal("not due, and never looked at again")
		}
		if !due && have.Events > 0 {
			if due, _ := p.Due(have, now.Add(again)); !due {
				t.Fatalf("still not due %v later", again)
			}
			have.TurnEnded = true
			if due, _ := p.Due(have, now); !due {
				t.Fatal("the end of a turn makes no difference")
			}
		}
	})
}
