package render

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// Printf prints for people: fmt.Fprintf, with every argument but an int or an int64 made one printable line, so that it is for %s. Names of files, what plugins say and what
// stands in logs may hold anything, so nothing that this program prints for people goes round it.
func Printf(w io.Writer, format string, args ...any) error {
	safe := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case styled, int, int64:
			safe[i] = arg
		case json.RawMessage:
			safe[i] = line(string(arg))
		default:
			safe[i] = line(fmt.Sprint(arg)) // text, errors, and what has a String
		}
	}
	_, err := fmt.Fprintf(w, format, safe...)
	return err
}

// Block prints a text of several lines, each indented as a quotation: what a program wrote keeps its form, and passes for nothing that this one says.
func Block(w io.Writer, text string) error {
	for text != "" {
		var one string
		one, text, _ = strings.Cut(text, "\n")
		tabs := strings.Split(one, "\t")
		for i := range tabs {
			tabs[i] = harmless(tabs[i])
		}
		if err := Printf(w, "  %s\n", styled(strings.Join(tabs, "\t"))); err != nil {
			return err
		}
	}
	return nil
}

// styled is text for a terminal that holds colours of this package, and nothing else that could steer it. Only Style makes it of a string.
type styled string

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
		writeHarmless(&b, r)
	}
	return b.String()
}

// harmless is line for text whose spaces are wanted as they are.
func harmless(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !shown(r) || r == unicode.ReplacementChar }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsSpace(r) {
			r = ' '
		}
		writeHarmless(&b, r)
	}
	return b.String()
}

func writeHarmless(b *strings.Builder, r rune) {
	if shown(r) {
		b.WriteRune(r)
		return
	}
	q := strconv.QuoteRune(r)
	b.WriteString(q[1 : len(q)-1])
}

// shown says that a terminal shows a rune and does nothing else with it.
func shown(r rune) bool { return unicode.IsPrint(r) || r == '\u200d' } // The joiner inside emoji.
