// Package countunit is a unit for tests: it counts events.
package countunit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

// Inline counts the events that it is given. It fails at those whose type begins with "break", and panics at those whose type begins with "panic". It has no state of its own.
type Inline struct{}

// Init implements unit.Inline, as do the others.
func (Inline) Init() (unit.State, error) { return 0, nil }

// Apply counts one more.
func (Inline) Apply(s unit.State, ev *event.Event) (unit.State, bool, error) {
	switch {
	case strings.HasPrefix(ev.Type, "break"):
		return nil, false, errors.New("it broke")
	case strings.HasPrefix(ev.Type, "panic"):
		panic("it panicked")
	}
	return s.(int) + 1, true, nil
}

// View gives the count.
func (Inline) View(s unit.State) (json.RawMessage, error) { return fmt.Appendf(nil, "%d", s), nil }

// Encode gives the count.
func (Inline) Encode(s unit.State) (json.RawMessage, error) { return fmt.Appendf(nil, "%d", s), nil }

// Decode reads a count.
func (Inline) Decode(raw json.RawMessage) (unit.State, error) {
	n, ok := event.Integer(raw)
	if !ok {
		return nil, fmt.Errorf("%s is not a count", raw)
	}
	return int(n), nil
}
