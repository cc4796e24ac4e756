package supervise

import (
	"context"
	"fmt"
	"time"

	"github.com/foldhost/foldhost/host/internal/life"
)

// health asks a process from time to time whether it serves.
type health struct {
	failed chan error
	cancel context.CancelFunc
	done   chan struct{}
}

func newHealth(l *life.Life, every time.Duration) *health {
	ctx, cancel := context.WithCancel(context.Background())
	h := &health{failed: make(chan error, 1), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(h.done)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := l.Check(ctx); err != nil && ctx.Err() == nil {
				h.failed <- fmt.Errorf("it failed its health check: %w", err)
				return
			}
		}
	}()
	return h
}

func (h *health) stop() {
	h.cancel()
	<-h.done
}
