package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// facts are what a failed start leaves behind. hint makes one sentence of them, or none: it never guesses.
type facts struct {
	phase  Phase
	err    error
	format Format
	// needs is the interpreter or loader that the file needs, and lacks what is wrong with it, as far as that is seen.
	needs string
	lacks error
	exit  *Exit
	// silent says that nothing came on stdout at all.
	silent bool
}

func hint(f facts) string {
	var file *FileError
	var hs *HandshakeError
	var dir *SocketDirError // which says the remedy itself
	switch {
	case errors.As(f.err, &file):
		return file.Remedy
	case errors.As(f.err, &dir):
		return ""
	case f.phase == PhaseExec:
		return execHint(f)
	case f.exit != nil && (f.exit.Signal == "SIGSEGV" || f.exit.Signal == "SIGBUS") && f.format.Truncated:
		return truncated
	case f.exit != nil && f.exit.Signal == "SIGKILL":
		return "look for out-of-memory kills in the kernel's log, or who else ended it"
	case f.exit != nil && f.exit.Code == 0 && f.silent:
		return "the program ended in good order without a handshake: it is no plugin, or its main does not serve one"
	case f.exit != nil:
		return ""
	case errors.Is(f.err, context.DeadlineExceeded) && f.phase == PhaseHandshake && f.silent:
		return "the process runs and has written no handshake; if it only needs longer, raise timeouts.start"
	case errors.As(f.err, &hs):
		return hs.Remedy
	}
	return ""
}

const truncated = "the file ends before its program does: it is incomplete; copy it again, and put new versions in place by renaming"

func execHint(f facts) string {
	switch {
	case errors.Is(f.err, syscall.ETXTBSY):
		return "somebody has the file open for writing: wait until it is complete, and put new versions in place by renaming"
	case errors.Is(f.err, syscall.E2BIG):
		return "its args and env in the configuration are too long, together or one of them: give it less, or have it read a file"
	case f.format.Truncated:
		return truncated
	case f.format.Kind == "script" && f.format.Interpreter == "":
		return "its first line begins with #! and names no interpreter"
	case f.needs != "" && strings.HasSuffix(f.needs, "\r"):
		return fmt.Sprintf("its first line ends with a carriage return, so that it needs %q to start: save it with line feeds alone", f.needs)
	case f.needs != "" && errors.Is(f.lacks, fs.ErrNotExist):
		return fmt.Sprintf("the file needs %s to start, and that does not exist here", printable(f.needs))
	case f.needs != "" && f.lacks != nil:
		return fmt.Sprintf("the file needs %s to start, and that cannot be executed: %v", printable(f.needs), plainOf(f.lacks))
	case f.format.Kind == "script" && errors.Is(f.err, syscall.ENOEXEC):
		return fmt.Sprintf("the file needs %s to start, and that is no program for this machine", printable(f.needs))
	case errors.Is(f.err, syscall.ENOEXEC) && f.format.Kind == "":
		return "the file is neither a program nor a script with #! on its first line"
	case !f.format.Native():
		return fmt.Sprintf("the file is for %v and this machine is %s: build it for this machine", f.format, platform())
	}
	return ""
}
