package supervise

import (
	"fmt"

	"github.com/foldhost/foldhost/host/internal/restart"
	"github.com/foldhost/foldhost/host/launch"
)

// DiedError is a process that was up and is gone.
type DiedError struct {
	Plugin string
	Exit   launch.Exit
	// Stderr is the end of what it wrote there.
	Stderr string
}

// Error quotes its last words.
func (e *DiedError) Error() string {
	text := fmt.Sprintf("plugin %q died: %s", e.Plugin, e.Exit)
	if last := launch.LastWords(e.Stderr); last != "" && e.Exit.KilledFor == "" {
		text += fmt.Sprintf("; last on stderr: %q", last)
	}
	return text
}

// parkReason says why a plugin is parked.
func parkReason(why error, permanent bool, recent int) string {
	if permanent {
		return why.Error()
	}
	return fmt.Sprintf("%d failures within %v; the last: %v", recent, restart.Period, why)
}
