package render

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

func (s Style) paint(color, text string) string {
	if !s.Color || color == "" || text == "" {
		return text
	}
	return color + text + reset
}

// label paints text and pads it to a width and a space, so that columns stay in line with colour and without.
func (s Style) label(color, text string, width int) string {
	padded := pad(text, width) + " "
	return s.paint(color, text) + padded[len(text):]
}
