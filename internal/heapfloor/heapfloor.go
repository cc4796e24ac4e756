// Package heapfloor keeps a server whose heap is small from collecting garbage all the time.
package heapfloor

import (
	"os"
	"runtime"
)

// Bytes is how much is allocated between two collections at least: 64 MiB. With a live heap of a few MiB, as a host of some hundred sessions has, the collector runs each time that as much again was
// allocated, which under load is dozens of times a second: it cost a sixth of the appends over HTTP that two cores manage. It is a bound and no factor, so a host with much in memory takes no more
// than before.
const Bytes = 64 << 20

// Set sets the floor until release is called. It is an allocation that nobody touches, so that it takes addresses and no memory. Where the environment says how to collect, that holds.
func Set() (release func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	floor := make([]byte, Bytes)
	return func() { runtime.KeepAlive(floor) }
}
