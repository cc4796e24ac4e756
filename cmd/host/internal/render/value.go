package render

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/foldhost/foldhost/event"
	"github.com/rivo/uniseg"
)

// valueLine is one line of a value; fresh says that the value before did not have it.
type valueLine struct {
	text  string
	fresh bool
}

// valueLines lays out any value, without knowing what it means: lists of flat objects as a table, flat objects as names and
// numbers with what they gained, everything else as JSON.
//
// A table is made to fit the width by cutting its widest columns; 0 is any width.
func valueLines(value, before json.RawMessage, width int) []valueLine {
	if rows, ok := table(value); ok && len(rows) > 0 {
		old := map[string]bool{}
		if was, ok := table(before); ok {
			for _, row := range was {
				old[strings.Join(row, "\x00")] = true
			}
		}
		var lines []valueLine
		for i, text := range align(rows, width) {
			lines = append(lines, valueLine{text, !old[strings.Join(rows[i], "\x00")]})
		}
		return lines
	}
	if names, values, ok := flat(value); ok && len(names) > 0 {
		was := map[string]json.RawMessage{}
		event.Members(before, func(k string, v json.RawMessage) bool { was[k] = v; return true })
		var parts []string
		for i, name := range names {
			parts = append(parts, line(name)+" "+scalar(values[i])+gain(values[i], was[name]))
		}
		return []valueLine{{strings.Join(parts, between), true}}
	}
	return []valueLine{{line(string(value)), true}}
}

// table reads a list of flat objects of the same members as rows of cells.
func table(value json.RawMessage) (rows [][]string, ok bool) {
	var head []string
	same := true
	isList := event.Elements(value, func(elem json.RawMessage) bool {
		names, values, ok := flat(elem)
		if head == nil {
			head = names
		}
		if same = ok && len(names) > 0 && strings.Join(names, "\x00") == strings.Join(head, "\x00"); !same {
			return false
		}
		var row []string
		for _, v := range values {
			row = append(row, scalar(v))
		}
		rows = append(rows, row)
		return true
	})
	return rows, isList && same
}

// flat reads an object that holds no lists and objects but lists of scalars.
func flat(value json.RawMessage) (names []string, values []json.RawMessage, ok bool) {
	ok = true
	isObject := event.Members(value, func(k string, v json.RawMessage) bool {
		ok = v[0] != '{' && (v[0] != '[' || !strings.ContainsAny(string(v[1:]), "[{"))
		names, values = append(names, k), append(values, v)
		return ok
	})
	return names, values, ok && isObject
}

// scalar is a value as a person writes it: strings without quotes.
func scalar(v json.RawMessage) string {
	if s, ok := event.String(v); ok {
		return line(s)
	}
	return line(string(v))
}

// gain says by how much a number grew or shrank.
func gain(now, before json.RawMessage) string {
	n, ok := event.Integer(now)
	if !ok || before == nil {
		return ""
	}
	was, ok := event.Integer(before)
	if !ok || n == was {
		return ""
	}
	return fmt.Sprintf(" (%+d)", n-was)
}

// align pads the cells of each column but the last, and cuts those of the widest columns where a line would not fit the width.
func align(rows [][]string, width int) []string {
	const gap, legible = 2, 8
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], uniseg.StringWidth(cell))
		}
	}
	total := gap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; width > 0 && total > width; total-- {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= legible {
			break
		}
		widths[widest]--
	}
	var lines []string
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			cell = cut(cell, widths[i])
			if i == len(row)-1 {
				b.WriteString(cell)
				break
			}
			b.WriteString(pad(cell, widths[i]+gap))
		}
		lines = append(lines, b.String())
	}
	return lines
}

// seqs prints a list of seqs, the middle left out when it is long.
func seqs(list []int64) string {
	const shown = 12
	var parts []string
	for i, seq := range list {
		if len(list) > shown && i == shown/2 {
			parts = append(parts, "…")
		}
		if len(list) > shown && i >= shown/2 && i < len(list)-shown/2 {
			continue
		}
		parts = append(parts, strconv.FormatInt(seq, 10))
	}
	return strings.Join(parts, " ")
}
