package session

import "runtime/debug"

// recoverAs is deferred around foreign code and turns its panic into a *PanicError.
func recoverAs(in string, err *error) {
	if v := recover(); v != nil {
		*err = &PanicError{In: in, Value: v, Stack: debug.Stack()}
	}
}
