package sqlite

import (
	"fmt"
	"log/slog"

	"github.com/ncruces/go-sqlite3/vfs"
)

// Options of a store. The zero Options are right for most.
type Options struct {
	// Durability is Full unless set.
	Durability Durability
	// Readers is how many reads go on at once, 4 unless set. Each is a connection of its own, with some megabytes of cache.
	Readers int
	// Logger hears of what is repaired or put off: unclean starts, changes that cannot be taken over yet. Nil is nobody.
	Logger *slog.Logger

	// base is where files are; tests put a disk there that fails.
	base vfs.VFSFilename
	// walPages is after how many pages the WAL is taken over.
	walPages int
	// backupSlice is how many pages are copied between two commits.
	backupSlice int
	// dropSlice is how many rows are dropped between two commits.
	dropSlice int
}

// Durability says what has happened when an append returns.
type Durability int

const (
	// Full: it is on disk.
	Full Durability = iota
	// Relaxed: it survives the death of this process. Power loss may take the last moments.
	Relaxed
)

// String gives the name as flags and the database spell it.
func (d Durability) String() string {
	if d == Relaxed {
		return "relaxed"
	}
	return "full"
}

// ParseDurability reads a name that String gives.
func ParseDurability(name string) (Durability, error) {
	switch name {
	case "full":
		return Full, nil
	case "relaxed":
		return Relaxed, nil
	}
	return Full, fmt.Errorf("durability %q is unknown: it is full or relaxed", name)
}

func (o Options) withDefaults() Options {
	if o.Readers <= 0 {
		// 4: reads are short, and more would mostly wait for each other's pages.
		o.Readers = 4
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.walPages <= 0 {
		o.walPages = walPages
	}
	if o.backupSlice <= 0 {
		o.backupSlice = backupSlice
	}
	if o.dropSlice <= 0 {
		o.dropSlice = sweepSlice
	}
	if o.base == nil {
		o.base = vfs.Find("os").(vfs.VFSFilename)
	}
	return o
}
