package remote

import "time"

// window says how many batches may be in flight at once, over all sessions. A plugin that answers at once gets more; one for which a batch
// is real work gets fewer, so that a batch that was sent is answered within its deadline if the plugin is only slow. Not for concurrent use.
type window struct {
	size         int
	quick, tough time.Duration
}

const (
	// firstWindow: with four batches that each take a quarter of the deadline nothing is called a hang.
	firstWindow = 4
	// maxWindow: 64 batches of 512 events keep any plugin busy; more would only be memory.
	maxWindow = 64
	// minWindow: one that is folded, one on its way.
	minWindow = 2
)

func newWindow(deadline time.Duration) window {
	return window{size: firstWindow, quick: deadline / 40, tough: deadline / 8}
}

// answered takes note of how long an answer took, from sending to the last message.
func (w *window) answered(took time.Duration) {
	switch {
	case took < w.quick:
		w.size = min(w.size+1, maxWindow)
	case took > w.tough:
		w.size = max(w.size/2, minWindow)
	}
}
