package life_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/host/internal/life/lifetest"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

func TestADescriptionThatCannotBeUsedSaysWhere(t *testing.T) {
	many := make([]*pluginproto.OwnedEvent, 1001)
	for i := range many {
		many[i] = &pluginproto.OwnedEvent{Type: fmt.Sprint("t", i)}
	}
	owns := func(types ...string) *pluginproto.DescribeResponse {
		m := &pluginproto.DescribeResponse{}
		for _, typ := range types {
			m.OwnedEvents = append(m.OwnedEvents, &pluginproto.OwnedEvent{Type: typ})
		}
		return m
	}
	for name, c := range map[string]struct {
		said  *pluginproto.DescribeResponse
		field string
	}{
		"a config schema that is none":       {&pluginproto.DescribeResponse{ConfigSchema: []byte(`{"type":12}`)}, "config_schema"},
		"a config schema that is no JSON":    {&pluginproto.DescribeResponse{ConfigSchema: []byte("{")}, "config_schema"},
		"a config schema that is to be got":  {&pluginproto.DescribeResponse{ConfigSchema: []byte(`{"$ref":"https://example.com/s"}`)}, "config_schema"},
		"more event types than a host bears": {&pluginproto.DescribeResponse{OwnedEvents: many}, "owned_events"},
		"an event type without a name":       {owns("a", ""), "owned_events[1]"},
		"an event type that is not there":    {&pluginproto.DescribeResponse{OwnedEvents: []*pluginproto.OwnedEvent{nil}}, "owned_events[0]"},
		"an event type twice":                {owns("a", "b", "a"), "owned_events[2]"},
		"an event type of the core":          {owns("a", event.UserMessage), "owned_events[1]"},
		"a schema of an event type, unsound": {&pluginproto.DescribeResponse{OwnedEvents: []*pluginproto.OwnedEvent{{Type: "a", DataSchema: []byte("7")}}}, `owned_events[0].data_schema, of "a"`},
	} {
		var wrong *life.DescriptionError
		if _, err := life.ReadDescription(c.said); !errors.As(err, &wrong) || wrong.Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestADescriptionSurvivesBeingKept: what is read again from its bytes says the same.
func TestADescriptionSurvivesBeingKept(t *testing.T) {
	said := &pluginproto.DescribeResponse{Name: "a\x1b[31m\nb", Version: strings.Repeat("x", 10_000), Summary: "fine", BuiltWith: "hand", ConfigSchema: []byte(`{"type":"object"}`),
		OwnedEvents: []*pluginproto.OwnedEvent{{Type: "any/thing"}, {Type: "a/number", DataSchema: []byte(`{"type":"integer"}`)}}}
	first, err := life.ReadDescription(said)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(first.Name, "\x1b\n") || len(first.Version) > 600 {
		t.Errorf("what people see is %q and %d bytes", first.Name, len(first.Version))
	}
	again, err := life.DecodeDescription(first.Raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []*life.Description{first, again} {
		if d.Name != first.Name || d.Version != first.Version || d.Config == nil || len(d.Owned) != 2 || d.Owned[0].Schema != nil || string(d.Owned[1].Schema.Text) != `{"type":"integer"}` {
			t.Errorf("%+v", d)
		}
		if wrong := d.Owned[1].Schema.Check(json.RawMessage(`"one"`)); len(wrong) != 1 {
			t.Errorf("a word passes for a number: %v", wrong)
		}
		if wrong := d.Owned[0].Schema.Check(json.RawMessage(`{"a":1,"a":2}`)); len(wrong) != 1 {
			t.Errorf("without a schema anything passes, even what is no lossless JSON: %v", wrong)
		}
	}
	if _, err := life.DecodeDescription([]byte("damaged")); err == nil {
		t.Error("what is damaged was read")
	}
}

func TestWhetherAConfigFits(t *testing.T) {
	object := `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	for name, c := range map[string]struct {
		schema, config string
		paths          []string
	}{
		"none wanted, none given":           {"", "", nil},
		"none wanted, one given":            {"", `{}`, []string{"$"}},
		"none given, which is an empty one": {object, "", []string{"$.n"}},
		"none given, and none needed":       {`{"type":"object"}`, "", nil},
		"none given, and no object wanted":  {`{"type":"integer"}`, "", nil},
		"one that fits":                     {object, `{"n":1}`, nil},
		"one that does not":                 {object, `{"n":"one"}`, []string{"$.n"}},
		"one that is no JSON":               {object, `{"n":`, []string{"$.n"}},
	} {
		d, err := life.ReadDescription(&pluginproto.DescribeResponse{ConfigSchema: []byte(c.schema)})
		if err != nil {
			t.Fatal(err)
		}
		var given json.RawMessage
		if c.config != "" {
			given = json.RawMessage(c.config)
		}
		var refused *life.ConfigError
		var paths []string
		if err := d.CheckConfig(given); errors.As(err, &refused) {
			for _, p := range refused.Problems {
				paths = append(paths, p.Path)
			}
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Join(paths, " ") != strings.Join(c.paths, " ") {
			t.Errorf("%s: wrong at %v", name, paths)
		}
	}
}

// TestConfigsThatMeanTheSameHaveOneDigest: whatever the order of keys and the white space; and those that do not have two.
func TestConfigsThatMeanTheSameHaveOneDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.MapOf(rapid.StringMatching(`[a-z]{1,3}`), rapid.Int()).Draw(t, "config")
		var pairs []string
		for k, v := range m {
			pairs = append(pairs, fmt.Sprintf("%q : %d", k, v))
		}
		pairs = rapid.Permutation(pairs).Draw(t, "order")
		one, _ := json.Marshal(m)
		two := []byte("{ " + strings.Join(pairs, " ,\n") + "}")
		if life.ConfigDigest(one) != life.ConfigDigest(two) {
			t.Fatalf("%s and %s differ", one, two)
		}
		m["more"] = 1
		other, _ := json.Marshal(m)
		if life.ConfigDigest(one) == life.ConfigDigest(other) || life.ConfigDigest(nil) == life.ConfigDigest(one) {
			t.Fatalf("%s, %s and none do not differ", one, other)
		}
	})
	for _, pair := range [][2]string{{`{"n":9007199254740993}`, `{"n":9007199254740992}`}, {`{"n":1}`, `{"n":"1"}`}, {`[1,2]`, `[2,1]`}, {`{}`, `null`}} {
		if life.ConfigDigest([]byte(pair[0])) == life.ConfigDigest([]byte(pair[1])) {
			t.Errorf("%s and %s are taken for the same", pair[0], pair[1])
		}
	}
}

// TestWhatIsWrongInASetIsRefusedAndTheRestServes: the first of two counts, and a tool reads only what its plugin has got.
func TestWhatIsWrongInASetIsRefusedAndTheRestServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := number("bad")
		bad.StateSchema = json.RawMessage(`{"$ref":"file:///etc/passwd"}`)
		r := up(t, lifetest.Plugin{
			Units: []unit.Definition{number("a"), number("a"), number("no key!"), bad, number("b")},
			Tools: []*pluginproto.Tool{
				tool("first"), tool("first"), tool("no name!"), nil,
				tool("reads", func(m *pluginproto.Tool) { m.Reads = []string{"a", "b"} }),
				tool("reads_bad", func(m *pluginproto.Tool) { m.Reads = []string{"bad"} }),
				tool("no_object", func(m *pluginproto.Tool) { m.ArgumentSchema = []byte(`{"type":`) }),
				tool("retry", func(m *pluginproto.Tool) { m.Retry = 77 }),
			},
		})
		var refused []string
		for _, f := range r.First.Refused {
			var wrongUnit *unit.DefinitionError
			var wrongTool *unit.ToolError
			if !errors.As(f.Err, &wrongUnit) && !errors.As(f.Err, &wrongTool) {
				t.Errorf("%s %q is refused with %T: %v", f.What, f.Name, f.Err, f.Err)
			}
			refused = append(refused, f.What+" "+f.Name)
		}
		want := "unit a, unit no key!, unit bad, tool first, tool no name!, tool , tool reads_bad, tool no_object, tool retry"
		if got := strings.Join(refused, ", "); got != want {
			t.Errorf("refused are %s", got)
		}
		if len(r.First.Units) != 2 || len(r.First.Tools) != 2 {
			t.Errorf("%d units and %d tools serve", len(r.First.Units), len(r.First.Tools))
		}
	})
}
