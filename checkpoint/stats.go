package checkpoint

import "time"

// Waiting is what has still to be written.
type Waiting struct {
	// Since is when the oldest of it happened: the first event that no row covers, of a live session or of one that went cold. A write that failed does not make it younger. Zero is
	// nothing.
	Since time.Time
	// Sessions have such events, or rows that were handed over. Bytes are those of the rows.
	Sessions, Bytes int
}

// Waiting looks at every live session, which delays nobody: some 10,000 take a millisecond.
func (w *Writer) Waiting() Waiting {
	w.mu.Lock()
	tracks := make([]*Track, 0, len(w.tracks))
	for t := range w.tracks {
		tracks = append(tracks, t)
	}
	all := Waiting{Bytes: w.backlog}
	for _, l := range w.lines {
		all.add(earlier(l.since, l.writing))
	}
	w.mu.Unlock()
	for _, t := range tracks {
		t.mu.Lock()
		since := earlier(t.dirty, t.taken)
		t.mu.Unlock()
		all.add(since)
	}
	return all
}

func (a *Waiting) add(since time.Time) {
	if !since.IsZero() {
		a.Sessions++
		a.Since = earlier(a.Since, since)
	}
}

// earlier is the earlier of two times; the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
