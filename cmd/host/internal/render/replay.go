package render

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
)

// Replay prints one replay as it goes. It implements host.Watcher; End prints the rest.
type Replay struct {
	w     *bufio.Writer
	style Style
	file  string
	// last is the value of each key as printed last.
	last  map[string]json.RawMessage
	turns bool
}

// NewReplay prints to w. Nothing is there for sure before Flush or End.
func NewReplay(w io.Writer, style Style, file string) *Replay {
	return &Replay{w: bufio.NewWriter(w), style: style, file: file, last: map[string]json.RawMessage{}}
}

// Flush writes out what is buffered.
func (r *Replay) Flush() error { return r.w.Flush() }

const (
	seqWidth  = 7 // Five digits; longer seqs push their line to the right.
	kindWidth = 12
)

// Accepted implements host.Watcher.
func (r *Replay) Accepted(h event.Header, events int64) error {
	facts := []string{"session " + h.ID, Count(events, "event"), time.UnixMilli(h.CreatedAt).UTC().Format("2006-01-02 15:04 UTC")}
	if h.CWD != "" {
		facts = append(facts, h.CWD)
	}
	if h.ParentSession != "" {
		facts = append(facts, "forked from "+h.ParentSession)
	}
	Printf(r.w, "%s\n", r.style.paint(bold, line(r.file)))
	return r.print("", dim, line(strings.Join(facts, " · ")))
}

// Event implements host.Watcher.
func (r *Replay) Event(ev *event.Event, changes []host.ReplayChange) error {
	shown, err := r.event(ev)
	for i, c := range changes {
		if err != nil {
			return err
		}
		before := r.last[c.Key]
		r.last[c.Key] = c.Value
		// The first change of an event that is not shown itself stands at its seq.
		lead := blank(seqWidth)
		if i == 0 && !shown {
			lead = seqLead(ev.Seq)
		}
		err = r.value(lead, c.Key, kindWidth, c.Value, before)
	}
	return err
}

// event prints what a person would want to know of one event: nothing for most types, which are there for their changes.
func (r *Replay) event(ev *event.Event) (shown bool, err error) {
	switch ev.Type {
	case event.TurnStart:
		r.turns = true
		Printf(r.w, "\n")
		return false, r.print("", bold, "Turn "+scalar(event.Lookup(ev.Data, "turn"))) // A heading has no seq; what changes there has.
	case event.TurnEnd:
		return true, r.at(ev.Seq, "turn ends", dim, dim, scalar(event.Lookup(ev.Data, "reason", "kind")))
	case event.UserMessage:
		if !r.turns {
			Printf(r.w, "\n")
			r.turns = true
		}
		return true, r.message(ev, "user", green)
	case event.AssistantMessage:
		return true, r.message(ev, "assistant", cyan)
	case event.ToolCall:
		return true, r.at(ev.Seq, "  call", "", "", call(ev.Data))
	case event.ToolResult:
		return true, r.message(ev, "  result", "")
	case event.EndSeed:
		return true, r.at(ev.Seq, "seed ends", dim, dim, "what follows is this session's own")
	}
	return false, nil
}

// call is a tool's name with its arguments, which are JSON more often than not.
func call(data json.RawMessage) string {
	text, _ := event.String(event.Lookup(data, "arguments"))
	if raw, err := event.Compact([]byte(text), ""); err == nil {
		if names, values, ok := flat(raw); ok {
			var parts []string
			for i, name := range names {
				parts = append(parts, line(name)+": "+scalar(values[i]))
			}
			text = strings.Join(parts, ", ")
		}
	}
	return scalar(event.Lookup(data, "name")) + "(" + line(text) + ")"
}

func (r *Replay) message(ev *event.Event, kind, color string) error {
	text, failed := words(event.MessageOf(ev))
	textColor := ""
	if failed {
		color, textColor, text = red, red, "failed: "+text
	}
	if ev.Op.Kind == event.OpReplace {
		kind, color, textColor = strings.TrimSpace(kind), yellow, yellow
		note := fmt.Sprintf("replaces %d…%d: ", ev.Op.Start, ev.Op.End)
		if ev.Op.Start == ev.Op.End {
			note = fmt.Sprintf("replaces %d: ", ev.Op.Start)
		}
		text = note + text
	}
	return r.at(ev.Seq, kind, color, textColor, text)
}

// words are the texts of a message, and whether it is a failed result. Blocks that hold no text are named; calls only when there is nothing else, as
// each is an event of its own.
func words(msg json.RawMessage) (text string, failed bool) {
	var parts, calls []string
	var blocks func(list json.RawMessage)
	blocks = func(list json.RawMessage) {
		event.Elements(list, func(block json.RawMessage) bool {
			switch kind, _ := event.String(event.Lookup(block, "type")); kind {
			case "text":
				parts = append(parts, scalar(event.Lookup(block, "text")))
			case "tool-result":
				failed = failed || string(event.Lookup(block, "isError")) == "true"
				blocks(event.Lookup(block, "content"))
			case "tool-call":
				calls = append(calls, scalar(event.Lookup(block, "name")))
			case "reasoning": // The model's own business.
			default:
				parts = append(parts, "["+line(kind)+"]")
			}
			return true
		})
	}
	blocks(event.Lookup(msg, "content"))
	if len(parts) == 0 && len(calls) > 0 {
		return "calls " + strings.Join(calls, ", "), failed
	}
	return strings.Join(parts, " "), failed
}

