package unit

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/foldhost/foldhost/event"
)

// decode turns lossless JSON without white space into the values that the validator reads: maps, slices, strings, json.Number,
// bool and nil. The text has been checked already, so this is one plain pass instead of the two of encoding/json.
//
// It measures the value at the same time.
func decode(text json.RawMessage) (value any, m measure) {
	d := decoder{text: text}
	value = d.value(0)
	return value, d.measure
}

// measure is what the effort of checking a value depends on.
type measure struct {
	// places is how many values there are at each depth, and text how many bytes their strings have. The keys of an object count as
	// text at its own depth and at that of its members: schemas of both may look at them.
	places, text []int
	// number is the length of the longest number.
	number int
}

// maxNumber is the longest number that is checked against a schema, in characters: the validator computes exactly, and parses it again
// for each comparison. A double has 17 digits and an exponent.
const maxNumber = 1000

// tooLong says that a number is too long to be checked; empty when none is.
func (m measure) tooLong() string {
	if m.number <= maxNumber {
		return ""
	}
	return fmt.Sprintf("it holds a number of %d characters; numbers of up to %d can be checked", m.number, maxNumber)
}

type decoder struct {
	text []byte
	at   int
	measure
}

func (d *decoder) value(depth int) any {
	if depth == len(d.places) {
		d.places = append(d.places, 0)
		d.measure.text = append(d.measure.text, 0)
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
			d.measure.text[depth] += len(key)
			d.measure.text[depth+1] += len(key)
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
		s := d.string()
		d.measure.text[depth] += len(s)
		return s
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
	d.measure.number = max(d.measure.number, len(n))
	if exponent {
		if f, err := strconv.ParseFloat(n, 64); err == nil && f == 0 {
			return "0"
		}
	}
	return json.Number(n)
}
