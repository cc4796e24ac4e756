package conform_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/internal/conform"
	"github.com/foldhost/foldhost/unit"
)

// counter counts events; each field makes it break one law.
type counter struct {
	random, forgets, wrongView, faults bool
	views                              *int
}

func (counter) Init() (unit.State, error) { return 0, nil }
func (c counter) Apply(s unit.State, ev *event.Event) (unit.State, bool, error) {
	if c.faults {
		return nil, false, fmt.Errorf("it does not want to")
	}
	return s.(int) + 1, true, nil
}
func (c counter) View(s unit.State) (json.RawMessage, error) {
	*c.views++
	if c.wrongView {
		return json.RawMessage(`"text"`), nil
	}
	if c.random {
		return fmt.Appendf(nil, "%d", *c.views), nil
	}
	return fmt.Appendf(nil, "%d", s), nil
}
func (counter) Encode(s unit.State) (json.RawMessage, error) { return fmt.Appendf(nil, "%d", s), nil }
func (c counter) Decode(raw json.RawMessage) (unit.State, error) {
	n, _ := event.Integer(raw)
	if c.forgets {
		n = 0
	}
	return int(n), nil
}

func TestEachLawIsSeenToBeBroken(t *testing.T) {
	for law, c := range map[string]counter{
		"":                     {},
		conform.Repeatable:     {random: true},
		conform.SplitsAnywhere: {forgets: true},
		conform.TrueToSchema:   {wrongView: true},
		conform.Answers:        {faults: true},
	} {
		t.Run(law, func(t *testing.T) {
			c.views = new(int)
			integer := json.RawMessage(`{"type":"integer"}`)
			def := unit.Definition{Key: "n", StateSchema: integer, ViewSchema: integer, Events: []string{"step"}, Inline: c}
			in, err := unit.NewLocal(def)
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			compiled, _ := unit.Compile(def)
			var events []event.Event
			for i := range 200 {
				events = append(events, event.Event{Type: []string{"step", "other"}[i%2], Seq: int64(i), Data: json.RawMessage("{}")})
			}
			broken, err := conform.Check(t.Context(), in, []*unit.Compiled{compiled}, events)
			if err != nil {
				t.Fatal(err)
			}
			if law == "" && len(broken) > 0 {
				t.Errorf("a good unit breaks %v", broken)
			}
			if law != "" && !slices.ContainsFunc(broken, func(v conform.Violation) bool { return v.Law == law }) {
				t.Errorf("it breaks %v", broken)
			}
		})
	}
}
