package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/foldhost/foldhost/cmd/host/internal/render"
)

// slowEnd is how long an end may take before a person is told how to have it at once: most take milliseconds.
const slowEnd = time.Second

// untilInterrupted gives a context that the first interrupt ends, so that what runs cleans up after itself. The second one ends the process,
// whatever it waits for; plugin processes end with it, by their lifelines.
func untilInterrupted(stderr io.Writer) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	// Heard to the end and never given back to the system: it would lose one that comes meanwhile, and where the program was started
	// with interrupts ignored, as shells start what runs in the background, it would ignore them again. Two places, so that none is dropped.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		slow := time.AfterFunc(slowEnd, func() { // On a goroutine of its own: stderr may be what everything waits for.
			render.Printf(stderr, "foldhost: what runs is being ended; interrupt it once more to end it at once\n")
		})
		<-signals
		slow.Stop()
		os.Exit(exitInterrupted)
	}()
	return ctx
}
