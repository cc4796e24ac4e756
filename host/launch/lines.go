package launch

import "bytes"

// maxLine is what is kept of one line of output: 16 KiB. A stack trace line or a JSON log line fits; a line of megabytes is cut and
// costs no memory.
const maxLine = 16 << 10

// lines cuts what is written to it into lines. One that is longer than maxLine is emitted once, cut, with the number of bytes that
// were left out. It never fails and never keeps more than one line. Not for concurrent use.
type lines struct {
	emit func(line []byte, cut int)
	part []byte
	cut  int
}

func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			l.keep(p)
			break
		}
		// A whole line that is not the continuation of another is not copied.
		if line := p[:end]; len(l.part) == 0 && l.cut == 0 && len(line) <= maxLine {
			l.emit(trimCR(line), 0)
		} else {
			l.keep(line)
			l.flush()
		}
		p = p[end+1:]
	}
	return n, nil
}

func (l *lines) keep(p []byte) {
	room := min(maxLine-len(l.part), len(p))
	l.part = append(l.part, p[:room]...)
	l.cut += len(p) - room
}

// Close emits what came after the last line end.
func (l *lines) Close() {
	if len(l.part) > 0 || l.cut > 0 {
		l.flush()
	}
}

func (l *lines) flush() {
	line := l.part
	if l.cut == 0 {
		line = trimCR(line)
	}
	l.emit(line, l.cut)
	l.part, l.cut = l.part[:0], 0
}

func trimCR(line []byte) []byte { return bytes.TrimSuffix(line, []byte{'\r'}) }
