// Command foldhost replays recorded sessions and converts logs. Flags, wiring and printing are here, and nothing else.
package main

import (
	"fmt"
	"os"
)

func main() {
	err := root().ExecuteContext(untilInterrupted(os.Stderr))
	if err != nil && !isReported(err) {
		fmt.Fprintln(os.Stderr, "foldhost:", describe(err))
	}
	os.Exit(exitCode(err))
}
