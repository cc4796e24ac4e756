package launch

import (
	"errors"
	"fmt"
	"strings"
)

// Phase is the part of a start that failed.
type Phase string

// The phases, in their order. The last four are the caller's, who makes their errors with Process.Fail.
const (
	PhaseFile      Phase = "file checks"
	PhaseExec      Phase = "exec"
	PhaseHandshake Phase = "handshake"
	PhaseDescribe  Phase = "describe"
	PhaseConfigure Phase = "configure"
	PhaseRegister  Phase = "register"
	PhaseHealth    Phase = "health"
)

// StartError is a start that failed, with everything that is known about it. Errors of other kinds are inside: *FileError,
// *HandshakeError, *SocketDirError, *NotServingError, context errors.
type StartError struct {
	// Plugin is the operator's name for it, File its path.
	Plugin, File string
	Phase        Phase
	// Exit is how the process ended; nil when there was none, or the host ended it because of the failure.
	Exit *Exit
	// Stderr is the end of what it wrote there, and Stdout what it wrote instead of a handshake.
	Stderr, Stdout string
	// Hint says what to do, from facts; empty when there are none.
	Hint string
	Err  error
}

// Error names plugin, phase, file, cause, exit and hint in one line. It quotes stdout and the last words on stderr; the rest is in
// the fields.
func (e *StartError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plugin %q did not start (%s)", e.Plugin, e.Phase)
	var file *FileError
	if !errors.As(e.Err, &file) {
		fmt.Fprintf(&b, ": %s", e.File)
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	if e.Exit != nil {
		fmt.Fprintf(&b, "; %v", *e.Exit)
	}
	if e.Stdout != "" {
		fmt.Fprintf(&b, "; on stdout: %q", firstLine(e.Stdout))
	}
	if last := LastWords(e.Stderr); last != "" {
		fmt.Fprintf(&b, "; last on stderr: %q", last)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "; %s", e.Hint)
	}
	return b.String()
}

func (e *StartError) Unwrap() error { return e.Err }

// quoteBytes is how much of a foreign line an error's one line quotes.
const quoteBytes = 200

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return shorten(s)
}

func shorten(s string) string {
	if len(s) > quoteBytes {
		return strings.ToValidUTF8(s[:quoteBytes], "") + " …"
	}
	return s
}
