package sqlite

// crashPoint is called at named points between the steps of a change. Nil outside of tests, which end the process there.
var crashPoint func(name string)

func crash(name string) {
	if crashPoint != nil {
		crashPoint(name)
	}
}
