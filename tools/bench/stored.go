package main

import (
	"fmt"

	"github.com/foldhost/foldhost/internal/bench"
)

// Names of what the benchmarks of the store report.
const (
	engineOne  = "Append/engine,group=1 ns/op"
	storeOne   = "Append/store,sessions=1 ns/op"
	engineMany = "Append/engine,group=64 ns/op"
	storeMany  = "Append/store,sessions=64 ns/op"
)

var engineFigures = []string{engineOne, storeOne, engineMany, storeMany}

func storedMeasurements() []*measurement {
	return []*measurement{
		{name: "stored append, one", run: bench.StoredAppend(1, 1)},
		{name: "stored append, 64", run: bench.StoredAppend(64, 64)},
		{name: "stored append, 64 on one", run: bench.StoredAppend(1, 64)},
		{name: "cold, 10,000", run: bench.ColdValues(10_000, true)},
		{name: "cold, 100,000", run: bench.ColdValues(100_000, true)},
		{name: "cold, 1,000,000", run: bench.ColdValues(1_000_000, true)},
		{name: "cold, from zero", run: bench.ColdValues(100_000, false)},
		{name: "open to append", run: bench.OpenToAppend(1_000_000), unit: "p50-ms"},
		{name: "list page", run: bench.ListPage},
		{name: "stored heap", run: bench.StoredHeap, unit: "bytes/session", once: true},
		{name: "import", run: bench.Import, unit: "ns/event"},
		{name: "disk", run: bench.Import, unit: "disk/line", once: true},
		{name: "export", run: bench.Export, unit: "ns/event"},
	}
}

// storedClaims are the lines of the table of the store on disk.
func storedClaims() []claim {
	figure := func(text, target, name string, value func(v float64) (string, bool)) claim {
		return claim{text, target, func(m map[string]*measurement) (string, bool) { return value(m[name].best) }}
	}
	rate := func(text, target, name string, least float64) claim {
		return figure(text, target, name, func(ns float64) (string, bool) { return fmt.Sprintf("%.0f events/s", 1e9/ns), 1e9/ns >= least })
	}
	millis := func(text, name string, most float64) claim {
		return figure(text, fmt.Sprintf("< %v ms", most), name, func(ms float64) (string, bool) { return fmt.Sprintf("%.2f ms", ms), ms < most })
	}
	return []claim{
		ratio("one durable append after the other, to the engine alone", storeOne, engineOne, 1.2),
		times("64 appenders on 64 sessions, to the engine alone that commits the same rows in groups of 64", 0.8, storeMany, engineMany),
		rate("the same through sessions, with acceptance and observers", "", "stored append, 64", 0),
		times("64 appenders on one session, to 64 on 64", 0.5, "stored append, 64 on one", "stored append, 64"),
		below("one durable append through a session", "stored append, one", 0),
		below("the values of a cold session of 100,000 events, from fresh rows", "cold, 100,000", 0),
		ratio("the same, to a fold from zero", "cold, 100,000", "cold, from zero", 1.0/100),
		ratio("the same of 1,000,000 events, to one of 10,000", "cold, 1,000,000", "cold, 10,000", 1.2),
		millis("opening a cold session of 1,000,000 events and a durable append to it, median", "open to append", 10),
		{"a page of 50 of 100,000 sessions, with values", "< 20 ms", func(m map[string]*measurement) (string, bool) {
			return show(m["list page"].best), m["list page"].best < 20e6
		}},
		figure("heap of a live idle session of 100 events with four units", "≤ 6 KiB", "stored heap", func(v float64) (string, bool) {
			return fmt.Sprintf("%.1f KiB", v/1024), v <= 6*1024
		}),
		rate("import", "≥ 50,000 events/s", "import", 50_000),
		rate("export, packed", "≥ 50,000 events/s", "export", 50_000),
		figure("bytes on disk, to the lines of the log", "≤ 1", "disk", func(v float64) (string, bool) { return fmt.Sprintf("%.2f", v), v <= 1 }),
	}
}
