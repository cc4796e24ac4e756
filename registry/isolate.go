package registry

import (
	"errors"

	"github.com/foldhost/foldhost/unit"
)

// When a process dies, or answers what makes no sense, every cell of the batches concerned is a suspect. A suspect is tried alone: nothing
// else is in flight in its process, and it goes step by step: it is opened; it folds again, in one batch, what it had folded before;
// then the events that it was in flight with, one by one; then its state is asked for. The step at which the process dies is accused; if it
// dies there twice running, the cell is convicted. Once is not enough: somebody may have killed the process just then. Each death at a
// step takes something away (the row, the batch, the benefit of the doubt) or ends in the fault of the cell. Deaths that come at ever other steps are
// nobody's but the process's own, and its supervisor counts them.

// suspicion says how far a cell is to be tried.
type suspicion struct {
	// to is the last event that it was in flight with; survived the last that it had folded before that.
	to, survived int64
	// single: also what it had folded before is tried one by one.
	single bool
	// state: its state was asked for in that batch.
	state bool
	// accused is the step at which the process died the last time that the cell was tried alone.
	accused accusation
}

// step is what a careful flight tries.
type step uint8

const (
	// together is a flight like any other: nothing is being tried.
	together step = iota
	stepOpen
	stepAgain
	stepEvent
	stepState
)

// nextStep picks what to try next with a suspect that stands at sent; done when it is cleared.
func nextStep(opened bool, sent, due int64, q suspicion) (st step, to int64, done bool) {
	switch {
	case !opened:
		return stepOpen, sent, false
	case sent < min(q.survived, due) && !q.single:
		return stepAgain, min(q.survived, due), false
	case sent < min(q.to, due):
		return stepEvent, min(q.to, due), false
	case q.state:
		return stepState, sent, false
	}
	return together, 0, true
}

// verdict is what a failed flight means for one of its cells.
type verdict uint8

const (
	// suspectIt: it may have been this one.
	suspectIt verdict = iota
	// withoutRow: it was opened from a row; a row is no authority, so it folds from init.
	withoutRow
	// oneByOne: it was among what had worked before.
	oneByOne
	// accused: it was alone.
	accused
)

func judge(st step, fromRow bool) verdict {
	switch {
	case st == together:
		return suspectIt
	case st == stepOpen && fromRow:
		return withoutRow
	case st == stepAgain:
		return oneByOne
	}
	return accused
}

// deadly says whether an error means that the process is gone, and how its keys are to be called then.
func deadly(err error) (UnavailableCode, bool) {
	var gone *unit.GoneError
	var late *unit.DeadlineError
	switch {
	case errors.As(err, &late):
		return Behind, true
	case errors.As(err, &gone):
		return Restarting, true
	}
	return "", false
}

// blame deals with a flight that failed as a whole. mu is held.
func (l *lane) blame(f *flight, why string, died bool) {
	for i := range f.parts {
		l.blamePart(f, &f.parts[i], why, died)
	}
}

func (l *lane) blamePart(f *flight, p *part, why string, died bool) {
	s, c := l.s, p.c
	k, ok := s.placeOf(c)
	if !ok || c.fault != nil || c.id != p.id && c.lastID != p.id {
		return
	}
	survived := c.pos
	if q := c.suspicion; q != nil {
		survived = max(survived, q.survived)
	}
	fromRow := c.base != nil
	if gone := l.p.death(); died && gone.Code == Behind && !f.careful() {
		c.b.late.Add(1)
	}
	s.reopen(c)
	if c.frozen {
		return // it folds no more
	}
	st := f.step
	if c.suspicion == nil {
		st = together
	}
	switch judge(st, fromRow) {
	case suspectIt:
		q := c.suspicion
		if q == nil {
			q = &suspicion{to: -1, survived: -1}
		}
		q.to, q.survived, q.state = max(q.to, f.through), max(q.survived, survived), q.state || p.state
		c.suspicion = q
	case withoutRow:
		c.base = nil
		s.reopen(c)
	case oneByOne:
		c.suspicion.single = true
	case accused:
		q := c.suspicion
		if a := (accusation{st, f.through}); died && q.accused != a {
			q.accused, q.survived = a, survived
			break
		}
		seq := f.through
		c.poison = true
		s.fail(k, c, seq, why)
		if told := s.r.o.Poisoned; died && told != nil && !s.closed {
			by, id, key := l.p.by, s.id, c.b.Key
			s.r.wg.Go(func() { told(by, id, key, seq) }) // not of the session's, which it may detach
		}
		return
	}
	s.drive(c)
}

// suspect makes a cell one that is to be tried in a process, and in no other.
func (s *Session) suspect(c *cell, p *process) {
	if c.suspectIn != p {
		s.standAside(c)
		c.suspectIn = p
	}
	p.suspect(c)
}

// standAside lets the others of a process go on: the suspect cannot be tried there now.
func (s *Session) standAside(c *cell) {
	p := c.suspectIn
	c.suspectIn = nil
	if p != nil && p.clear(c) && !s.closed {
		s.spawn(p.admit) // other sessions' locks are taken there
	}
}

// acquit takes the suspicion from a cell, because it is cleared or of no more use.
func (s *Session) acquit(c *cell) {
	c.suspicion = nil
	s.standAside(c)
}
