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

func (e *DiedError) Error() string { return fmt.Sprintf("plugin %q died: %s", e.Plugin, e.Exit) }

// parkReason says why a plugin is parked, and quotes its last words.
func parkReason(why error, permanent bool, recent int) string {
	text := why.Error()
	var died *DiedError
	if errors.As(why, &died) {
		if last := lastLines(died.Stderr); last != "" {
			text += "; last on stderr: " + last
		}
	}
	if permanent {
		return text
	}
	return fmt.Sprintf("%d failures within %v; the last: %s", recent, restart.Period, text)
}

// lastLines gives the end of an output, a few lines at most.
func lastLines(s string) string {
	const most = 500
	if len(s) > most {
		s = s[len(s)-most:]
	}
	return fmt.Sprintf("%q", s)
}
