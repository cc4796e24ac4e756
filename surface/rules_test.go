package surface_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/surface"
)

func TestNodesAfterALog(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []string
		nodes  []int64
	}{
		{"an empty log", nil, []int64{}},
		{"events that are not eligible", []string{plain("turn/start"), plain("step/start"), plain("step/end"), plain("turn/end")}, []int64{}},
		{"appends among others", []string{plain("turn/start"), user(appends), assistant(appends), plain("turn/end"), result("", "[]", appends)}, []int64{1, 2, 4}},
		{"a replacement of everything", []string{plain("turn/start"), user(appends), assistant(appends), plain("turn/end"), assistant(replaces(1, 2, "[1,2]"))}, []int64{4}},
		{"a replacement of the last", []string{user(appends), user(appends), assistant(replaces(1, 1, "[1]"))}, []int64{0, 2}},
		{"a replacement in the middle", []string{user(appends), user(appends), user(appends), assistant(replaces(1, 1, "[1]"))}, []int64{0, 3, 2}},
		{"a range by position, against the numbers", []string{user(appends), user(appends), assistant(replaces(0, 0, "[0]")), assistant(replaces(2, 1, "[2,1]"))}, []int64{3}},
		{"sources of an append that are not nodes", []string{plain("assistant/chunk"), assistant(from("[0]"))}, []int64{1}},
		{"empty sources of an assistant message", []string{assistant(from("[]"))}, []int64{0}},
		{"sources in any order", []string{user(appends), user(appends), user(from("[1,0]"))}, []int64{0, 1, 2}},
		{"a replacement naming more than it shadows", []string{user(appends), user(appends), user(replaces(0, 0, "[0]")), user(replaces(2, 1, "[0,1,2]"))}, []int64{3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, err := both(t, log(t, 0, c.events...))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(state.Nodes, c.nodes) {
				t.Errorf("got %v, want %v", state.Nodes, c.nodes)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	u := user(appends)
	for _, c := range []struct {
		name   string
		events []string // the last one is refused
		code   event.Code
		rule   string
	}{
		{"an op on a type that is not eligible", []string{plain("turn/start") + appends}, event.SurfaceIneligible, "surface-op-on-ineligible"},
		{"a bad op on a type that is not eligible", []string{plain("turn/start") + `,"surfaceOp":null`}, event.SurfaceIneligible, "surface-op-on-ineligible"},
		{"sources on a type that is not eligible", []string{u, plain("turn/start") + `,"sourceEventSeqs":[0]`}, event.SurfaceIneligible, "sources-on-ineligible"},
		{"empty sources on a type that is not eligible", []string{plain("turn/start") + `,"sourceEventSeqs":[]`}, event.SurfaceIneligible, "sources-on-ineligible"},
		{"bad sources on a type that is not eligible", []string{plain("turn/start") + `,"sourceEventSeqs":null`}, event.SurfaceIneligible, "sources-on-ineligible"},
		{"no op on an eligible type", []string{user("")}, event.SurfaceOpMissing, "surface-op-missing"},
		{"no op before bad sources", []string{user(`,"sourceEventSeqs":[]`)}, event.SurfaceOpMissing, "surface-op-missing"},
		{"another string", []string{user(`,"surfaceOp":"prepend"`)}, event.SurfaceOpInvalid, "surface-op-invalid"},
		{"null", []string{user(`,"surfaceOp":null`)}, event.SurfaceOpInvalid, "surface-op-invalid"},
		{"an array", []string{user(`,"surfaceOp":["append"]`)}, event.SurfaceOpInvalid, "surface-op-invalid"},
		{"an op before its sources", []string{user(`,"surfaceOp":1,"sourceEventSeqs":[]`)}, event.SurfaceOpInvalid, "surface-op-invalid"},
		{"a negative start", []string{u, user(`,"surfaceOp":{"op":"replace","start":-1,"end":0}`)}, event.SurfaceOpInvalid, "surface-op-invalid"},

		{"empty sources on a user message", []string{u, user(from("[]"))}, event.SourcesInvalid, "sources-empty"},
		{"empty sources on a tool result", []string{result("", "[]", from("[]"))}, event.SourcesInvalid, "sources-empty"},
		{"sources that are a string", []string{user(from(`"invalid"`))}, event.SourcesInvalid, "sources-malformed"},
		{"sources that are null", []string{user(from(`null`))}, event.SourcesInvalid, "sources-malformed"},
		{"a source that is a string", []string{u, user(from(`["0"]`))}, event.SourcesInvalid, "sources-malformed"},
		{"a negative source", []string{u, user(from(`[-1]`))}, event.SourcesInvalid, "sources-malformed"},
		{"duplicates", []string{u, user(from(`[0,0]`))}, event.SourcesInvalid, "sources-duplicate"},
		{"duplicates before later ones", []string{u, user(from(`[5,0,5]`))}, event.SourcesInvalid, "sources-duplicate"},
		{"malformed before duplicates", []string{u, user(from(`[0,0,-1]`))}, event.SourcesInvalid, "sources-malformed"},
		{"itself", []string{user(from(`[0]`))}, event.SourcesInvalid, "sources-not-earlier"},
		{"a later one", []string{u, user(from(`[7,0]`))}, event.SourcesInvalid, "sources-not-earlier"},

		{"an unknown start", []string{u, user(replaces(42, 0, "[0]"))}, event.SurfaceRangeInvalid, "start-not-found"},
		{"an unknown start before an unknown end", []string{u, user(replaces(42, 99, "[0]"))}, event.SurfaceRangeInvalid, "start-not-found"},
		{"an unknown end", []string{u, user(replaces(0, 99, "[0]"))}, event.SurfaceRangeInvalid, "end-not-found"},
		{"itself as end", []string{u, user(replaces(0, 1, "[0]"))}, event.SurfaceRangeInvalid, "end-not-found"},
		{"a start that is no node", []string{plain("turn/start"), u, user(replaces(0, 1, "[0,1]"))}, event.SurfaceRangeInvalid, "start-not-found"},
		{"a start that is shadowed", []string{u, user(replaces(0, 0, "[0]")), user(replaces(0, 1, "[0,1]"))}, event.SurfaceRangeInvalid, "start-not-found"},
		{"start after end", []string{u, u, user(replaces(1, 0, "[1,0]"))}, event.SurfaceRangeInvalid, "start-after-end"},
		{"start after end by position", []string{u, u, user(replaces(0, 0, "[0]")), user(replaces(1, 2, "[1,2]"))}, event.SurfaceRangeInvalid, "start-after-end"},
		{"a bad range before bad sources", []string{u, user(replaces(9, 9, "[0,0]"))}, event.SurfaceRangeInvalid, "start-not-found"},

		{"a replacement without sources", []string{u, user(replaces(0, 0, ""))}, event.SourcesIncomplete, "sources-incomplete"},
		{"a replacement by an assistant without any", []string{u, assistant(replaces(0, 0, "[]"))}, event.SourcesIncomplete, "sources-incomplete"},
		{"a replacement naming half of it", []string{u, u, user(replaces(0, 1, "[0]"))}, event.SourcesIncomplete, "sources-incomplete"},
		{"a replacement naming what was shadowed before", []string{u, user(replaces(0, 0, "[0]")), user(replaces(1, 1, "[0]"))}, event.SourcesIncomplete, "sources-incomplete"},
		{"invalid sources before incomplete ones", []string{u, u, user(replaces(0, 1, "[0,0]"))}, event.SourcesInvalid, "sources-duplicate"},
		{"incomplete sources before the tool-result rule", []string{u, result("", "[]", replaces(0, 0, ""))}, event.SourcesIncomplete, "sources-incomplete"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := both(t, log(t, 0, c.events...))
			e := refusal(t, err)
			if e.Code != c.code || e.Rule != c.rule {
				t.Errorf("got %s (%s), want %s (%s)", e.Code, e.Rule, c.code, c.rule)
			}
			var at *event.IndexError
			if !errors.As(err, &at) || at.Index != int64(len(c.events)-1) {
				t.Errorf("got %v, want index %d", err, len(c.events)-1)
			}
		})
	}
}

func TestASeqThatIsNotTheNextIsRefusedBeforeAllElse(t *testing.T) {
	drafts := log(t, 0, user(appends), user(""), user(`,"surfaceOp":null`))
	_, err := both(t, []event.Draft{drafts[0], drafts[2]})
	if e := refusal(t, err); e.Code != event.SeqNotContiguous {
		t.Errorf("got %s", e.Code)
	}
}

func TestDraftsMadeInGoMeetTheSameRules(t *testing.T) {
	base := log(t, 0, user(appends))
	for _, c := range []struct {
		name   string
		change func(*event.Draft)
		code   event.Code
	}{
		{"a negative start", func(d *event.Draft) { d.Op = event.Replace(-1, 0) }, event.SurfaceOpInvalid},
		{"an end that is too large", func(d *event.Draft) { d.Op = event.Replace(0, event.MaxInteger+1) }, event.SurfaceOpInvalid},
		{"a kind that does not exist", func(d *event.Draft) { d.Op = event.Op{Kind: 9} }, event.SurfaceOpInvalid},
		{"a negative source", func(d *event.Draft) { d.Sources = []int64{-1} }, event.SourcesInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := log(t, 1, user(appends))[0]
			c.change(&d)
			_, err := both(t, append(slices.Clone(base), d))
			if e := refusal(t, err); e.Code != c.code {
				t.Errorf("got %s, want %s", e.Code, c.code)
			}
		})
	}
}

func TestAToolResultMayRewriteOnlyItsInnerContent(t *testing.T) {
	old := result(`,"meta":{"tags":["a",{"n":1}],"left":1},"error":{"name":"E"}`, `[{"type":"text","text":"long"}]`, appends)
	op := replaces(0, 0, "[0]")
	const inner = `[{"type":"text","text":"short"}]`
	const meta = `,"meta":{"tags":["a",{"n":1}],"left":1},"error":{"name":"E"}`
	for _, c := range []struct {
		name string
		next string
		ok   bool
	}{
		{"the same again", result(meta, `[{"type":"text","text":"long"}]`, op), true},
		{"other content", result(meta, inner, op), true},
		{"more content", result(meta, `[1,2,3]`, op), true},
		{"no content", result(meta, `[]`, op), true},
		{"keys in another order", result(`,"error":{"name":"E"},"meta":{"left":1.0,"tags":["a",{"n":1e0}]}`, inner, op), true},
		{"keys of the block in another order", resultBlock(meta, `"isError":false,"content":[],"toolCallId":"c1","type":"tool-result"`, op), true},
		{"another toolCallId", resultBlock(meta, `"type":"tool-result","toolCallId":"c2","content":[],"isError":false`, op), false},
		{"another isError", resultBlock(meta, `"type":"tool-result","toolCallId":"c1","content":[],"isError":true`, op), false},
		{"a key more in the block", resultBlock(meta, `"type":"tool-result","toolCallId":"c1","content":[],"isError":false,"x":null`, op), false},
		{"a key less in the block", resultBlock(meta, `"type":"tool-result","toolCallId":"c1","content":[]`, op), false},
		{"no content in the block", resultBlock(meta, `"type":"tool-result","toolCallId":"c1","isError":false`, op), false},
		{"another tag", result(`,"meta":{"tags":["b",{"n":1}],"left":1},"error":{"name":"E"}`, inner, op), false},
		{"tags in another order", result(`,"meta":{"tags":[{"n":1},"a"],"left":1},"error":{"name":"E"}`, inner, op), false},
		{"another key in meta", result(`,"meta":{"tags":["a",{"n":1}],"right":1},"error":{"name":"E"}`, inner, op), false},
		{"a key more in meta", result(`,"meta":{"tags":["a",{"n":1}],"left":1,"two":2},"error":{"name":"E"}`, inner, op), false},
		{"no meta", result(`,"error":{"name":"E"}`, inner, op), false},
		{"another error", result(`,"meta":{"tags":["a",{"n":1}],"left":1},"error":{"name":"F"}`, inner, op), false},
		{"content of something else", result(`,"meta":{"tags":["a",{"n":1}],"left":1},"error":{"name":"E","content":[{"content":1}]}`, inner, op), false},
		{"a key more in data", result(meta+`,"content":[]`, inner, op), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			state, err := both(t, log(t, 0, old, c.next))
			if c.ok {
				if err != nil || !slices.Equal(state.Nodes, []int64{1}) {
					t.Fatalf("got %v, %v", state.Nodes, err)
				}
				return
			}
			if e := refusal(t, err); e.Code != event.ToolResultRewrite || e.Rule != "rewrite-beyond-content" {
				t.Fatalf("got %v", e)
			}
		})
	}
}

