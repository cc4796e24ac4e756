package unit

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/foldhost/foldhost/event"
)

// DefaultMaxBytes is the default limit on one state or view: 1 MiB. A value goes out whole with every change, to every stream.
const DefaultMaxBytes = 1 << 20

// CheckView says whether a view is lossless JSON, within limit bytes (0 is DefaultMaxBytes) and true to its schema; the error is
// a *ValueError.
func (c *Compiled) CheckView(view json.RawMessage, limit int) error {
	_, err := c.AcceptView(view, limit)
	return err
}

// AcceptView is CheckView that also returns the view without white space outside strings, sharing nothing with what was given:
// the form in which values are compared and sent.
func (c *Compiled) AcceptView(view json.RawMessage, limit int) (json.RawMessage, error) {
	if c.view == nil {
		return nil, &ValueError{What: "view", Path: "$", Reason: "the unit is host-only; it has no view"}
	}
	return c.view.accept("view", view, limit)
}

// CheckState is CheckView for an encoded state.
func (c *Compiled) CheckState(state json.RawMessage, limit int) error {
	_, err := c.AcceptState(state, limit)
	return err
}

// AcceptState is AcceptView for an encoded state.
func (c *Compiled) AcceptState(state json.RawMessage, limit int) (json.RawMessage, error) {
	return c.state.accept("state", state, limit)
}

// ValueError is a state or view that is not what it must be.
type ValueError struct {
	// What is "state" or "view".
	What string
	// Path is the place in the value, such as "$.todos[2].status"; Reason is what is wrong there.
	Path, Reason string
	// Size and Limit are set when the value is too large.
	Size, Limit int
}

func (e *ValueError) Error() string {
	if e.Limit > 0 {
		return fmt.Sprintf("the %s is %d bytes; the limit is %d", e.What, e.Size, e.Limit)
	}
	return fmt.Sprintf("the %s is wrong at %s: %s", e.What, e.Path, e.Reason)
}

// accept checks the size first: a value that is too large is not worth reading.
func (s *schema) accept(what string, raw json.RawMessage, limit int) (json.RawMessage, error) {
	if limit <= 0 {
		limit = DefaultMaxBytes
	}
	if len(raw) > limit {
		return nil, &ValueError{What: what, Path: "$", Size: len(raw), Limit: limit, Reason: "too large"}
	}
	text, err := event.Compact(raw, "$")
	if err != nil {
		wrong := &ValueError{What: what, Path: "$", Reason: err.Error()}
		var at *event.Error
		if errors.As(err, &at) {
			wrong.Path, wrong.Reason = at.Path, at.Reason
		}
		return nil, wrong
	}
	if path, reason := s.mismatch(text); reason != "" {
		return nil, &ValueError{What: what, Path: path, Reason: reason}
	}
	return text, nil
}
