package event

import (
	"encoding/binary"
	"unicode/utf8"
)

// text scans a string and says whether it holds escapes.
func (s *scanner) text() (escaped, ok bool) {
	src, i := s.src, s.pos+1
	for {
		i = plain(src, i)
		if i >= len(src) {
			// Placed at its quote, since where a key ends is not known.
			return false, s.fail(s.pos, ruleSyntax, "the JSON text ends inside a string")
		}
		switch c := src[i]; {
		case c == '"':
			s.pos = i + 1
			return escaped, true
		case c == '\\':
			escaped = true
			n := escapeLen(src[i:])
			if n == 0 {
				return false, s.fail(i, ruleSyntax, "invalid JSON: a backslash that begins no escape")
			}
			i += n
		case c < ' ':
			return false, s.fail(i, ruleSyntax, "invalid JSON: control character "+quoteByte(c)+" in a string; escape it")
		default:
			r, n := utf8.DecodeRune(src[i:])
			if r == utf8.RuneError && n == 1 {
				return false, s.fail(i, ruleUTF8, "a string holds bytes that are not UTF-8")
			}
			i += n
		}
	}
}

// plain returns the index of the first byte from i on that is not printable ASCII other than quote and backslash. It
// looks at eight bytes at a time: long texts are most of what a log holds.
func plain(src []byte, i int) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	for i+8 <= len(src) {
		w := binary.LittleEndian.Uint64(src[i:])
		quote := w ^ ones*'"'
		slash := w ^ ones*'\\'
		special := (w - ones*' ') | (quote - ones) | (slash - ones) | w
		if special&highs != 0 {
			break
		}
		i += 8
	}
	for i < len(src) {
		if c := src[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
		i++
	}
	return i
}

// escapeLen is the length of the escape at the start of b, 0 when it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b); ok {
			return 6
		}
	}
	return 0
}

// hex4 reads the code unit of a \uXXXX escape.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
