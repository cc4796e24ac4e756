package registry

import (
	"errors"
	"fmt"
)

// ErrReleased: the registration was released; there is nothing left to replace.
var ErrReleased = errors.New("the registration was released; register the unit again")

// ErrDetached: the session is not live in this registry any more. Open it again.
var ErrDetached = errors.New("the session was detached from the registry; open it again")

// ErrClosed: the registry was closed.
var ErrClosed = errors.New("the registry is closed")

// VersionConflictError: the key is registered at another stateVersion by somebody who still holds it.
type VersionConflictError struct {
	Key        string
	Have, Want int64
	// By holds the version that stands.
	By Registrant
}

func (e *VersionConflictError) Error() string {
	return fmt.Sprintf("key %q is registered at stateVersion %d by plugin %q and cannot be shared with stateVersion %d; upgrade both, or give the unit another key",
		e.Key, e.Have, e.By.Plugin, e.Want)
}

// UnknownKeyError: no registrant of the session's set offers the key.
type UnknownKeyError struct{ Key, Set string }

func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("no plugin of set %q offers the key %q", e.Set, e.Key)
}

// UnavailableError: the key has no state as of the cut.
type UnavailableError struct {
	Session, Key string
	Unavailable
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("key %q of session %s is %s, having reached seq %d: %s", e.Key, e.Session, e.Code, e.Seq, e.Message)
}
