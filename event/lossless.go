package event

import (
	"bytes"
	"encoding/json"
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

// CheckNested is CheckLossless for a text in which the values stand inside so many containers more, such as a request around the data of its
// events: the text may nest that much deeper.
func CheckNested(raw []byte, prefix string, around int) error {
	if _, err := scan(raw, MaxDepth+around, prefix); err != nil {
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