func TestContentElsewhereIsNotTheInnerContent(t *testing.T) {
	for _, place := range []string{`,"meta":{"content":[{"content":%s}]}`, `,"meta":{"message":{"content":[{"content":%s}]}}`, `,"content":[{"content":%s}]`} {
		old, next := fmt.Sprintf(place, "1"), fmt.Sprintf(place, "2")
		_, err := both(t, log(t, 0, result(old, "[]", appends), result(next, "[]", replaces(0, 0, "[0]"))))
		if e := refusal(t, err); e.Rule != "rewrite-beyond-content" {
			t.Errorf("%s: got %v", place, e)
		}
	}
}

func TestAFrameIsTheDataWithoutTheInnerContent(t *testing.T) {
	for data, want := range map[string]string{
		`{"turn":1,"message":{"id":"r","content":[{"type":"tool-result","content":[{"type":"text"}],"isError":false}]},"meta":[1,2]}`: `{"turn":1,"message":{"id":"r","content":[{"type":"tool-result","content":null,"isError":false}]},"meta":[1,2]}`,
		`{"message":{"content":[{"content":1},{"x":2},{"content":{}}]}}`:                                                              `{"message":{"content":[{"content":null},{"x":2},{"content":null}]}}`,
		`{"content":[1],"message":{"content":"text"}}`:                                                                                `{"content":[1],"message":{"content":"text"}}`,
		`{"message":[{"content":1}]}`:                                                                                                 `{"message":[{"content":1}]}`,
		`{"a\"b":"<\u2028>","c":[]}`:                                                                                                  `{"a\"b":"<\u2028>","c":[]}`,
		`7`:                                                                                                                           `7`,
	} {
		if got := surface.Frame([]byte(data)); string(got) != want {
			t.Errorf("%s: got %s, want %s", data, got, want)
		}
		if again := surface.Frame([]byte(want)); string(again) != want {
			t.Errorf("the frame of %s is %s", want, again)
		}
	}
}

