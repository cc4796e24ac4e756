package session

import (
	"errors"
	"fmt"
)

// ErrClosed is returned by every touch of a session whose set was closed.
var ErrClosed = errors.New("session: the set is closed")

// ErrReentrant is what errors.Is finds in a [ReentrantError].
var ErrReentrant = errors.New("session: change from inside its own publication")

// ReentrantError refuses a change that was asked for with the context of a hook, an observer or a drive of the same session.
// The context stays marked after the call has returned: work that is to go on later needs a context of its own.
type ReentrantError struct{ ID string }

func (e *ReentrantError) Error() string {
	return fmt.Sprintf("session %q cannot be changed by its own hooks and observers: do it afterwards, with a context of its own", e.ID)
}

// Is says that it is [ErrReentrant].
func (e *ReentrantError) Is(target error) bool { return target == ErrReentrant }

// VetoError says that a pre-commit hook refused. Nothing was logged.
type VetoError struct {
	ID string
	// Err is what the hook returned, a *PanicError when it panicked.
	Err error
}

func (e *VetoError) Error() string {
	return fmt.Sprintf("session %q: a pre-commit hook refused: %v", e.ID, e.Err)
}

func (e *VetoError) Unwrap() error { return e.Err }

// PanicError is a panic of foreign code, caught where it was called.
type PanicError struct {
	// In names what was called: "hook", "observer", "drive".
	In    string
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic in %s: %v", e.In, e.Value) }

// ForkCode is the stable name of a reason why a fork was refused.
type ForkCode string

// The reasons why a fork is refused, in the order in which they are checked.
const (
	// ForkChildExists: the id for the child is taken.
	ForkChildExists ForkCode = "session-already-exists"
	// ForkSourceNotFound: there is no such source.
	ForkSourceNotFound ForkCode = "session-not-found"
	// ForkInvalidBoundary: the boundary is not the seq of an event of the source.
	ForkInvalidBoundary ForkCode = "invalid-boundary"
	// ForkOpenTurn: the prefix would end inside a turn.
	ForkOpenTurn ForkCode = "open-turn"
	// ForkUnavailable: no turn that has ended answers to the seq that was asked for.
	ForkUnavailable ForkCode = "fork-unavailable"
)

// ForkError says why a fork was refused. Nothing was created.
type ForkError struct {
	Code ForkCode
	// Session is the id that the code is about: the child for ForkChildExists, else the source.
	Session string
	Reason  string
	// Err is the cause where there is one, such as *eventlog.NotFoundError.
	Err error
}

func (e *ForkError) Error() string { return fmt.Sprintf("fork: %s: %s", e.Code, e.Reason) }

func (e *ForkError) Unwrap() error { return e.Err }
