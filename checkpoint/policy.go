package checkpoint

import "time"

// Policy says when the rows of a live session are written, besides when it goes cold.
type Policy struct {
	// EveryEvents folded events; 0 is 200: what a plugin folds again after a crash of the host, within a millisecond or so.
	EveryEvents int
	// Interval after the first event that no row covers, not sliding; 0 is 5 s.
	Interval time.Duration
}

// Pending is what happened since the last write.
type Pending struct {
	// Events counts those that some unit folds.
	Events int
	// Since is when the first of them came, or the last write failed.
	Since time.Time
	// TurnEnded: one of them, or one after them, ended a turn.
	TurnEnded bool
}

func (p Policy) withDefaults() Policy {
	if p.EveryEvents <= 0 {
		p.EveryEvents = 200
	}
	if p.Interval <= 0 {
		p.Interval = 5 * time.Second
	}
	return p
}

// Due says whether rows are to be written at now, and if not, when to look again; never with nothing pending.
func (p Policy) Due(have Pending, now time.Time) (due bool, again time.Duration) {
	p = p.withDefaults()
	if have.Events == 0 {
		return false, 0
	}
	wait := have.Since.Add(p.Interval).Sub(now)
	if have.TurnEnded || have.Events >= p.EveryEvents || wait <= 0 {
		return true, 0
	}
	return false, wait
}
