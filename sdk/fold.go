package sdk

import (
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
	print fingerprinter
}

// state is a State and its fingerprint from before any handler saw it. So a handler that changes the old state in place and returns it
// has still changed the state, which comparing the two would not find.
type state[State any] struct {
	value State
	print uint64
}

func newFold[State, View any](d ProjectionDefinition[State, View]) *fold[State, View] {
	f := &fold[State, View]{init: d.Init, on: maps.Clone(d.On), onAny: d.OnAny, view: d.View, print: newFingerprinter(reflect.TypeFor[State]())}
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
	if !changed {
		return s, false, nil
	}
	next, err := f.box(value)
	if err != nil {
		return nil, false, fmt.Errorf("the state after %s at seq %d: %w", ev.Type, ev.Seq, err)
	}
	if h.compare && next.print == old.print {
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
	s := &state[State]{value: value}
	print, err := f.print.of(reflect.ValueOf(&s.value).Elem())
	if err != nil {
		return nil, err
	}
	s.print = print
	return s, nil
}
