package client

import (
	"bufio"
	"errors"
	"io"
)

// readBuffer is how much is read at once: most frames fit.
const readBuffer = 32 << 10

// errTooLong: a line, or a frame, has no end within the bound.
var errTooLong = errors.New("a line is longer than Options.MaxFrameBytes")

// lineReader reads lines that end in LF or CRLF. It holds one at a time, of at most max bytes.
type lineReader struct {
	r    *bufio.Reader
	max  int
	long []byte
}

// next gives a line without its end, good until the next call. A rest without an end is dropped: with io.ErrUnexpectedEOF, where the input says nothing else.
func (l *lineReader) next() ([]byte, error) {
	l.long = l.long[:0]
	if cap(l.long) > 8*readBuffer {
		l.long = nil // One long line is not to be paid for as long as the input lasts.
	}
	for {
		part, err := l.r.ReadSlice('\n')
		if len(l.long)+len(part) > l.max+len("\r\n") {
			return nil, errTooLong
		}
		switch {
		case err == nil && len(l.long) == 0:
			return chomp(part), nil
		case err == nil:
			l.long = append(l.long, part...)
			return chomp(l.long), nil
		case errors.Is(err, bufio.ErrBufferFull):
			l.long = append(l.long, part...)
		case err == io.EOF && len(l.long)+len(part) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, err
		}
	}
}

// chomp takes the end off a line.
func chomp(line []byte) []byte {
	line = line[:len(line)-1]
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}
