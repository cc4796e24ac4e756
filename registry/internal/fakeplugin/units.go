package fakeplugin

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// Counter is a unit that counts the events of the types (none given: of every type). State and view are the number.
func Counter(key string, types ...string) unit.Definition {
	return define(key, `{"type":"integer","minimum":0}`, types, Fold{
		Initial: "0",
		On: func(state string, _ *event.Event) (string, error) {
			n, err := strconv.Atoi(state)
			return strconv.Itoa(n + 1), err
		},
	})
}

// Last is a unit that keeps the data of the last event of the types. State and view are that data, null at first.
func Last(key string, types ...string) unit.Definition {
	return define(key, `true`, types, Fold{
		Initial: "null",
		On:      func(_ string, ev *event.Event) (string, error) { return string(ev.Data), nil },
	})
}

// Chain is a unit whose view tells whether every event of its types was folded exactly once and in order: the number of
// events and a hash over their seqs, types and data.
func Chain(key string, types ...string) unit.Definition {
	return define(key, `{"type":"object","properties":{"n":{"type":"integer"},"h":{"type":"string"}},"required":["n","h"],"additionalProperties":false}`, types, Fold{
		Initial: `{"n":0,"h":""}`,
		On: func(state string, ev *event.Event) (string, error) {
			var s struct {
				N int    `json:"n"`
				H string `json:"h"`
			}
			if err := json.Unmarshal([]byte(state), &s); err != nil {
				return "", err
			}
			h := fnv.New64a()
			fmt.Fprintf(h, "%s\n%d\n%s\n%s", s.H, ev.Seq, ev.Type, ev.Data)
			return fmt.Sprintf(`{"n":%d,"h":"%x"}`, s.N+1, h.Sum64()), nil
		},
	})
}

// Constant is a unit that folds nothing, ever.
func Constant(key, view string) unit.Definition {
	d := define(key, `true`, []string{}, Fold{Initial: "null", Look: func(string) string { return view }})
	d.Events = []string{}
	return d
}

// HostOnly takes the view away from a definition.
func HostOnly(d unit.Definition) unit.Definition { d.ViewSchema = nil; return d }

// Version gives a definition another stateVersion.
func Version(d unit.Definition, v int64) unit.Definition { d.StateVersion = v; return d }

// Prefixed is Last with a view that shows who made it: {"by": prefix, "data": ...}.
func Prefixed(key, prefix string, types ...string) unit.Definition {
	d := Last(key, types...)
	f := d.Inline.(Fold)
	f.Look = func(state string) string { return `{"by":` + strconv.Quote(prefix) + `,"data":` + state + `}` }
	d.Inline = f
	return d
}

func define(key, schema string, types []string, f Fold) unit.Definition {
	var events []string
	if len(types) > 0 {
		events = types
	}
	d := unit.Definition{Key: key, StateVersion: 1, StateSchema: json.RawMessage(schema), ViewSchema: json.RawMessage(schema), Events: events, Inline: f}
	if f.Look != nil {
		d.ViewSchema = json.RawMessage(`true`)
	}
	return d
}

// Fold is an Inline whose state is JSON text. An event that leaves the text as it is leaves the state unchanged.
type Fold struct {
	Initial string
	On      func(state string, ev *event.Event) (string, error)
	// Look gives the view; nil is the state itself.
	Look func(state string) string
}

// Init implements unit.Inline.
func (f Fold) Init() (unit.State, error) { return f.Initial, nil }

// Apply implements unit.Inline.
func (f Fold) Apply(s unit.State, ev *event.Event) (unit.State, bool, error) {
	next, err := f.On(s.(string), ev)
	return next, err == nil && next != s.(string), err
}

// View implements unit.Inline.
func (f Fold) View(s unit.State) (json.RawMessage, error) {
	if f.Look != nil {
		return json.RawMessage(f.Look(s.(string))), nil
	}
	return json.RawMessage(s.(string)), nil
}

// Encode implements unit.Inline.
func (f Fold) Encode(s unit.State) (json.RawMessage, error) { return json.RawMessage(s.(string)), nil }

// Decode implements unit.Inline.
func (f Fold) Decode(raw json.RawMessage) (unit.State, error) { return string(raw), nil }
