package registry

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry/internal/fakeplugin"
	"github.com/foldhost/foldhost/unit"
)

// Wherever a value goes out it is one line, also when the plugin that computed it writes JSON as for people.
func TestWhatLeavesHasNoWhiteSpace(t *testing.T) {
	any := json.RawMessage(`true`)
	pretty := func(key string) unit.Definition {
		return unit.Definition{Key: key, StateVersion: 1, StateSchema: any, ViewSchema: any, Events: []string{"a"}, Inline: fakeplugin.Fold{
			Initial: "[ ]",
			On:      func(_ string, ev *event.Event) (string, error) { return "{\n  \"at\": [ 0, \"a b\" ]\r\n}", nil },
		}}
	}
	const want = `{"at":[0,"a b"]}`
	synctest.Test(t, func(t *testing.T) {
		w := given(t, Options{})
		e := w.listen()
		w.register("inline", pretty("here"))
		w.plugin("process", pretty("there"))
		w.values(-1, "here", "[]", "there", "[]")
		w.append("a")
		w.values(0, "here", want, "there", want)
		synctest.Wait()
		for _, c := range e.changes() {
			if c.Kind == KindValue && string(c.Value) != want {
				t.Errorf("the feed says %s, want %s", c.Value, want)
			}
		}
		rows, err := w.s.Checkpoint(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"here", "there"} {
			if r := rows.Rows[key]; string(r.Val) != want || string(r.View) != want {
				t.Errorf("the row of %s has state %s and view %s", key, r.Val, r.View)
			}
		}
	})
}
