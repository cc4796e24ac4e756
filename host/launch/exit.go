package launch

import "fmt"

// Exit is how a process ended.
type Exit struct {
	// Code is the exit code; −1 when a signal ended the process.
	Code int
	// Signal is the name of the signal that did, such as "SIGKILL"; empty otherwise.
	Signal string
	// Expected says that it was asked to stop: Stop or Launcher.Close.
	Expected bool
	// KilledFor is why the host killed it; empty when the host did not.
	KilledFor string
}

// String says it in a sentence, such as "the process was ended by SIGSEGV".
func (e Exit) String() string {
	switch {
	case e.KilledFor != "":
		return "the host killed the process: " + e.KilledFor
	case e.Signal == "SIGKILL":
		return "the process was killed from outside (SIGKILL); the kernel does so when memory runs out"
	case e.Signal != "":
		return "the process was ended by " + e.Signal
	}
	return fmt.Sprintf("the process exited with code %d", e.Code)
}
