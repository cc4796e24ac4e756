package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/internal/conform"
	"github.com/foldhost/foldhost/unit"
)

// Trial is a plugin that was started apart from any session, to be tried: its units fold what they are given, whatever the shape of the
// events, and its tools are called with what they are given. Safe for concurrent use. Close it.
type Trial struct {
	// Inspection is what there is to know about the plugin.
	Inspection *Inspection
	life       *life.Life
	done       chan struct{}
	close      sync.Once
	ended      chan error
}

// Try starts a plugin as Inspect does, and leaves it up until Close or the end of ctx. The error is that of Inspect.
func Try(ctx context.Context, path string, o InspectOptions) (*Trial, error) {
	t := &Trial{done: make(chan struct{}), ended: make(chan error, 1)}
	up := make(chan struct{})
	go func() {
		in, err := inspect(ctx, path, o, func(l *life.Life, in *Inspection) {
			t.Inspection, t.life = in, l
			close(up)
			select {
			case <-t.done:
			case <-ctx.Done():
			}
		})
		if t.life == nil {
			t.Inspection = in
		}
		t.ended <- err
	}()
	select {
	case <-up:
		return t, nil
	case err := <-t.ended:
		return nil, err
	}
}

// Close stops the plugin and waits for it. More than once is harmless.
func (t *Trial) Close() {
	t.close.Do(func() {
		close(t.done)
		<-t.ended
	})
}

// Tail is the end of what the plugin wrote to stderr, at most 64 KiB.
func (t *Trial) Tail() string { return t.life.Process.Tail() }

// Folded is what a unit made of a log.
type Folded struct {
	// Values are the value of the empty log and then every change; none for a host-only unit.
	Values []unit.Value
	State  json.RawMessage
	// Fault is where the unit failed; Values and State are then those of the log before it.
	Fault *unit.Fault
	// Broken are the laws of the contract that it broke over this log.
	Broken []BrokenLaw
}

// BrokenLaw is a law of the contract that a unit breaks at an event; Seq is −1 for the empty log.
type BrokenLaw struct {
	Law    string
	Seq    int64
	Reason string
}

// UnknownUnitError: the plugin does not offer such a unit, or it was refused.
type UnknownUnitError struct{ Plugin, Key string }

func (e *UnknownUnitError) Error() string {
	return fmt.Sprintf("plugin %q offers no unit %q", e.Plugin, e.Key)
}

// Fold folds a log with one unit and holds it against the laws. Errors: *UnknownUnitError, or why the plugin did not answer.
func (t *Trial) Fold(ctx context.Context, key string, events []event.Event) (*Folded, error) {
	var u *unit.Compiled
	for _, def := range t.life.First.Units {
		if def.Key == key {
			var err error
			if u, err = unit.Compile(def); err != nil {
				return nil, err
			}
		}
	}
	if u == nil {
		return nil, &UnknownUnitError{t.Inspection.Name, key}
	}
	o, err := conform.Fold(ctx, t.life.Instance, u, events)
	if err != nil {
		return nil, err
	}
	f := &Folded{Values: o.Values, State: o.State, Fault: o.Fault}
	broken, err := conform.Check(ctx, t.life.Instance, []*unit.Compiled{u}, events)
	for _, v := range broken {
		f.Broken = append(f.Broken, BrokenLaw{v.Law, v.Seq, v.Reason})
	}
	return f, err
}

// ErrNoTool: the plugin offers no tool of this name, or it was refused.
var ErrNoTool = errors.New("the plugin offers no such tool")

// CallTool calls a tool, with the values that it is to see. An error is what a model would be told, or why the plugin did not answer.
func (t *Trial) CallTool(ctx context.Context, name string, call unit.ToolCall) (unit.ToolResult, error) {
	for i := range t.life.First.Tools {
		if tool := &t.life.First.Tools[i]; tool.Name == name {
			if wrong := tool.Arguments.Check(call.Arguments); len(wrong) > 0 {
				return unit.ToolResult{}, fmt.Errorf("the arguments are wrong: %v", wrong[0])
			}
			return tool.Call(ctx, call)
		}
	}
	return unit.ToolResult{}, fmt.Errorf("%w: %q", ErrNoTool, name)
}
