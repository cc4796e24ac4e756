package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	jsonv1 "github.com/go-json-experiment/json/v1"
)

// Handlers are handlers by event type.
type Handlers[State any] map[string]Handler[State]

// Handler folds events of one type; On, OnEvent and OnRaw make them.
type Handler[State any] struct {
	// apply says changed where it knows; compare asks the caller to find out.
	apply   func(State, *Event) (next State, changed bool, err error)
	compare bool
}

// On is a handler that needs the payload alone: the data of the event, decoded as encoding/json does, but with keys matched exactly: a
// key in another case is another key, so that a field without a json tag is matched by its Go name alone. Keys that Payload does not
// know are ignored, because events grow. Data that does not decode, or is null where Payload cannot be nil, is a *PayloadError: a
// fault of this session's cell at this event. A handler that has nothing to change returns the state as it was given.
func On[State, Payload any](f func(State, Payload) State) Handler[State] {
	return OnEvent(func(s State, p Payload, _ *Event) (State, error) { return f(s, p), nil })
}

// OnEvent is On for a handler that needs the event as well, or that can fail. An error is a fault of this session's cell at this
// event; the session goes on, and this unit stands still in it until the plugin is replaced or somebody asks for another try.
func OnEvent[State, Payload any](f func(State, Payload, *Event) (State, error)) Handler[State] {
	nullable := canBeNil(reflect.TypeFor[Payload]())
	return Handler[State]{compare: true, apply: func(s State, ev *Event) (State, bool, error) {
		var p Payload
		if err := decodePayload(ev, &p, nullable); err != nil {
			return s, false, err
		}
		next, err := f(s, p, ev)
		return next, true, err
	}}
}

// OnRaw is for a handler that reads the data itself and says itself whether it has changed the state. Nothing is compared: it is
// for types of which a session has many and a unit wants few. Where changed is false, next is ignored.
func OnRaw[State any](f func(State, *Event) (next State, changed bool, err error)) Handler[State] {
	return Handler[State]{apply: f}
}

// PayloadError says that the data of an event is not what the handler of its type takes.
type PayloadError struct {
	Type string
	Seq  int64
	// Path is the place in the event, such as "$.data.todos[2].content".
	Path   string
	Reason string
	// Err is what the decoder or an UnmarshalJSON said; nil for null.
	Err error
}

func (e *PayloadError) Error() string {
	return fmt.Sprintf("the payload of %s at seq %d does not decode at %s: %s", e.Type, e.Seq, e.Path, e.Reason)
}

func (e *PayloadError) Unwrap() error { return e.Err }

func decodePayload(ev *Event, into any, nullable bool) error {
	wrong := func(path, reason string, err error) error {
		if len(reason) > maxReason {
			reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
		}
		return &PayloadError{Type: ev.Type, Seq: ev.Seq, Path: path, Reason: reason, Err: err}
	}
	if !nullable && bytes.Equal(ev.Data, null) {
		return wrong("$.data", "it is null", nil)
	}
	err := decode(ev.Data, into)
	if err == nil {
		return nil
	}
	path, reason := "$.data", err.Error()
	if t := (*jsonv1.UnmarshalTypeError)(nil); errors.As(err, &t) {
		path, reason = pathIn(ev.Data, t.Field, path), misfit(t)
	}
	return wrong(path, reason, err)
}

func misfit(t *jsonv1.UnmarshalTypeError) string {
	reason := fmt.Sprintf("a JSON %s does not fit %v", t.Value, t.Type)
	if t.Err != nil {
		reason += ": " + t.Err.Error()
	}
	return reason
}

// maxReason bounds what a PayloadError says: decoders quote what they cannot read, however long it is.
const maxReason = 300

var null = []byte("null")

func canBeNil(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return true
	}
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}
