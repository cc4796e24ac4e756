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
	// State is the encoded state at the end; nil where the plugin's answers were none that a host takes, which Check tells.
	State json.RawMessage
	// Fault is the event at which the unit failed; Values and State are then those of the log before it. nil when it did not.
	Fault *unit.Fault
}

// Fold folds a log with one unit. Events are in seq order; those that it does not fold are left out, as a host does. The error says that
// the plugin did not answer, or ended with ctx.
func Fold(ctx context.Context, in unit.Instance, u *unit.Compiled, events []event.Event) (Outcome, error) {
	c := newChecker(ctx, in, u, events)
	whole, err := c.one(nil, -1, c.events, everyChange)
	if err != nil || whole.fault == nil {
		return Outcome{Values: whole.values, State: whole.state}, err
	}
	fault := whole.fault
	if fault.Seq < 0 {
		return Outcome{Fault: fault}, nil
	}
	// A cell that has failed gives no state, so the log before is folded once more.
	prior, err := c.one(nil, -1, before(c.events, fault.Seq), everyChange)
	return Outcome{Values: prior.values, State: prior.state, Fault: fault}, err
}
