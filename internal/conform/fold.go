package conform

import (
	"context"
	"encoding/json"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// Outcome is what a unit made of a log.
type Outcome struct {
	// Values are the value of the empty log and then every change; none for a host-only unit.
	Values []unit.Value
	// State is the encoded state at the end.
	State json.RawMessage
	// Fault is the event at which the unit failed; Values and State are then those of the log before it. nil when it did not.
	Fault *unit.Fault
}

// Fold folds a log with one unit. Events are in seq order; those that it does not fold are left out, as a host does. The error says that
// the plugin did not answer, or ended with ctx.
func Fold(ctx context.Context, in unit.Instance, u *unit.Compiled, events []event.Event) (Outcome, error) {
	c := &checker{ctx: ctx, in: in, u: u}
	for i := range events {
		if u.Folds(events[i].Type) {
			c.events = append(c.events, events[i])
		}
	}
	whole, err := c.fold(nil, -1, c.events, unit.EveryChange)
	if err != nil || whole.fault == nil {
		return Outcome{Values: whole.values, State: whole.state}, err
	}
	fault := whole.fault
	n := 0
	for n < len(c.events) && c.events[n].Seq < fault.Seq {
		n++
	}
	if fault.Seq < 0 {
		return Outcome{Fault: fault}, nil
	}
	// A cell that has failed gives no state, so the log before is folded once more.
	before, err := c.fold(nil, -1, c.events[:n], unit.EveryChange)
	return Outcome{Values: before.values, State: before.state, Fault: fault}, err
}
