package event

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"sync"
	"unicode/utf8"
)

// Compact checks raw against the lossless-JSON rule and returns it without white space outside strings. The result
// shares nothing with raw. The error is an *Error with code data-not-lossless and the path of the place, prefix first
// ("$.data" gives paths like $.data.todos[2]["odd key"]).
func Compact(raw []byte, prefix string) (json.RawMessage, error) {
	space, err := scan(raw, MaxDepth, prefix)
	if err != nil {
		return nil, err
	}
	return strip(raw, space), nil
}

// CheckLossless is Compact without the copy: it allocates nothing unless something is wrong.
func CheckLossless(raw []byte, prefix string) error {
	if _, err := scan(raw, MaxDepth, prefix); err != nil {
		return err
	}
	return nil
}

// The rules behind data-not-lossless, as they stand in Error.Rule.
const (
	ruleSyntax       = "json-syntax"
	ruleTrailing     = "trailing-data"
	ruleUTF8         = "invalid-utf-8"
	ruleDuplicateKey = "duplicate-key"
	ruleNegativeZero = "negative-zero"
	ruleRange        = "number-range"
	ruleDepth        = "depth"
)

// linearKeys is the size up to which the keys of an object are compared one by one, which is faster than hashing and
// needs no memory. Above it they go into a set: an object of 100,000 keys must not cost 10^10 comparisons.
const linearKeys = 32

// scan checks one JSON text that may nest depth containers deep, and counts the white space outside its strings.
func scan(src []byte, depth int, prefix string) (space int, fault *Error) {
	s := scanners.Get().(*scanner)
	defer s.release()
	s.src, s.room = src, depth
	s.skipSpace()
	ok := s.value()
	if ok {
		s.skipSpace()
		if s.pos < len(src) {
			ok = s.fail(s.pos, ruleTrailing, "there is more behind the end of the value; one JSON value is expected")
		}
	}
	if ok {
		return s.space, nil
	}
	return 0, &Error{Code: DataNotLossless, Rule: s.rule, Path: pathAt(src, s.at, prefix), Reason: s.reason}
}

// scanners are kept for their lists of keys, which would otherwise be an allocation for each text.
var scanners = sync.Pool{New: func() any { return &scanner{keys: make([]key, 0, 4*linearKeys)} }}

// maxKeptKeys bounds what a scanner that goes back to the pool may hold: 96 KiB. Only texts that nest deep need more.
const maxKeptKeys = 4096

func (s *scanner) release() {
	if cap(s.keys) <= maxKeptKeys {
		*s = scanner{keys: s.keys[:0]}
		scanners.Put(s)
	}
}

// strip copies raw, which has been scanned and holds space bytes of white space outside strings, without them.
func strip(raw []byte, space int) []byte {
	if space == 0 {
		return bytes.Clone(raw)
	}
	return appendStripped(make([]byte, 0, len(raw)-space), raw)
}

func appendStripped(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		start := i
		for i < len(raw) && !isSpace(raw[i]) {
			if raw[i] == '"' {
				i = skipString(raw, i)
			} else {
				i++
			}
		}
		dst = append(dst, raw[start:i]...)
		i = skipBlank(raw, i)
	}
	return dst
}

// key is a key of an object that is being scanned: where its text stands between the quotes.
type key struct {
	start, end int
	escaped    bool
}

// scanner reads JSON by descent. It recurses once per container and is bounded by room. Only the fault's offset is noted
// on the way; its path is worked out afterwards, so that what is right pays nothing for it.
type scanner struct {
	src   []byte
	pos   int
	room  int // how many more containers may be open at once
	space int
	keys  []key // of all open objects, innermost last

	at           int
	rule, reason string
}

func (s *scanner) fail(at int, rule, reason string) bool {
	s.at, s.rule, s.reason = at, rule, reason
	return false
}

// failHere reports a syntax error at the present place, which may be the end.
func (s *scanner) failHere(expected string) bool {
	if s.pos >= len(s.src) {
		return s.fail(s.pos, ruleSyntax, "the JSON text ends where "+expected+" is expected")
	}
	return s.fail(s.pos, ruleSyntax, "invalid JSON: "+quoteByte(s.src[s.pos])+" where "+expected+" is expected")
}

