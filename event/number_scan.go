package event

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// numberEnd returns the index behind the JSON number that starts at i; simple says that it has neither fraction nor
// exponent. It returns i when there is none.
func numberEnd(src []byte, i int) (end int, simple bool) {
	start := i
	digits := func(i int) int {
		for i < len(src) && isDigit(src[i]) {
			i++
		}
		return i
	}
	if i < len(src) && src[i] == '-' {
		i++
	}
	switch {
	case i >= len(src) || !isDigit(src[i]):
		return start, false
	case src[i] == '0':
		i++
	default:
		i = digits(i)
	}
	simple = true
	if i < len(src) && src[i] == '.' {
		simple = false
		end := digits(i + 1)
		if end == i+1 {
			return start, false
		}
		i = end
	}
	if i < len(src) && (src[i] == 'e' || src[i] == 'E') {
		simple = false
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		end := digits(i)
		if end == i {
			return start, false
		}
		i = end
	}
	return i, simple
}

func (s *scanner) number() bool {
	end, simple := numberEnd(s.src, s.pos)
	text := s.src[s.pos:end]
	switch {
	case len(text) == 0:
		return s.fail(s.pos, ruleSyntax, "invalid JSON: this is not a number")
	case simple && text[0] != '-' && len(text) < maxExp:
		s.pos = end
		return true
	}
	d := parseDecimal(text)
	if d.neg && len(d.digits) == 0 {
		return s.fail(s.pos, ruleNegativeZero, "negative zero; readers lose its sign, so write 0")
	}
	if !d.fitsDouble() {
		return s.fail(s.pos, ruleRange, "a number beyond the range of a double; carry it as a string")
	}
	s.pos = end
	return true
}
