package event

import (
	"encoding/json"
	"strconv"
)

// Integer reads a JSON number that is an integer of at most MaxInteger in size, in any spelling (1, 1.0, 1e0).
func Integer(raw json.RawMessage) (n int64, ok bool) {
	raw = trim(raw)
	// Nearly all are seqs and times: digits that cannot overflow.
	if len(raw) > 0 && len(raw) <= 15 && (raw[0] != '0' || len(raw) == 1) {
		for i, c := range raw {
			if !isDigit(c) {
				break
			}
			if n = n*10 + int64(c-'0'); i == len(raw)-1 {
				return n, true
			}
		}
		n = 0
	}
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

func itoa(n int) string { return strconv.Itoa(n) }
