package host_test

import (
	"context"
	"testing"

	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/session"
	"github.com/foldhost/foldhost/unit"
)

// Given a call whose first sending commits while the second asks the tool, as when nobody could tell whether it had, then the second gets what the first was answered, and nothing of its own.
func TestACallThatWasCommittedMeanwhileGetsTheFirstAnswer(t *testing.T) {
	h := host.New(host.Options{})
	defer h.Close()
	s := newSession(t, h, "s")
	once := session.Once{Key: "k", Digest: "d"}
	plugin := goal("goal")
	plugin.Units, plugin.Tools[0].Reads = nil, nil
	ask := plugin.Tools[0].Call
	plugin.Tools[0].Call = func(ctx context.Context, c unit.ToolCall) (unit.ToolResult, error) {
		first := session.Batch{Items: []session.Item{{Type: "goal/set", Data: []byte(`{"goal":"first"}`)}}, Once: once, Answer: `{"text":"the first","isError":false}`}
		if _, _, err := s.AppendBatch(t.Context(), first); err != nil {
			t.Error(err)
		}
		return ask(ctx, c)
	}
	if _, err := h.Add(plugin); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"meanwhile", "before"} {
		r, err := h.CallToolOnce(t.Context(), s, "set_goal", []byte(`{"goal":"second"}`), once)
		if err != nil || r.Text != "the first" || len(r.Events) != 1 || string(r.Events[0].Data) != `{"goal":"first"}` {
			t.Errorf("committed %s: %+v, %v", when, r, err)
		}
	}
}
