//go:build unix

package main

import "syscall"

// openFiles is how many files this process may have open, 0 where that is not known. Go has raised it as far as it may be.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return uint64(limit.Cur)
}
