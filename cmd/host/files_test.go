package main

import (
	"math"
	"testing"
)

func TestConnectionsLeaveFilesToTheRest(t *testing.T) {
	for files, want := range map[uint64]int{0: 0, 4: 3, 256: 192, 1024: 768, 4096: 3072, 20_000: 18_976, 1 << 19: 1<<19 - 1024, math.MaxUint64: 1 << 20} {
		if got := connectionsOf(files); got != want {
			t.Errorf("with %d files there are %d connections, want %d", files, got, want)
		}
	}
}
