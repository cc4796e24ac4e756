package event

// linearKeys is the size up to which the keys of an object are compared one by one, which is faster than hashing and
// needs no memory. Above it they go into a set: an object of 100,000 keys must not cost 10^10 comparisons.
const linearKeys = 32

// key is a key of an object that is being scanned: where its text stands between the quotes.
type key struct {
	start, end int
	escaped    bool
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
