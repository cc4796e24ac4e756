package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/registry"
)

func TestCutKeepsWithinTheWidth(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"short", 10, "short"},
		{"exactly10!", 10, "exactly10!"},
		{"one too many", 11, "one too ma…"},
		{"the end of a word", 8, "the end…"},
		{"修复修复修复", 7, "修复修…"},
		{"whatever", 0, "whatever"},
	} {
		got := cut(c.text, c.width)
		if got != c.want {
			t.Errorf("cut(%q, %d) is %q, want %q", c.text, c.width, got, c.want)
		}
		if c.width > 0 && uniseg.StringWidth(got) > c.width {
			t.Errorf("cut(%q, %d) is wider", c.text, c.width)
		}
	}
}

func TestPartsAreWrappedAndNeverLost(t *testing.T) {
	text := "first 1 · second 2 · third 3"
	for width, want := range map[int]string{0: text, 28: text, 27: "first 1 · second 2|third 3", 12: "first 1|second 2|third 3", 3: "first 1|second 2|third 3"} {
		if got := strings.Join(wrap(text, width), "|"); got != want {
			t.Errorf("wrap at %d is %q, want %q", width, got, want)
		}
	}
}

func TestAnyValueIsLaidOut(t *testing.T) {
	for name, c := range map[string]struct {
		value, before string
		want          []valueLine
	}{
		"a string":          {`"x  y"`, ``, []valueLine{{`"x y"`, true}}},
		"null":              {`null`, ``, []valueLine{{`null`, true}}},
		"an empty list":     {`[]`, ``, []valueLine{{`[]`, true}}},
		"an empty object":   {`{}`, ``, []valueLine{{`{}`, true}}},
		"a flat object":     {`{"a":1,"b":"x"}`, ``, []valueLine{{"a 1 · b x", true}}},
		"a number grew":     {`{"a":5,"b":2}`, `{"a":3,"b":2}`, []valueLine{{"a 5 (+2) · b 2", true}}},
		"a number shrank":   {`{"a":5}`, `{"a":6}`, []valueLine{{"a 5 (-1)", true}}},
		"a list of objects": {`[{"n":"ab","s":"x"},{"n":"c","s":"yy"}]`, ``, []valueLine{{"ab  x", true}, {"c   yy", true}}},
		"one row is new":    {`[{"n":"a"},{"n":"b"}]`, `[{"n":"a"}]`, []valueLine{{"a", false}, {"b", true}}},
		"rows of two kinds": {`[{"n":1},{"m":1}]`, ``, []valueLine{{`[{"n":1},{"m":1}]`, true}}},
		"a list of scalars": {`[1,2]`, ``, []valueLine{{`[1,2]`, true}}},
		"a deep object":     {`{"a":{"b":1}}`, ``, []valueLine{{`{"a":{"b":1}}`, true}}},
		"a list inside":     {`{"a":["x","y"]}`, ``, []valueLine{{`a ["x","y"]`, true}}},
		"the kind changed":  {`{"a":1}`, `"a"`, []valueLine{{"a 1", true}}},
		"a row steers":      {`[{"n":"\u001b[2J"}]`, ``, []valueLine{{`\x1b[2J`, true}}},
	} {
		t.Run(name, func(t *testing.T) {
			var before json.RawMessage
			if c.before != "" {
				before = json.RawMessage(c.before)
			}
			got := valueLines(json.RawMessage(c.value), before, 0)
			if len(got) != len(c.want) {
				t.Fatalf("got %+v, want %+v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("line %d is %+v, want %+v", i, got[i], c.want[i])
				}
			}
		})
	}
}

func TestATableFitsByItsWidestColumns(t *testing.T) {
	rows := [][]string{{"a long piece of work", "in_progress"}, {"修复修复修复修复", "done"}}
	for width, want := range map[int]string{
		0:  "a long piece of work  in_progress|修复修复修复修复      done",
		33: "a long piece of work  in_progress|修复修复修复修复      done",
		27: "a long piece…   in_progress|修复修复修复…   done",
		22: "a long pi…  in_progre…|修复修复…   done",
		3:  "a long…   in_prog…|修复修…   done", // Below eight columns nothing would be legible: the line is cut where it is printed.
	} {
		got := align(rows, width)
		for _, line := range got {
			if w := uniseg.StringWidth(line); width > 18 && w > width {
				t.Errorf("%d columns in a width of %d: %q", w, width, line)
			}
		}
		if joined := strings.Join(got, "|"); joined != want {
			t.Errorf("at %d it is %q, want %q", width, joined, want)
		}
	}
}

