package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// broken does the same in each of its calls.
type broken struct{ do func() error }

func (b broken) Init() (unit.State, error) { return 1, b.do() }
func (b broken) Apply(unit.State, *event.Event) (unit.State, bool, error) {
	return 2, true, b.do()
}
func (b broken) View(unit.State) (json.RawMessage, error)       { return json.RawMessage("3"), b.do() }
func (b broken) Encode(unit.State) (json.RawMessage, error)     { return json.RawMessage("4"), b.do() }
func (b broken) Decode(raw json.RawMessage) (unit.State, error) { return 5, b.do() }

// Whatever call of a fold fails, the error reaches the host; of a panic the stack is in the log, of an error nothing.
func TestEveryCallOfAFoldIsContained(t *testing.T) {
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		do    func() error
		fails bool
		log   string
	}{
		"right": {func() error { return nil }, false, ""}, "an error": {func() error { return refused }, true, ""}, "a panic": {func() error { panic("boom") }, true, "contain_test.go"},
	} {
		var out bytes.Buffer
		in := contain(broken{c.do}, hclog.New(&hclog.LoggerOptions{Output: &out, JSONFormat: true}))
		for call, do := range map[string]func() (any, error){
			"init":   func() (any, error) { return in.Init() },
			"apply":  func() (any, error) { s, _, err := in.Apply(1, &event.Event{Type: "t"}); return s, err },
			"view":   func() (any, error) { v, err := in.View(1); return string(v), err },
			"encode": func() (any, error) { v, err := in.Encode(1); return string(v), err },
			"decode": func() (any, error) { return in.Decode(json.RawMessage("1")) },
		} {
			out.Reset()
			got, err := do()
			want := map[string]any{"init": 1, "apply": 2, "view": "3", "encode": "4", "decode": 5}[call]
			if (err != nil) != c.fails || !c.fails && got != want {
				t.Errorf("%s in %s: %v, %v", name, call, got, err)
			}
			if name == "an error" && !errors.Is(err, refused) {
				t.Errorf("%s in %s is %v", name, call, err)
			}
			if log := out.String(); (log != "") != (c.log != "") || !strings.Contains(log, c.log) || c.log != "" && !strings.Contains(log, `"call":"`+call+`"`) {
				t.Errorf("%s in %s: the log says %q", name, call, log)
			}
		}
	}
}
