package logs

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// harmless is text without anything that is not a letter, a sign or a blank: what steers a terminal, turns its reading direction, or begins a line is spelled as Go spells it. lines
// says that a new line and a tab may stay.
func harmless(text string, lines bool) string {
	fine := func(r rune, size int) bool {
		return (r != utf8.RuneError || size > 1) && unicode.IsPrint(r) || lines && (r == '\n' || r == '\t')
	}
	bad := 0
	for bad < len(text) {
		r, size := utf8.DecodeRuneInString(text[bad:])
		if !fine(r, size) {
			break
		}
		bad += size
	}
	if bad == len(text) {
		return text
	}
	var out strings.Builder
	out.WriteString(text[:bad])
	for i := bad; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case fine(r, size):
			out.WriteString(text[i : i+size])
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[i])
		default:
			spelled := strconv.QuoteRune(r)
			out.WriteString(spelled[1 : len(spelled)-1])
		}
		i += size
	}
	return out.String()
}

// message is that of a record. In a line the fields follow it, so one that could be taken for some is quoted.
func (h *handler) message(text string) string {
	text = harmless(text, false)
	if !h.json && strings.ContainsAny(text, `="`) {
		return strconv.Quote(text)
	}
	return text
}

// keyOf is the key of a field, in the signs that keys have.
func keyOf(key string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.', r == '-':
			return r
		}
		return '_'
	}, key)
}
