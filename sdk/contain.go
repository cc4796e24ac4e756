package sdk

import (
	"encoding/json"
	"errors"

	"github.com/hashicorp/go-hclog"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// contain turns panics of a fold into errors, and writes their stacks to the log: the error that goes to the host is for readers who
// did not write the fold.
func contain(in unit.Inline, logger hclog.Logger) unit.Inline {
	return contained{unit.Guard(in), logger}
}

type contained struct {
	fold   unit.Inline
	logger hclog.Logger
}

func (c contained) log(err error, more ...any) {
	if p := (*unit.PanicError)(nil); errors.As(err, &p) {
		c.logger.Error("the fold panicked", append([]any{"call", p.Call, "panic", p.Value, "stack", string(p.Stack)}, more...)...)
	}
}

func (c contained) Init() (unit.State, error) {
	s, err := c.fold.Init()
	if err != nil {
		c.log(err)
	}
	return s, err
}

func (c contained) Apply(s unit.State, ev *event.Event) (unit.State, bool, error) {
	next, changed, err := c.fold.Apply(s, ev)
	if err != nil {
		c.log(err, "type", ev.Type, "seq", ev.Seq)
	}
	return next, changed, err
}

func (c contained) View(s unit.State) (json.RawMessage, error) {
	view, err := c.fold.View(s)
	if err != nil {
		c.log(err)
	}
	return view, err
}

func (c contained) Encode(s unit.State) (json.RawMessage, error) {
	raw, err := c.fold.Encode(s)
	if err != nil {
		c.log(err)
	}
	return raw, err
}

func (c contained) Decode(raw json.RawMessage) (unit.State, error) {
	s, err := c.fold.Decode(raw)
	if err != nil {
		c.log(err)
	}
	return s, err
}
