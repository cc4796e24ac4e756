package launch

import (
	"strings"
	"sync"
	"unicode"
)

// tailBytes is what is kept of an instance's stderr: 64 KiB hold the stacks of a Go panic with a hundred goroutines.
const tailBytes = 64 << 10

// tail keeps the last bytes that were written to it. Safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	buf  []byte // grows to twice tailBytes and is then halved, so that a byte is moved once at most
	gone bool   // bytes were let go
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if len(p) > tailBytes {
		p, t.gone, t.buf = p[len(p)-tailBytes:], true, t.buf[:0]
	}
	if len(t.buf)+len(p) > 2*tailBytes {
		keep := t.buf[len(t.buf)-(tailBytes-len(p)):]
		t.buf, t.gone = append(t.buf[:0], keep...), true
	}
	t.buf = append(t.buf, p...)
	return n, nil
}

// String gives what is kept as text for terminals, from the start of a line.
func (t *tail) String() string {
	t.mu.Lock()
	buf, gone := t.buf, t.gone
	if len(buf) > tailBytes {
		buf, gone = buf[len(buf)-tailBytes:], true
	}
	s := string(buf)
	t.mu.Unlock()
	if gone {
		if _, rest, found := strings.Cut(s, "\n"); found {
			s = rest
		}
	}
	return printable(s)
}

// printable makes text of what a program wrote that is not trusted: no escape sequence of its own reaches a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return -1
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
}
