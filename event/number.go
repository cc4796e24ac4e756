package event

import (
	"encoding/json"
	"math"
	"strconv"
)

// Integer reads a JSON number that is an integer of at most MaxInteger in size, in any spelling (1, 1.0, 1e0).
func Integer(raw json.RawMessage) (n int64, ok bool) {
	raw = trim(raw)
	end, _ := numberEnd(raw, 0)
	if end == 0 || end != len(raw) {
		return 0, false
	}
	d := parseDecimal(raw)
	// 2^53−1 has sixteen digits.
	if d.huge || d.exp > 16 {
		return 0, false
	}
	count := int64(0)
	for _, c := range d.digits {
		if c != '.' {
			n = n*10 + int64(c-'0')
			count++
			if count > d.exp {
				return 0, false // a digit that is not 0 behind the point
			}
		}
	}
	if count > 0 {
		for ; count < d.exp; count++ {
			n *= 10
		}
	}
	if n > MaxInteger {
		return 0, false
	}
	if d.neg {
		n = -n
	}
	return n, true
}

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

// maxExp is the decimal exponent of the largest double, 0.179…e309.
const maxExp = 309

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

// decimal is a JSON number by value: 0.d₁d₂…dₙ × 10^exp, where d₁ and dₙ are not 0.
type decimal struct {
	neg bool
	// digits is the text from d₁ to dₙ, in which one point may stand that does not count; empty is zero.
	digits []byte
	exp    int64
	// huge says that the exponent was too large to compute with; exp has then only the right sign.
	huge bool
}

// parseDecimal takes a text of the JSON number grammar apart.
func parseDecimal(num []byte) decimal {
	var d decimal
	if num[0] == '-' {
		d.neg = true
		num = num[1:]
	}
	mantissa, point := len(num), -1
	first, last := -1, -1
scan:
	for i, c := range num {
		switch {
		case c == '.':
			point = i
		case c == 'e' || c == 'E':
			mantissa = i
			break scan
		case c != '0':
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return d
	}
	if point < 0 {
		point = mantissa
	}
	d.digits = num[first : last+1]
	d.exp = int64(point - first)
	if first > point {
		d.exp++
	}
	if mantissa == len(num) {
		return d
	}
	exp, down := num[mantissa+1:], false
	if exp[0] == '+' || exp[0] == '-' {
		down = exp[0] == '-'
		exp = exp[1:]
	}
	var e int64
	for _, c := range exp {
		// Far above any shift that digits can make, far below overflow.
		if e > 1<<56 {
			d.huge = true
			break
		}
		e = e*10 + int64(c-'0')
	}
	if down {
		e = -e
	}
	d.exp += e
	return d
}

// fitsDouble says whether the nearest double is finite.
func (d decimal) fitsDouble() bool {
	if len(d.digits) == 0 || d.exp < maxExp {
		return true
	}
	if d.exp > maxExp {
		return false
	}
	// In between only the digits tell. The border is an integer of 309 digits; whatever stands behind those only matters
	// in that it is not 0. Written anew because ParseFloat gives up on long exponents.
	text := make([]byte, 0, maxExp+8)
	text = append(text, '.')
	for _, c := range d.digits {
		if c == '.' {
			continue
		}
		if len(text) > maxExp {
			text = append(text, '1')
			break
		}
		text = append(text, c)
	}
	text = append(text, "e309"...)
	f, err := strconv.ParseFloat(string(text), 64)
	return err == nil && !math.IsInf(f, 0)
}

// equal compares by value. Exponents too large to compute with are only equal when they are spelled alike, which the
// caller has looked at already.
func (d decimal) equal(o decimal) bool {
	if len(d.digits) == 0 || len(o.digits) == 0 {
		return len(d.digits) == len(o.digits)
	}
	if d.neg != o.neg || d.huge || o.huge || d.exp != o.exp {
		return false
	}
	i, j := 0, 0
	for i < len(d.digits) && j < len(o.digits) {
		if d.digits[i] == '.' {
			i++
			continue
		}
		if o.digits[j] == '.' {
			j++
			continue
		}
		if d.digits[i] != o.digits[j] {
			return false
		}
		i++
		j++
	}
	return i == len(d.digits) && j == len(o.digits)
}

func itoa(n int) string { return strconv.Itoa(n) }
