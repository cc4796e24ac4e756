package supervise

import (
	"sync"

	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/host/internal/restart"
)

// Ledger keeps the failures of plugins by name and config, apart from the plugins themselves: one that is taken away and put back does not start
// with a clean slate. Safe for concurrent use.
type Ledger struct {
	mu        sync.Mutex
	histories map[string]*restart.History
}

// do runs f with the history of a plugin. f must not call anything.
func (l *Ledger) do(s *life.Spec, f func(*restart.History)) {
	key := s.Plugin + "\x00" + life.ConfigDigest(s.Config)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.histories == nil {
		l.histories = map[string]*restart.History{}
	}
	if l.histories[key] == nil {
		l.histories[key] = &restart.History{}
	}
	f(l.histories[key])
}
