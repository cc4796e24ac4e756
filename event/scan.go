package event

import "sync"

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

// close leaves a container at its last byte.
func (s *scanner) close() bool {
	s.pos++
	s.room++
	return true
}

func (s *scanner) array() bool {
	if !s.open() {
		return false
	}
	if s.peek() == ']' {
		return s.close()
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
			return s.close()
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
		return s.close()
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
			s.keys = s.keys[:base]
			return s.close()
		default:
			return s.failHere("a comma or the end of an object")
		}
	}
}
