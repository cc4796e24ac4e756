package logs

import (
	"log/slog"
	"sync"
	"time"
)

// A thing that goes wrong with one session goes wrong with ten thousand when the disk is full: a minute has so many records of one kind, and then only their number.
const (
	limitMost = 20
	limitTime = time.Minute
	// limitKinds bounds what is remembered. There are some fifty messages, for some dozens of plugins and units.
	limitKinds = 1000
)

// subject is what makes records the same: what they say, and of which plugin and unit.
type subject struct {
	message, plugin, unit string
	// output says that it is a line of a plugin's output, which has a limit of its own.
	output bool
}

// hear takes what an attribute says about the subject.
func (s *subject) hear(group string, a slog.Attr) {
	if group != "" || a.Value.Kind() != slog.KindString {
		return
	}
	switch a.Key {
	case "plugin":
		s.plugin = a.Value.String()
	case "unit":
		s.unit = a.Value.String()
	case "stream":
		s.output = true
	}
}

// limit bounds the records of one kind. Safe for concurrent use.
type limit struct {
	mu    sync.Mutex
	kinds map[subject]*window
}

// window is a minute of one kind.
type window struct {
	since time.Time
	n     int
}

func newLimit() *limit { return &limit{kinds: map[subject]*window{}} }

// take says whether a record is written, and what it says beside: the last of a minute that no more come, the first of the next how many did not.
func (l *limit) take(of subject, now time.Time) (written bool, more []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.kinds[of]
	if w == nil {
		if len(l.kinds) >= limitKinds {
			l.forget(now)
		}
		w = &window{since: now}
		l.kinds[of] = w
	}
	if now.Sub(w.since) >= limitTime {
		if w.n > limitMost {
			more = []any{"leftOut", w.n - limitMost}
		}
		w.since, w.n = now, 0
	}
	if w.n++; w.n == limitMost {
		more = append(more, "further", "left out for a minute")
	}
	return w.n <= limitMost, more
}

// forget makes room: for all that is over, or else for everything.
func (l *limit) forget(now time.Time) {
	for of, w := range l.kinds {
		if now.Sub(w.since) >= limitTime {
			delete(l.kinds, of)
		}
	}
	if len(l.kinds) >= limitKinds {
		clear(l.kinds)
	}
}
