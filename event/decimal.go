package event

import (
	"math"
	"strconv"
)

// maxExp is the decimal exponent of the largest double, 0.179…e309.
const maxExp = 309

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
	// In between only the digits tell. The border is an integer of 309 digits and itself out of range, so digits behind
	// those cannot matter. Written anew because ParseFloat gives up on long exponents.
	text := make([]byte, 0, maxExp+8)
	text = append(text, '.')
	for _, c := range d.digits {
		if c == '.' {
			continue
		}
		if len(text) > maxExp {
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
