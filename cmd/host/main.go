// Command foldhost serves sessions, replays recorded ones and converts logs. Flags, wiring and printing are here, and nothing else.
package main

import "os"

func main() {
	err := root().ExecuteContext(untilInterrupted(os.Stderr))
	if err != nil && !isReported(err) {
		complain(os.Stderr, err)
	}
	os.Exit(exitCode(err))
}
