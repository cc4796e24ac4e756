package unit

import (
	"encoding/json"
	"strconv"

	"github.com/foldhost/foldhost/event"
)

// decode turns lossless JSON without white space into the values that the validator reads: maps, slices, strings, json.Number,
// bool and nil. The text has been checked already, so this is one plain pass instead of the two of encoding/json.
//
// places is how many values there are at each depth.
func decode(text json.RawMessage) (value any, places []int) {
	d := decoder{text: text}
	value = d.value(0)
	return value, d.places
}

type decoder struct {
	text []byte
	at   int
	// places counts values by depth.
	places []int
}

func (d *decoder) value(depth int) any {
	if depth == len(d.places) {
		d.places = append(d.places, 0)
	}
	d.places[depth]++
	switch d.text[d.at] {
	case '{':
		members := map[string]any{}
		for d.at++; d.text[d.at] != '}'; {
			if d.text[d.at] == ',' {
				d.at++
			}
			key := d.string()
			d.at++ // the colon
			members[key] = d.value(depth + 1)
		}
		d.at++
		return members
	case '[':
		elems := []any{}
		for d.at++; d.text[d.at] != ']'; {
			if d.text[d.at] == ',' {
				d.at++
			}
			elems = append(elems, d.value(depth+1))
		}
		d.at++
		return elems
	case '"':
		return d.string()
	case 't':
		d.at += len("true")
		return true
	case 'f':
		d.at += len("false")
		return false
	case 'n':
		d.at += len("null")
		return nil
	default:
		return d.number()
	}
}

func (d *decoder) string() string {
	start, escaped := d.at, false
	for d.at++; d.text[d.at] != '"'; d.at++ {
		if d.text[d.at] == '\\' {
			escaped = true
			d.at++
		}
	}
	d.at++
	if !escaped {
		return string(d.text[start+1 : d.at-1])
	}
	s, _ := event.String(d.text[start:d.at])
	return s
}

// number gives 0 for what no double can tell from 0: the validator computes exactly, and a fraction of 10^-1000000 would keep it
// busy for as long as its author likes.
func (d *decoder) number() json.Number {
	start := d.at
	exponent := false
	for d.at < len(d.text) {
		switch c := d.text[d.at]; {
		case '0' <= c && c <= '9', c == '-', c == '+', c == '.':
		case c == 'e', c == 'E':
			exponent = true
		default:
			return d.numberOf(start, exponent)
		}
		d.at++
	}
	return d.numberOf(start, exponent)
}

func (d *decoder) numberOf(start int, exponent bool) json.Number {
	n := string(d.text[start:d.at])
	if exponent {
		if f, err := strconv.ParseFloat(n, 64); err == nil && f == 0 {
			return "0"
		}
	}
	return json.Number(n)
}
