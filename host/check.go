package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/foldhost/foldhost/eventlog"
)

// SessionProblemCode is the kind of a SessionProblem.
type SessionProblemCode string

// The problems that a stored session can have beyond what its store sees.
const (
	// WrongSurface: an event stands in the log that acceptance would have refused, or the stored surface is not what the log gives.
	WrongSurface SessionProblemCode = "wrong-surface"
	// WrongValue: what is served or cached of a key is not what a fold from zero gives.
	WrongValue SessionProblemCode = "wrong-value"
	// Unverified: a key could not be compared.
	Unverified SessionProblemCode = "unverified"
)

// SessionProblem is one thing that is wrong with a stored session. Seq is the event, Key the unit, empty where it is not about one.
type SessionProblem struct {
	Code   SessionProblemCode
	ID     string
	Key    string
	Seq    int64
	Detail string
}

// CheckSessions folds every stored session from zero, live or not and without making any live, and compares what is kept of it: surfaces, and with values also rows and values of units.
// found is called with each problem, progress after each session; both may be nil. Sessions that come meanwhile may be left out. Errors: the store's, the context's.
func (h *Host) CheckSessions(ctx context.Context, values bool, found func(SessionProblem), progress func(done int64)) error {
	if found == nil {
		found = func(SessionProblem) {}
	}
	done := int64(0)
	for q := (eventlog.ListQuery{}); ; {
		page, err := h.sessions.List(ctx, q)
		if err != nil {
			return err
		}
		for _, info := range page.Logs {
			if err := h.checkSession(ctx, info.Header.ID, values, found); err != nil {
				return err
			}
			if done++; progress != nil {
				progress(done)
			}
		}
		if q.Cursor = page.Cursor; q.Cursor == "" {
			return nil
		}
	}
}

func (h *Host) checkSession(ctx context.Context, id string, values bool, found func(SessionProblem)) error {
	err := h.sessions.Check(ctx, id)
	var corrupt *eventlog.CorruptError
	if errors.As(err, &corrupt) {
		found(SessionProblem{Code: WrongSurface, ID: id, Seq: corrupt.Seq, Detail: corrupt.Reason})
		return nil // its values would only say the same
	}
	if err == nil && values {
		err = h.checkValues(ctx, id, found)
	}
	var gone *eventlog.NotFoundError
	if errors.As(err, &gone) { // deleted since the page was read
		return nil
	}
	return err
}

func (h *Host) checkValues(ctx context.Context, id string, found func(SessionProblem)) error {
	report, err := h.VerifyValues(ctx, id)
	if err != nil {
		return err
	}
	for _, d := range report.Differences {
		found(SessionProblem{Code: WrongValue, ID: id, Key: d.Key, Seq: d.Seq, Detail: fmt.Sprintf("%s: the %s is not what a fold from zero gives", d.Key, d.What)})
	}
	for key, u := range report.Unavailable {
		found(SessionProblem{Code: Unverified, ID: id, Key: key, Seq: u.Seq, Detail: fmt.Sprintf("%s could not be compared: %s", key, u.Message)})
	}
	return nil
}