// value prints a value under its key; what the value before it had already is dim.
func (r *Replay) value(lead styled, key string, width int, value, before json.RawMessage) error {
	lead += r.style.paint(yellow, "◆") + " " + r.style.label(yellow, line(key), width-2)
	for _, l := range valueLines(value, before, r.room(lead)) {
		color := ""
		if !l.fresh {
			color = dim
		}
		for _, text := range wrap(l.text, r.room(lead)) {
			if err := r.print(lead, color, text); err != nil {
				return err
			}
			lead = blank(seqWidth + width + 1)
		}
	}
	return nil
}

// End prints how it all stood at the end, and flushes.
func (r *Replay) End(res *host.Result) error {
	Printf(r.w, "\n")
	down := map[string]string{}
	for key, u := range res.Unavailable {
		down[key] = how(string(u.Code), u.Seq, u.Message)
	}
	width := r.state(res.AsOfSeq, res.Values, down)
	fact := func(name, text string) { r.fact(name, text, width) }
	r.surface(res.Surface.Nodes, res.Surface.ReplaceGeneration, width)
	fact("messages", roles(res.Messages))
	if len(res.Closers) > 0 {
		fact("open turn", "the log ends inside a turn; recovering it would append "+strings.Join(res.Closers, ", "))
	}
	return r.Flush()
}

// state prints values by key, and why others have none. It gives the width of the keys.
func (r *Replay) state(asOf int64, values map[string]json.RawMessage, down map[string]string) (width int) {
	r.print("", bold, fmt.Sprintf("As of seq %d", asOf))
	width = kindWidth
	for key := range values {
		width = max(width, len(key)+2)
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		r.value(blank(seqWidth), key, width, values[key], nil)
	}
	for _, key := range slices.Sorted(maps.Keys(down)) {
		r.down(key, width, down[key])
	}
	return width
}

// down prints a key that has no value.
func (r *Replay) down(key string, width int, why string) error {
	return r.print(blank(seqWidth)+r.style.paint(red, "✗")+" "+r.style.label(red, line(key), width-2), red, why)
}

// fact prints what is neither event nor value.
func (r *Replay) fact(name, text string, width int) error {
	return r.print(blank(seqWidth)+"  "+r.style.label(dim, name, width-2), dim, text)
}

func (r *Replay) surface(nodes []int64, replacements int64, width int) error {
	text := Count(int64(len(nodes)), "node") + ", " + Count(replacements, "replacement")
	if len(nodes) > 0 {
		text += ": " + seqs(nodes)
	}
	return r.fact("surface", text, width)
}

// roles counts messages by role, in the order in which roles appear.
func roles(messages []host.Message) string {
	if len(messages) == 0 {
		return "none"
	}
	n := map[string]int{}
	var order []string
	for _, m := range messages {
		role := scalar(m.Role)
		if n[role]++; n[role] == 1 {
			order = append(order, role)
		}
	}
	var parts []string
	for _, role := range order {
		parts = append(parts, fmt.Sprintf("%d %s", n[role], role))
	}
	return strings.Join(parts, ", ")
}

// at prints one line of the timeline.
func (r *Replay) at(seq int64, kind, color, textColor, text string) error {
	return r.print(seqLead(seq)+r.style.label(color, kind, kindWidth), textColor, text)
}

func seqLead(seq int64) styled { return styled(fmt.Sprintf("%*d  ", seqWidth-2, seq)) }

// print prints one line: lead as it is, text cut to what is left of the width.
func (r *Replay) print(lead styled, color, text string) error {
	if text = strings.TrimRight(harmless(text), " "); text == "" {
		lead = styled(strings.TrimRight(string(lead), " "))
	}
	return Printf(r.w, "%s\n", lead+r.style.paint(color, cut(text, r.room(lead))))
}

// room is how many columns are left behind a lead, 0 for no end.
func (r *Replay) room(lead styled) int {
	if r.style.Width == 0 {
		return 0
	}
	return max(20, r.style.Width-visible(lead)) // Below 20 columns nothing would be legible.
}

// visible is how many columns a lead takes: escapes take none.
func visible(lead styled) int {
	n, escape := 0, false
	for _, c := range lead {
		switch {
		case c == '\x1b':
			escape = true
		case escape:
			escape = c != 'm'
		default:
			n++
		}
	}
	return n
}

// Count is a number of things, as one event or two events.
func Count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
