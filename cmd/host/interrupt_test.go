package main

import (
	"testing"
	"time"
)

// Two interrupts in one instant are one that does not wait for long; a second one that somebody makes because nothing happens ends the program at once.
func TestHowLongAnEndHasAfterASecondInterrupt(t *testing.T) {
	first := time.Now()
	for after, want := range map[time.Duration]time.Duration{
		0:                          orderly,
		time.Millisecond:           orderly - time.Millisecond,
		orderly - time.Millisecond: time.Millisecond,
		orderly:                    0,
		time.Hour:                  0,
	} {
		if got := patience(first, first.Add(after)); got != want {
			t.Errorf("%v after the first it has %v, want %v", after, got, want)
		}
	}
}