func TestWhatIsMissingAmongTheSourcesIsNamedAsFarAsItIsReadable(t *testing.T) {
	events := make([]string, 500)
	for i := range events {
		events[i] = user(appends)
	}
	for last, want := range map[int][]string{2: {"1, 2"}, 499: {"1, 2, 3", "489 more"}} {
		_, err := both(t, log(t, 0, append(slices.Clone(events), user(replaces(0, last, "[0]")))...))
		e := refusal(t, err)
		for _, text := range want {
			if e.Code != event.SourcesIncomplete || !strings.Contains(e.Reason, text) || len(e.Reason) > 200 {
				t.Errorf("0 to %d: got %v, want it to name %s", last, e, text)
			}
		}
	}
}

func TestAToolResultReplacesExactlyOneToolResult(t *testing.T) {
	r := result("", "[]", appends)
	for _, c := range []struct {
		name   string
		events []string
		rule   string
	}{
		{"two tool results", []string{r, r, result("", "[]", replaces(0, 1, "[0,1]"))}, "rewrite-of-several"},
		{"a user message", []string{user(appends), result("", "[]", replaces(0, 0, "[0]"))}, "rewrite-of-other-type"},
		{"an assistant message", []string{assistant(appends), result("", "[]", replaces(0, 0, "[0]"))}, "rewrite-of-other-type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := both(t, log(t, 0, c.events...))
			if e := refusal(t, err); e.Code != event.ToolResultRewrite || e.Rule != c.rule {
				t.Errorf("got %v", e)
			}
		})
	}
	t.Run("other types may replace tool results", func(t *testing.T) {
		if _, err := both(t, log(t, 0, r, r, user(replaces(0, 1, "[0,1]")))); err != nil {
			t.Error(err)
		}
	})
	t.Run("a rewrite may itself be rewritten", func(t *testing.T) {
		state, err := both(t, log(t, 0, r, result("", "[1]", replaces(0, 0, "[0]")), result("", "[2]", replaces(1, 1, "[0,1]"))))
		if err != nil || !slices.Equal(state.Nodes, []int64{2}) {
			t.Errorf("got %v, %v", state.Nodes, err)
		}
	})
}

