package render

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// line makes one printable line of any text: white space runs become one space, what could steer a terminal an escape.
func line(text string) string {
	var b strings.Builder
	space := false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			space = b.Len() > 0
			continue
		case space:
			b.WriteByte(' ')
			space = false
		}
		if unicode.IsPrint(r) || r == '\u200d' { // The joiner inside emoji.
			b.WriteRune(r)
		} else {
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
	}
	return b.String()
}

// cut shortens text to a width in columns; a width of 0 or less does not.
func cut(text string, width int) string {
	if width <= 0 || uniseg.StringWidth(text) <= width {
		return text
	}
	var b strings.Builder
	used := 0
	for g := uniseg.NewGraphemes(text); g.Next(); {
		if used += g.Width(); used > width-1 {
			break
		}
		b.WriteString(g.Str())
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

// pad fills text up to a width in columns.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-uniseg.StringWidth(text)))
}
