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
func parkReason(why error, permanent bool, d restart.Decision) string {
	switch {
	case permanent:
		return why.Error()
	case d.Excused >= restart.Excuses:
		return fmt.Sprintf("its processes died at %d events of sessions within %v, which is more than single events explain; the last: %v", d.Excused, restart.Period, why)
	case d.Searched >= restart.Search:
		return fmt.Sprintf("%d deaths within %v with events of sessions in flight, none of which explains them; the last: %v", d.Searched, restart.Period, why)
	}
	return fmt.Sprintf("%d failures within %v; the last: %v", d.Recent, restart.Period, why)
}
