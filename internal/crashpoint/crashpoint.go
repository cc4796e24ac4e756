// Package crashpoint names the places between the steps of a change. Tests end a process at them; in every other program reaching one costs a comparison with nil.
package crashpoint

var at func(name string)

// Set has f called wherever a point is reached, with its name. It is for the beginning of a process, before anything runs that reaches one.
func Set(f func(name string)) { at = f }

// Reach says that a point is reached.
func Reach(name string) {
	if at != nil {
		at(name)
	}
}
