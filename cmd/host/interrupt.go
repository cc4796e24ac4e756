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

// orderly is how long an end has, however often it is asked for, and how long it may take before a person is told how to have it at once: 2 s. Most take milliseconds, and a disk
// that is busy takes its time for the last sync. It is not shorter because many are asked for twice in one instant, and should end as if once: timeout tells a process and then its
// group, and a wrapper passes on what the terminal told everybody.
const orderly = 2 * time.Second

// untilInterrupted gives a context that the first interrupt ends, so that what runs cleans up after itself. The second one ends the process,
// whatever it waits for, once the end has had its time; plugin processes end with it, by their lifelines.
func untilInterrupted(stderr io.Writer) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	// Heard to the end and never given back to the system: it would lose one that comes meanwhile, and where the program was started
	// with interrupts ignored, as shells start what runs in the background, it would ignore them again. Two places, so that none is dropped.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		first := time.Now()
		cancel()
		slow := time.AfterFunc(orderly, func() { // On a goroutine of its own: stderr may be what everything waits for.
			render.Printf(stderr, "foldhost: what runs is being ended; interrupt it once more to end it at once\n")
		})
		<-signals
		slow.Stop()
		time.Sleep(patience(first, time.Now()))
		os.Exit(exitInterrupted)
	}()
	return ctx
}

// patience is how long an end that began with the first interrupt still has when the second comes.
func patience(first, second time.Time) time.Duration { return max(0, orderly-second.Sub(first)) }
