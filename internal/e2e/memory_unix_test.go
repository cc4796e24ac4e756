//go:build unix

package e2e

import (
	"os"
	"runtime"
	"syscall"
)

// peakMemory is the largest resident set of a process that has ended.
func peakMemory(s *os.ProcessState) int64 {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(usage.Maxrss)
	}
	return int64(usage.Maxrss) << 10 // Elsewhere it is in KiB.
}
