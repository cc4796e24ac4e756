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

	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/event"
)

// Sessions prints a list of sessions.
type Sessions struct {
	w     io.Writer
	style Style
	keys  []string
	all   bool
	list  []*client.Session
}

// NewSessions prints values of keys as well, nil for whichever come.
func NewSessions(w io.Writer, style Style, keys []string) *Sessions {
	return &Sessions{w: w, style: style, keys: keys, all: keys == nil}
}

// Add takes a session.
func (l *Sessions) Add(s *client.Session) {
	l.list = append(l.list, s)
	if l.all && s.Projections != nil {
		for _, key := range slices.Sorted(maps.Keys(s.Projections.Values)) {
			if !slices.Contains(l.keys, key) {
				l.keys = append(l.keys, key)
			}
		}
	}
}

// End prints the list, in columns.
func (l *Sessions) End() error {
	if len(l.list) == 0 {
		return Printf(l.w, "there are no sessions\n")
	}
	head := []string{"SESSION", "EVENTS", "LAST COMMIT, UTC", "LIVE"}
	for _, key := range l.keys {
		head = append(head, line(key))
	}
	rows := [][]string{head}
	for _, s := range l.list {
		live := "-"
		if s.Live {
			live = "live"
		}
		row := []string{line(s.Header.ID), fmt.Sprint(s.Seq), strings.TrimSuffix(when(s.UpdatedAt), " UTC"), live}
		for _, key := range l.keys {
			text := "-"
			if s.Projections != nil && s.Projections.Values[key] != nil {
				text = scalar(s.Projections.Values[key])
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	b := bufio.NewWriter(l.w)
	for i, text := range align(rows, l.style.Width) {
		color := ""
		if i == 0 {
			color = dim
		}
		Printf(b, "%s\n", l.style.paint(color, strings.TrimRight(text, " ")))
	}
	return b.Flush()
}

// when is a time in milliseconds as people read it.
func when(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05 UTC") }

// Session prints what a session is, its values, and its surface where it is given.
func Session(w io.Writer, style Style, s *client.Session, values *client.Block, surface *client.Surface) error {
	r := NewReplay(w, style, "")
	h := &s.Header
	facts := []string{Count(s.Seq, "event"), "created " + when(h.CreatedAt), "last commit " + when(s.UpdatedAt)}
	if s.Live {
		facts = append(facts, "live")
	}
	if h.CWD != "" {
		facts = append(facts, h.CWD)
	}
	if h.AgentPreset != nil && *h.AgentPreset != "" {
		facts = append(facts, "preset "+*h.AgentPreset)
	}
	if h.ParentSession != "" {
		facts = append(facts, "forked from "+h.ParentSession)
	}
	Printf(r.w, "%s\n", style.paint(bold, "session "+line(h.ID)))
	r.print("", dim, line(strings.Join(facts, between)))
	width := r.values(values)
	if surface != nil {
		r.surface(surface.Nodes, surface.ReplaceGeneration, width)
	}
	return r.Flush()
}

// Values prints a block.
func Values(w io.Writer, style Style, b *client.Block) error {
	r := NewReplay(w, style, "")
	r.values(b)
	return r.Flush()
}

// values prints a block, and gives the width of its keys.
func (r *Replay) values(b *client.Block) int {
	down := map[string]string{}
	for key, u := range b.Unavailable {
		down[key] = how(u.Code, u.Seq, u.Message)
	}
	return r.state(b.AsOfSeq, b.Values, down)
}

// how says in one line why a key has no value.
func how(code string, seq int64, message string) string {
	switch {
	case code == "faulted": // The message names the seq.
	case seq < 0:
		code += ", before the first event"
	default:
		code += fmt.Sprintf(", having reached seq %d", seq)
	}
	return code + ": " + line(message)
}

// Tail prints a session as it goes on. Each call prints whole lines at once.
type Tail struct{ r *Replay }

// NewTail prints to w.
func NewTail(w io.Writer, style Style) *Tail { return &Tail{NewReplay(w, style, "")} }

// Event prints an event in a line, or two where a turn begins.
func (t *Tail) Event(ev *event.Event) error {
	shown, err := t.r.event(ev)
	if !shown && err == nil && ev.Type != event.TurnStart {
		err = t.r.at(ev.Seq, line(ev.Type), dim, "", line(string(ev.Data)))
	}
	return flushed(t.r, err)
}

// Baseline prints values as they are.
func (t *Tail) Baseline(b *client.Block) error {
	maps.Copy(t.r.last, b.Values)
	t.r.values(b)
	return flushed(t.r, nil)
}

// Value prints a value that changed.
func (t *Tail) Value(key string, value json.RawMessage, seq int64) error {
	before := t.r.last[key]
	t.r.last[key] = value
	return flushed(t.r, t.r.value(blank(seqWidth), key, kindWidth, value, before))
}

// Unavailable says that a key has no value any more.
func (t *Tail) Unavailable(key string, u client.Unavailable) error {
	return flushed(t.r, t.r.down(key, kindWidth, how(u.Code, u.Seq, u.Message)))
}

// Note says what is no event.
func (t *Tail) Note(text string) error {
	return flushed(t.r, t.r.print(blank(seqWidth), dim, line(text)))
}

func flushed(r *Replay, err error) error {
	if err != nil {
		return err
	}
	return r.Flush()
}

// Verification prints what a comparison found.
func Verification(w io.Writer, id string, v *client.Verification) error {
	b := bufio.NewWriter(w)
	compared := slices.DeleteFunc(slices.Clone(v.Keys), func(key string) bool { _, late := v.Unavailable[key]; return late })
	switch {
	case len(v.Differences) > 0:
		Printf(b, "session %s: %s at %s\n", id, Count(int64(len(v.Differences)), "difference"), Count(v.Seq, "event"))
	case len(v.Keys) == 0:
		Printf(b, "session %s: there was nothing to compare; are there plugins?\n", id)
	case len(compared) == 0:
		Printf(b, "session %s: nothing could be compared\n", id)
	default:
		Printf(b, "session %s: %s what the log gives: %s\n", id, are(len(compared)), strings.Join(compared, ", "))
	}
	for _, d := range v.Differences {
		Printf(b, "  %s: the %s as of seq %d is %s and the log gives %s\n", d.Key, d.What, d.Seq, nothing(d.Served), nothing(d.Folded))
	}
	for _, key := range slices.Sorted(maps.Keys(v.Unavailable)) {
		u := v.Unavailable[key]
		Printf(b, "  %s was not compared: %s\n", key, how(u.Code, u.Seq, u.Message))
	}
	return b.Flush()
}

func are(n int) string {
	if n == 1 {
		return "its value is"
	}
	return fmt.Sprintf("its %d values are", n)
}

// nothing is a value cut to what a line bears, or a word where there is none.
func nothing(value json.RawMessage) string {
	if value == nil {
		return "nothing"
	}
	return cut(line(string(value)), 200)
}
