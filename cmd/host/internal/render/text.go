package render

import (
	"strings"

	"github.com/rivo/uniseg"
)

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

// between stands between the parts of a line that may be wrapped.
const between = " · "

// wrap breaks text into lines of a width in columns, at its dots alone; a width of 0 or less does not.
func wrap(text string, width int) []string {
	if width <= 0 || uniseg.StringWidth(text) <= width {
		return []string{text}
	}
	var lines []string
	now := ""
	for i, part := range strings.Split(text, between) {
		switch {
		case i == 0:
			now = part
		case uniseg.StringWidth(now+between+part) <= width:
			now += between + part
		default:
			lines, now = append(lines, now), part
		}
	}
	return append(lines, now)
}
