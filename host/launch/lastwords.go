package launch

import "strings"

// LastWords gives the one line of a process's stderr that says best why it ended: the panic or the fatal error of a Go program, which its stacks
// follow, else the last line. Of a line that a logger wrote as JSON it gives the message, and the error beside it. Empty when there is none.
func LastWords(stderr string) string {
	all := strings.Split(strings.TrimRight(stderr, "\n\t "), "\n")
	stacks := false
	for i := len(all) - 1; i >= 0; i-- {
		switch line := all[i]; {
		case strings.HasPrefix(line, "goroutine "):
			stacks = true
		case stacks && (strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")):
			return shorten(line)
		}
	}
	e := parseStderr([]byte(all[len(all)-1]))
	text := e.message
	for _, f := range e.fields {
		if f.Key == "error" || f.Key == "err" || f.Key == "panic" {
			text += ": " + f.Value.String()
		}
	}
	return shorten(text)
}