// peek is the byte at the present place, 0 at the end; a 0 in the text fits nowhere either.
func (s *scanner) peek() byte {
	if s.pos < len(s.src) {
		return s.src[s.pos]
	}
	return 0
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func (s *scanner) skipSpace() {
	if s.pos < len(s.src) && s.src[s.pos] <= ' ' {
		start := s.pos
		for s.pos < len(s.src) && isSpace(s.src[s.pos]) {
			s.pos++
		}
		s.space += s.pos - start
	}
}

func (s *scanner) value() bool {
	switch c := s.peek(); c {
	case '"':
		_, ok := s.text()
		return ok
	case '{':
		return s.object()
	case '[':
		return s.array()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		if c == '-' || isDigit(c) {
			return s.number()
		}
		return s.failHere("a value")
	}
}

func (s *scanner) literal(word string) bool {
	if len(s.src)-s.pos >= len(word) && string(s.src[s.pos:s.pos+len(word)]) == word {
		s.pos += len(word)
		return true
	}
	return s.fail(s.pos, ruleSyntax, "invalid JSON: "+word+" is expected")
}

// open enters a container.
func (s *scanner) open() bool {
	if s.room == 0 {
		return s.fail(s.pos, ruleDepth, "nested more than "+itoa(MaxDepth)+" levels deep; make the value flatter")
	}
	s.room--
	s.pos++
	s.skipSpace()
	return true
}

func (s *scanner) array() bool {
	if !s.open() {
		return false
	}
	if s.peek() == ']' {
		s.pos++
		s.room++
		return true
	}
	for {
		if !s.value() {
			return false
		}
		s.skipSpace()
		switch s.peek() {
		case ',':
			s.pos++
			s.skipSpace()
		case ']':
			s.pos++
			s.room++
			return true
		default:
			return s.failHere("a comma or the end of an array")
		}
	}
}

func (s *scanner) object() bool {
	if !s.open() {
		return false
	}
	if s.peek() == '}' {
		s.pos++
		s.room++
		return true
	}
	base := len(s.keys)
	var seen map[string]struct{} // decoded keys, once there are more than linearKeys or one has escapes, which is rare
	for {
		if s.peek() != '"' {
			return s.failHere("a key in double quotes")
		}
		start := s.pos + 1
		escaped, ok := s.text()
		if !ok {
			return false
		}
		k := key{start, s.pos - 1, escaped}
		switch {
		case seen != nil:
			ok = s.note(seen, k)
		case len(s.keys)-base < linearKeys && !escaped:
			ok = !s.has(s.keys[base:], k)
			s.keys = append(s.keys, k)
		default:
			seen = make(map[string]struct{})
			for _, known := range s.keys[base:] {
				s.note(seen, known)
			}
			ok = s.note(seen, k)
		}
		if !ok {
			return s.fail(s.pos, ruleDuplicateKey, "the key stands twice in one object; readers would differ on which counts")
		}
		s.skipSpace()
		if s.peek() != ':' {
			return s.failHere("a colon")
		}
		s.pos++
		s.skipSpace()
		if !s.value() {
			return false
		}
		s.skipSpace()
		switch s.peek() {
		case ',':
			s.pos++
			s.skipSpace()
		case '}':
			s.pos++
			s.room++
			s.keys = s.keys[:base]
			return true
		default:
			return s.failHere("a comma or the end of an object")
		}
	}
}

// has says whether k is among keys; none of them holds escapes.
func (s *scanner) has(keys []key, k key) bool {
	text := s.src[k.start:k.end]
	for _, known := range keys {
		if known.end-known.start == len(text) && string(s.src[known.start:known.end]) == string(text) {
			return true
		}
	}
	return false
}

// note puts k into seen and says whether it is new.
func (s *scanner) note(seen map[string]struct{}, k key) bool {
	text := s.src[k.start:k.end]
	if k.escaped {
		text = appendDecoded(nil, text)
	}
	if _, known := seen[string(text)]; known {
		return false
	}
	seen[string(text)] = struct{}{}
	return true
}

// text scans a string and says whether it holds escapes.
func (s *scanner) text() (escaped, ok bool) {
	src, i := s.src, s.pos+1
	for {
		i = plain(src, i)
		if i >= len(src) {
			s.pos = i
			return false, s.fail(i, ruleSyntax, "the JSON text ends inside a string")
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
