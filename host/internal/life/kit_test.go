package life_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/host/internal/life/lifetest"
	"github.com/foldhost/foldhost/host/launch"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a life under test, or the try to have one.
type rig struct {
	plugin  lifetest.Plugin
	process *lifetest.Process
	options life.Options
	spec    life.Spec
	*life.Life

	mu    sync.Mutex
	broke []error
	busy  bool
}

// start brings the rig's plugin up.
func (r *rig) start(ctx context.Context) (err error) {
	r.spec.Plugin, r.options.Generation = "p", 1
	r.options.Broken = func(why error, busy bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.broke, r.busy = append(r.broke, why), busy
	}
	r.Life, err = life.Start(ctx, func(_ context.Context, s launch.Spec) (life.Process, error) {
		r.process = lifetest.Start(&r.plugin, s)
		return r.process, nil
	}, r.spec, r.options)
	return err
}

// told is what Broken was told.
func (r *rig) told() (broke []error, busy bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broke, r.busy
}

// up is a plugin that is up, and ended with the test.
func up(t *testing.T, plugin lifetest.Plugin) *rig {
	t.Helper()
	r := &rig{plugin: plugin}
	if err := r.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.End(context.Background(), "the test is over") })
	return r
}

// submit hands in a batch of one event for cell 1, which it opens.
func (r *rig) submit() chan unit.Reply {
	got := make(chan unit.Reply, 2)
	b := unit.Batch{Open: []unit.Open{{Cell: 1, Key: "n", Seq: -1}}, Cells: []unit.CellID{1}, Events: []event.Event{{Type: "step", Data: json.RawMessage("1")}}}
	r.Instance.Submit(context.Background(), b, func(reply unit.Reply) { got <- reply })
	return got
}

// number is a unit that counts.
func number(key string) unit.Definition {
	schema := json.RawMessage(`{"type":"integer"}`)
	return unit.Definition{Key: key, StateVersion: 1, StateSchema: schema, ViewSchema: schema, Inline: counting{}}
}

type counting struct{}

func (counting) Init() (unit.State, error) { return 0, nil }
func (counting) Apply(s unit.State, _ *event.Event) (unit.State, bool, error) {
	return s.(int) + 1, true, nil
}
func (counting) View(s unit.State) (json.RawMessage, error)     { return fmt.Appendf(nil, "%d", s), nil }
func (counting) Encode(s unit.State) (json.RawMessage, error)   { return fmt.Appendf(nil, "%d", s), nil }
func (counting) Decode(raw json.RawMessage) (unit.State, error) { return 0, nil }

// tool is a tool with an argument schema that takes any object.
func tool(name string, change ...func(*pluginproto.Tool)) *pluginproto.Tool {
	m := &pluginproto.Tool{Name: name, Description: "for tests", ArgumentSchema: []byte(`{"type":"object"}`)}
	for _, c := range change {
		c(m)
	}
	return m
}