func TestWhatTheReaderSaysComesWrapped(t *testing.T) {
	drafts := log(t, 0, result("", "[]", appends), result("", "[1]", replaces(0, 0, "[0]")))
	broken := errors.New("disk on fire")
	m := surface.NewManager(0, func(int64) (event.Event, error) { return event.Event{}, broken })
	p, err := m.Plan(&drafts[0])
	if err != nil {
		t.Fatal(err)
	}
	m.Apply(p)
	if _, err := m.Plan(&drafts[1]); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	none := surface.NewManager(0, nil)
	p, _ = none.Plan(&drafts[0])
	none.Apply(p)
	if _, err := none.Plan(&drafts[1]); err == nil {
		t.Error("planned a rewrite without a reader")
	}
}

func TestAFoldGivesTheHistory(t *testing.T) {
	state, err := both(t, log(t, 0, user(appends), user(appends), assistant(replaces(0, 0, "[0]")), assistant(replaces(2, 1, "[2,1]"))))
	if err != nil {
		t.Fatal(err)
	}
	want := []surface.Replacement{{Seq: 2, Start: 0, End: 0, ShadowedSeqs: []int64{0}}, {Seq: 3, Start: 2, End: 1, ShadowedSeqs: []int64{2, 1}}}
	if !slices.EqualFunc(state.Replacements, want, func(a, b surface.Replacement) bool {
		return a.Seq == b.Seq && a.Start == b.Start && a.End == b.End && slices.Equal(a.ShadowedSeqs, b.ShadowedSeqs)
	}) {
		t.Errorf("got %v, want %v", state.Replacements, want)
	}
}
