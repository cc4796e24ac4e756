package unit

import (
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/foldhost/foldhost/event"
)

// maxPanicText bounds what a panic says for itself: the text goes into faults, frames and logs.
const maxPanicText = 512

// Guard returns the same fold with its panics turned into *PanicError. Guarding twice is guarding once. What Go cannot recover
// from (a concurrent map write, an exhausted stack) still ends the process.
func Guard(in Inline) Inline {
	if g, ok := in.(guarded); ok {
		return g
	}
	return guarded{in}
}

// PanicError is a panic of a unit's function.
type PanicError struct {
	// Call is "init", "apply", "view", "encode" or "decode".
	Call string
	// Value is what was given to panic, as text, cut to a readable length.
	Value string
	// Stack is where it came from. Error leaves it out.
	Stack []byte
}

func (e *PanicError) Error() string { return e.Call + " panicked: " + e.Value }

type guarded struct{ fold Inline }

func (g guarded) Init() (s State, err error) {
	defer recovered("init", &err)
	return g.fold.Init()
}

func (g guarded) Apply(s State, ev *event.Event) (next State, changed bool, err error) {
	defer recovered("apply", &err)
	return g.fold.Apply(s, ev)
}

func (g guarded) View(s State) (view json.RawMessage, err error) {
	defer recovered("view", &err)
	return g.fold.View(s)
}

func (g guarded) Encode(s State) (raw json.RawMessage, err error) {
	defer recovered("encode", &err)
	return g.fold.Encode(s)
}

func (g guarded) Decode(raw json.RawMessage) (s State, err error) {
	defer recovered("decode", &err)
	return g.fold.Decode(raw)
}

// recovered must be deferred directly: recover works nowhere else.
func recovered(call string, err *error) {
	v := recover()
	if v == nil {
		return
	}
	*err = &PanicError{Call: call, Value: shorten(fmt.Sprint(v), maxPanicText), Stack: debug.Stack()}
}