func TestWhatChangesWithATurnHasItsSeq(t *testing.T) {
	var out bytes.Buffer
	r := NewReplay(&out, Style{}, "some.jsonl")
	if err := r.Event(&event.Event{Type: event.TurnStart, Seq: 53, Data: []byte(`{"turn":2}`)}, []host.ReplayChange{{Key: "todos", Seq: 53, Value: []byte(`null`)}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
	if want := "\nTurn 2\n   53  ◆ todos      null\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestLongListsOfSeqsAreShortened(t *testing.T) {
	if got := seqs([]int64{3, 1, 2}); got != "3 1 2" {
		t.Errorf("got %q", got)
	}
	list := make([]int64, 100)
	for i := range list {
		list[i] = int64(i)
	}
	if got := seqs(list); got != "0 1 2 3 4 5 … 94 95 96 97 98 99" {
		t.Errorf("got %q", got)
	}
}

// play prints a small replay in which everything occurs.
func play(t *testing.T, style Style) string {
	t.Helper()
	var out bytes.Buffer
	r := NewReplay(&out, style, "some.jsonl")
	long := strings.Repeat("a long text that goes on ", 20)
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(r.Accepted(event.Header{ID: "s", CWD: "/home", ParentSession: "p"}, 5))
	check(r.Event(&event.Event{Type: event.TurnStart, Data: []byte(`{"turn":1}`)}, nil))
	check(r.Event(&event.Event{Type: event.UserMessage, Seq: 1, Op: event.Append(), Data: []byte(`{"id":"u","role":"user","content":[{"type":"text","text":"` + long + `"},{"type":"image"}],"source":{"kind":"user"}}`)},
		[]host.ReplayChange{{Key: "title", Seq: 1, Value: []byte(`"` + long + `"`)}}))
	check(r.Event(&event.Event{Type: event.AssistantChunk, Seq: 2, Data: []byte(`{}`)}, nil))
	check(r.Event(&event.Event{Type: event.UserMessage, Seq: 3, Op: event.Replace(1, 1), Data: []byte(`{"id":"v","role":"user","content":[],"source":{"kind":"user"}}`)}, nil))
	check(r.Event(&event.Event{Type: event.TurnEnd, Seq: 4, Data: []byte(`{"turn":1,"reason":{"kind":"completed"}}`)}, nil))
	check(r.End(&host.Result{Events: 5, AsOfSeq: 4, Messages: []host.Message{{Role: []byte(`"user"`)}}, Closers: []string{"turn/end"},
		Values:      map[string]json.RawMessage{"title": json.RawMessage(`"` + long + `"`)},
		Unavailable: map[string]registry.Unavailable{"todos": {Code: registry.Faulted, Seq: 3, Message: "it\x1b[2Jbroke"}}}))
	return out.String()
}

func TestColourIsForTerminals(t *testing.T) {
	if plain := play(t, Style{}); strings.Contains(plain, "\x1b") {
		t.Errorf("escapes without colour:\n%q", plain)
	}
	colored := play(t, Style{Color: true})
	if !strings.Contains(colored, "\x1b[1m") {
		t.Error("no colour")
	}
	if stripped := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(colored, ""); strings.Contains(stripped, "\x1b") || stripped != play(t, Style{}) {
		t.Errorf("colour changes more than colour:\n%s", stripped)
	}
}

func TestLinesFitTheTerminal(t *testing.T) {
	for _, width := range []int{40, 80, 200} {
		for line := range strings.Lines(play(t, Style{Width: width})) {
			if w := uniseg.StringWidth(strings.TrimSuffix(line, "\n")); w > width {
				t.Errorf("%d columns on a terminal of %d: %q", w, width, line)
			}
		}
	}
	if plain := play(t, Style{}); strings.Contains(plain, "…") && !strings.Contains(plain, "stands in for") {
		t.Error("a pipe has no width")
	}
}

// full takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no room") }

func TestAWriterThatFailsIsReported(t *testing.T) {
	r := NewReplay(full{}, Style{}, "some.jsonl")
	r.Accepted(event.Header{}, 0)
	if err := r.End(&host.Result{}); err == nil {
		t.Error("nothing was written and nothing said")
	}
}
