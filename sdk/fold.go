package sdk

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/unit"
)

var errNoState = errors.New("the state is not one of this unit")

// fold is the unit.Inline of a projection. It is immutable.
type fold[State, View any] struct {
	init  func() State
	on    Handlers[State]
	onAny Handler[State]
	view  func(State) View
	// plain says that == tells states apart: nothing in them can be changed from outside.
	plain bool
}

// state is a State and, where == cannot compare it, the hash of its encoding from before any handler saw it. So a handler that
// changes the old state in place and returns it has still changed the state. The hash stands for the encoding because that
// would double the memory of a cell.
type state[State any] struct {
	value State
	sum   [sha256.Size]byte
}

func newFold[State, View any](d ProjectionDefinition[State, View]) *fold[State, View] {
	f := &fold[State, View]{init: d.Init, on: maps.Clone(d.On), onAny: d.OnAny, view: d.View, plain: isPlain(reflect.TypeFor[State]())}
	if f.init == nil {
		f.init = func() State { var zero State; return zero }
	}
	return f
}

func (f *fold[State, View]) Init() (unit.State, error) { return f.box(f.init()) }

func (f *fold[State, View]) Apply(s unit.State, ev *event.Event) (unit.State, bool, error) {
	h, ok := f.on[ev.Type]
	if !ok {
		h = f.onAny
	}
	if h.apply == nil {
		return s, false, nil
	}
	old, ok := s.(*state[State])
	if !ok {
		return nil, false, errNoState
	}
	value, changed, err := h.apply(old.value, ev)
	if err != nil {
		return nil, false, err
	}
	if !changed || f.plain && h.compare && any(value) == any(old.value) {
		return s, false, nil
	}
	next, err := f.box(value)
	if err != nil {
		return nil, false, fmt.Errorf("the state after %s at seq %d: %w", ev.Type, ev.Seq, err)
	}
	if h.compare && !f.plain && next.sum == old.sum {
		return s, false, nil
	}
	return next, true, nil
}

func (f *fold[State, View]) View(s unit.State) (json.RawMessage, error) {
	st, ok := s.(*state[State])
	if !ok {
		return nil, errNoState
	}
	return event.Encode(f.view(st.value))
}

func (f *fold[State, View]) Encode(s unit.State) (json.RawMessage, error) {
	st, ok := s.(*state[State])
	if !ok {
		return nil, errNoState
	}
	return event.Encode(st.value)
}

func (f *fold[State, View]) Decode(raw json.RawMessage) (unit.State, error) {
	var value State
	if err := decode(raw, &value); err != nil {
		return nil, fmt.Errorf("decode a stored state: %w", err)
	}
	return f.box(value)
}

func (f *fold[State, View]) box(value State) (*state[State], error) {
	if f.plain {
		return &state[State]{value: value}, nil
	}
	encoded, err := event.Encode(value)
	if err != nil {
		return nil, err
	}
	return &state[State]{value: value, sum: sha256.Sum256(encoded)}, nil
}

// isPlain says whether values of a type are compared in full by ==, and held in full by a copy. Types that write themselves are
// not taken for plain: what they write may depend on more.
func isPlain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return true
	case reflect.Array:
		return isPlain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !isPlain(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return false
}
