package supervise

import (
	"errors"
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

// told is what whoever reads values hears of a failure: no files of the host, and nothing that the plugin wrote to its stdout or stderr. The whole is in Status and in the log.
func told(why error) string {
	if died, ok := errors.AsType[*DiedError](why); ok {
		return died.Exit.String()
	}
	if start, ok := errors.AsType[*launch.StartError](why); ok {
		return fmt.Sprintf("it did not start (%s)", start.Phase)
	}
	return "it did not start"
}

// parkReason says why a plugin is parked, by a text that says what happened last.
func parkReason(why string, permanent bool, d restart.Decision) string {
	switch {
	case permanent:
		return why
	case d.Excused >= restart.Excuses:
		return fmt.Sprintf("its processes died at %d events of sessions within %v, which is more than single events explain; the last: %s", d.Excused, restart.Period, why)
	case d.Searched >= restart.Search:
		return fmt.Sprintf("%d deaths within %v with events of sessions in flight, none of which explains them; the last: %s", d.Searched, restart.Period, why)
	}
	return fmt.Sprintf("%d failures within %v; the last: %s", d.Recent, restart.Period, why)
}
