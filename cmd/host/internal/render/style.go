package render

import "strings"

// Style says for whom to print. The zero value is plain text without an end to its lines.
type Style struct {
	// Color is for terminals alone.
	Color bool
	// Width cuts lines; 0 does not.
	Width int
}

const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
)

func (s Style) paint(color, text string) styled {
	text = harmless(text)
	if !s.Color || color == "" || text == "" {
		return styled(text)
	}
	return styled(color + text + reset)
}

// label paints text and pads it to a width and a space, so that columns stay in line with colour and without.
func (s Style) label(color, text string, width int) styled {
	text = harmless(text)
	padded := pad(text, width) + " "
	return s.paint(color, text) + styled(padded[len(text):])
}

// blank is a lead of so many columns.
func blank(width int) styled { return styled(strings.Repeat(" ", width)) }
