// Command foldhost replays recorded sessions and converts logs. Flags, wiring and printing are here, and nothing else.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal cancels what runs, which cleans up after itself; a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	err := root().ExecuteContext(ctx)
	code := exitCode(err)
	if err != nil && !isReported(err) {
		fmt.Fprintln(os.Stderr, "foldhost:", describe(err))
	}
	stop()
	os.Exit(code)
}
