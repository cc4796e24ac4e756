package main

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// benchmarks are some of a package that docs/performance.md has figures of, and that need the kit of the package's tests: they are run as its tests are.
type benchmarks struct {
	dir, pattern string
	// figures are those that they report.
	figures []string
}

// packages have such benchmarks: those of host start real plugin processes, those of the store compare it with the engine alone.
var packages = []benchmarks{
	{"./eventlog/sqlite", "^BenchmarkAppend$/^(engine|store),(group|sessions)=", engineFigures},
	{"./host", "^Benchmark(Fold|Notification|StartStop|Idle)$", processFigures},
}

// measurePackage runs the benchmarks once each round and adds what each reported to m, by the benchmark's name and the unit.
func measurePackage(p benchmarks, m map[string]*measurement, rounds int, benchtime string, progress func(round int, name string)) error {
	dir, err := os.MkdirTemp("", "foldhost-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "bench.test.exe") // Windows wants the ending; the others do not mind.
	if out, err := exec.Command("go", "test", "-c", "-o", program, p.dir).CombinedOutput(); err != nil {
		return fmt.Errorf("building the benchmarks of %s: %w\n%s", p.dir, err, out)
	}
	for round := range rounds {
		progress(round, p.dir)
		cmd := exec.Command(program, "-test.run", "^$", "-test.bench", p.pattern, "-test.benchtime", benchtime)
		cmd.Dir = p.dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("running the benchmarks of %s: %w\n%s", p.dir, err, out)
		}
		takeReports(m, out)
	}
	return p.missing(m, runtime.GOOS)
}

// missing says which figure did not come: its benchmark has another name now.
func (p *benchmarks) missing(m map[string]*measurement, system string) error {
	for _, name := range p.figures {
		if m[name] == nil && (system == "linux" || !strings.HasPrefix(name, "Idle ")) {
			return fmt.Errorf("the benchmarks of %s did not report %q", p.dir, name)
		}
	}
	return nil
}

// benchLine is "BenchmarkName/case-2   10   123 ns/op   4.5 events/s"; the last number of the name is that of the cores.
var benchLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

// takeReports keeps the least of each figure that a run printed.
func takeReports(m map[string]*measurement, out []byte) {
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		parts := benchLine.FindStringSubmatch(lines.Text())
		if parts == nil {
			continue
		}
		pairs := strings.Fields(parts[2])
		for i := 0; i+1 < len(pairs); i += 2 {
			v, err := strconv.ParseFloat(pairs[i], 64)
			if err != nil {
				break
			}
			name := parts[1] + " " + pairs[i+1]
			if m[name] == nil {
				m[name] = &measurement{name: name, best: math.Inf(1)}
			}
			m[name].best = min(m[name].best, v)
		}
	}
}

// Names of what the benchmarks report.
const (
	foldLast   = "Fold/last_only ns/event"
	foldFew    = "Fold/last_only,_5_%_of_the_log ns/event"
	foldEvery  = "Fold/every_change ns/event"
	foldBare   = "Fold/bare_stream,_100_events_a_message ns/event"
	foldUnary  = "Fold/a_unary_call_for_each_event ns/event"
	notified   = "Notification p50-µs"
	unaryTrip  = "Notification unary-p50-µs"
	tenUp      = "StartStop/10 up-ms"
	fiftyUp    = "StartStop/50 up-ms"
	tenDown    = "StartStop/10 down-ms"
	goroutines = "StartStop/50 goroutines/plugin"
	hostHeap   = "StartStop/50 KiB/plugin"
	descriptor = "Idle descriptors/plugin"
	resident   = "Idle MiB/process"
	cellBytes  = "Idle B/cell"
)

var processFigures = []string{foldLast, foldFew, foldEvery, foldBare, foldUnary, notified, unaryTrip, tenUp, fiftyUp, tenDown, goroutines, hostHeap, descriptor, resident, cellBytes}

// processClaims are the lines of the second table.
func processClaims() []claim {
	figure := func(text string, show func(v ...float64) string, names ...string) claim {
		return reported(text, "", names, func(v ...float64) (string, bool) { return show(v...), true })
	}
	event := func(v ...float64) string { return show(v[0]) + " an event" }
	within := func(text string, limit time.Duration, name string) claim {
		return reported(text, fmt.Sprintf("≤ %v s", limit.Seconds()), []string{name}, func(v ...float64) (string, bool) {
			return fmt.Sprintf("%.2f s", v[0]/1000), v[0] <= float64(limit.Milliseconds())
		})
	}
	return []claim{
		figure("100,000 events through one process that folds each, last value only", event, foldLast),
		times("the same, to one unary call for each event", 20, foldLast, foldUnary),
		times("the same, to a bare gRPC stream with 100 events a message that are only decoded", 0.5, foldLast, foldBare),
		figure("the same with every change wanted", event, foldEvery),
		times("a log of which 5 % is folded, to one of which all is", 5, foldFew, foldLast),
		reported("append to change notification through a process, p50, to a unary round trip", "≤ 2", []string{notified, unaryTrip}, func(v ...float64) (string, bool) {
			return fmt.Sprintf("%.2f (%.0f µs to %.0f µs)", v[0]/v[1], v[0], v[1]), v[0]/v[1] <= 2
		}),
		within("ten plugins up", 500*time.Millisecond, tenUp),
		within("fifty plugins up", 1500*time.Millisecond, fiftyUp),
		within("ten plugins stopped", 500*time.Millisecond, tenDown),
		figure("an idle plugin, in the host", func(v ...float64) string {
			return fmt.Sprintf("%.0f goroutines, %.0f descriptors, %.0f KiB of heap", v[0], v[1], v[2])
		}, goroutines, descriptor, hostHeap),
		figure("an idle plugin, its process", func(v ...float64) string { return fmt.Sprintf("%.0f MiB resident", v[0]) }, resident),
		figure("a cell of one integer, in the plugin", func(v ...float64) string { return fmt.Sprintf("%.1f KB", v[0]/1000) }, cellBytes),
	}
}

// times says how many events of the first one go through in the time of one of the second.
func times(text string, least float64, name, than string) claim {
	return reported(text, fmt.Sprintf("≥ %v times the events", least), []string{name, than}, func(v ...float64) (string, bool) {
		return fmt.Sprintf("%.3g times", v[1]/v[0]), v[1]/v[0] >= least
	})
}

// reported is a claim on figures that benchmarks reported. Those that only Linux has are missed by nobody elsewhere.
func reported(text, target string, names []string, value func(v ...float64) (string, bool)) claim {
	return claim{text, target, func(m map[string]*measurement) (string, bool) {
		var v []float64
		for _, name := range names {
			if m[name] == nil {
				return "not measured here", true
			}
			v = append(v, m[name].best)
		}
		return value(v...)
	}}
}
