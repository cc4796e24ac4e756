package usageunit_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/foldhost/foldhost/plugins/tokenusage/usageunit"
	"github.com/foldhost/foldhost/sdk"
	"github.com/foldhost/foldhost/sdk/plugintest"
)

func chunk(turn, step int, usage string) plugintest.Input {
	return plugintest.Event("assistant/chunk", plugintest.JSON(fmt.Sprintf(`{"turn":%d,"step":%d,"chunk":{"type":"usage","usage":%s}}`, turn, step, usage)))
}

func message(turn, step int, usage string) plugintest.Input {
	return plugintest.Event("assistant/message", plugintest.JSON(fmt.Sprintf(`{"turn":%d,"step":%d,"message":{},"usage":%s}`, turn, step, usage)))
}

func total(in, out, read, write int64) usageunit.Buckets {
	return usageunit.Buckets{UncachedInputTokens: in, OutputTokens: out, CacheReadTokens: read, CacheWriteTokens: write}
}

func TestTokenUsage(t *testing.T) {
	u := plugintest.Unit(t, usageunit.Projection)
	t.Run("nothing yet", func(t *testing.T) {
		u.Given().Then(total(0, 0, 0, 0)).ThenState(plugintest.JSON(`{"totals":{"uncachedInputTokens":0,"outputTokens":0,"cacheReadTokens":0,"cacheWriteTokens":0},"last":null}`))
	})
	t.Run("a chunk and the same at the end count once, and send one value", func(t *testing.T) {
		usage := `{"inputTokens":10,"outputTokens":4,"cacheReadTokens":7,"cacheWriteTokens":2}`
		o := u.Given(chunk(1, 1, usage), message(1, 1, usage)).Then(total(10, 4, 7, 2)).ThenSent(total(10, 4, 7, 2))
		if n := len(o.Report.Steps); n != 2 {
			t.Errorf("%d states, want that of the empty log and one more", n)
		}
	})
	t.Run("the end replaces the chunk", func(t *testing.T) {
		u.Given(chunk(1, 1, `{"inputTokens":10,"outputTokens":2,"cacheReadTokens":3}`), message(1, 1, `{"inputTokens":14,"outputTokens":5,"cacheReadTokens":8,"cacheWriteTokens":1}`)).
			Then(total(14, 5, 8, 1))
	})
	t.Run("two steps add up, and a chunk without an end is kept", func(t *testing.T) {
		u.Given(chunk(1, 1, `{"inputTokens":10,"outputTokens":6,"cacheReadTokens":2}`), message(1, 2, `{"inputTokens":20,"outputTokens":9,"cacheWriteTokens":4}`)).
			Then(total(30, 15, 2, 4)).
			ThenState(plugintest.JSON(`{"totals":{"uncachedInputTokens":30,"outputTokens":15,"cacheReadTokens":2,"cacheWriteTokens":4},
				"last":{"turn":1,"step":2,"buckets":{"uncachedInputTokens":20,"outputTokens":9,"cacheReadTokens":0,"cacheWriteTokens":4}}}`))
	})
	t.Run("an older step is not replaced: it adds", func(t *testing.T) {
		u.Given(message(1, 1, `{"inputTokens":1}`), message(1, 2, `{"inputTokens":1}`), message(1, 1, `{"inputTokens":1}`)).Then(total(3, 0, 0, 0))
	})
	t.Run("the same step of another turn adds", func(t *testing.T) {
		u.Given(message(1, 1, `{"inputTokens":1}`), message(2, 1, `{"inputTokens":1}`)).Then(total(2, 0, 0, 0))
	})
	t.Run("a report of nothing still is the most recent one", func(t *testing.T) {
		u.Given(message(1, 1, `{"inputTokens":1}`), message(1, 2, `{}`), message(1, 1, `{"inputTokens":1}`)).Then(total(2, 0, 0, 0))
	})
	t.Run("what carries no usage changes nothing", func(t *testing.T) {
		u.Given(
			plugintest.Event("assistant/chunk", plugintest.JSON(`{"turn":1,"step":1,"chunk":{"type":"text","text":"usage","usage":{"inputTokens":1}}}`)),
			plugintest.Event("assistant/chunk", plugintest.JSON(`{"turn":1,"step":1,"chunk":{"type":"usage"}}`)),
			plugintest.Event("assistant/chunk", plugintest.JSON(`null`)),
			plugintest.Event("assistant/message", plugintest.JSON(`{"turn":1,"step":1,"message":{"usage":{"inputTokens":1}}}`)),
			message(1, 1, `null`),
			plugintest.Event("user/message", plugintest.JSON(`{"usage":{"inputTokens":1}}`)),
		).Then(total(0, 0, 0, 0)).ThenSent()
	})
	t.Run("other spellings of integers count", func(t *testing.T) {
		u.Given(message(1, 1, `{"inputTokens":1e1,"outputTokens":2.0}`)).Then(total(10, 2, 0, 0))
	})
	for name, in := range map[string]plugintest.Input{
		"tokens that are no integer":     message(1, 1, `{"inputTokens":1.5}`),
		"tokens that are text":           chunk(1, 1, `{"outputTokens":"1"}`),
		"a report that has no turn":      plugintest.Event("assistant/message", plugintest.JSON(`{"step":1,"usage":{}}`)),
		"a report whose step is no step": plugintest.Event("assistant/message", plugintest.JSON(`{"turn":1,"step":"a","usage":{}}`)),
	} {
		t.Run(name+" are a fault", func(t *testing.T) {
			u.Given(message(1, 1, `{"inputTokens":1}`), in).ThenFault(1).Then(total(1, 0, 0, 0))
		})
	}
}

// report is one report as the naive model keeps it.
type report struct {
	turn, step int
	n          [4]int64
}

// TestTotalsAreThoseOfANaiveCount keeps all reports: one for the same turn and step as the one right before it takes its place.
func TestTotalsAreThoseOfANaiveCount(t *testing.T) {
	def, err := usageunit.Projection.Definition()
	if err != nil {
		t.Fatal(err)
	}
	names := [4]string{"inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens"}
	rapid.Check(t, func(t *rapid.T) {
		var kept []report
		var events []sdk.Event
		for seq := range rapid.IntRange(0, 30).Draw(t, "events") {
			r := report{turn: rapid.IntRange(1, 3).Draw(t, "turn"), step: rapid.IntRange(1, 2).Draw(t, "step")}
			usage := map[string]int64{}
			for i, name := range names {
				if rapid.Bool().Draw(t, "has "+name) {
					r.n[i] = rapid.Int64Range(0, 1<<40).Draw(t, name)
					usage[name] = r.n[i]
				}
			}
			data := map[string]any{"turn": r.turn, "step": r.step}
			ev := sdk.Event{Seq: int64(seq), Type: "assistant/message"}
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0: // a chunk of text
				ev.Type, data["chunk"] = "assistant/chunk", map[string]any{"type": "text", "text": "x"}
			case 1: // an end without a report
			case 2:
				ev.Type, data["chunk"] = "assistant/chunk", map[string]any{"type": "usage", "usage": usage}
				kept = keep(kept, r)
			case 3:
				data["usage"] = usage
				kept = keep(kept, r)
			}
			if ev.Data, err = json.Marshal(data); err != nil {
				t.Fatal(err)
			}
			events = append(events, ev)
		}
		var sum [4]int64
		for _, r := range kept {
			for i, n := range r.n {
				sum[i] += n
			}
		}
		want, err := json.Marshal(total(sum[0], sum[1], sum[2], sum[3]))
		if err != nil {
			t.Fatal(err)
		}
		got := plugintest.Check(def, events)
		if !got.OK() {
			t.Fatal(got)
		}
		if view := got.Steps[len(got.Steps)-1].View; string(view) != string(want) {
			t.Fatalf("totals are %s, want %s", view, want)
		}
	})
}

func keep(kept []report, r report) []report {
	if n := len(kept); n > 0 && kept[n-1].turn == r.turn && kept[n-1].step == r.step {
		kept = kept[:n-1]
	}
	return append(kept, r)
}

func BenchmarkChunk(b *testing.B) {
	def, err := usageunit.Projection.Definition()
	if err != nil {
		b.Fatal(err)
	}
	s, err := def.Inline.Init()
	if err != nil {
		b.Fatal(err)
	}
	ev := sdk.Event{Type: "assistant/chunk", Data: json.RawMessage(`{"turn":12,"step":3,"chunk":{"type":"text","index":0,"text":"some words of an answer"}}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := def.Inline.Apply(s, &ev); err != nil {
			b.Fatal(err)
		}
	}
}
