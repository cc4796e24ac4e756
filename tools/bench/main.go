// Command bench measures what docs/performance.md claims and prints it as the tables that stand there. Measurements take turns over
// several rounds, and each counts with its fastest round: what else the machine does can only slow a round down. Ratios are
// of measurements of this one run. It is run in the root of the repository.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/term"

	"github.com/foldhost/foldhost/internal/bench"
)

// measurement is one thing measured, and the best that it gave.
type measurement struct {
	name string
	run  func(*testing.B)
	// unit is a metric that the measurement reports, empty for the time of an operation.
	unit string
	// once is for what takes long and is no time: it is measured in the first round alone.
	once bool
	// steady is for what a short round flatters: it runs four times as long. A store takes its log over every few thousand changes, which a round of 300 ms of appends in this process has hardly any of.
	steady bool

	best   float64
	allocs int64
	// extra are the least of all metrics that it reports.
	extra map[string]float64
}

// time is how long it runs in each round.
func (m *measurement) time(each string) string {
	if d, err := time.ParseDuration(each); err == nil && m.steady {
		return (4 * d).String()
	}
	return each
}

// claim is one line of the table.
type claim struct {
	text, target string
	value        func(m map[string]*measurement) (shown string, met bool)
}

func main() {
	if bench.Clients() {
		return
	}
	testing.Init()
	each := flag.String("benchtime", "300ms", "how long each measurement runs in each round: a time, or a number of times such as 1x")
	rounds := flag.Int("rounds", 5, "how many rounds")
	strict := flag.Bool("strict", false, "fail when a target is missed")
	flag.Parse()
	met, err := run(*rounds, *each)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || *strict && !met {
		os.Exit(1)
	}
}

func run(rounds int, benchtime string) (all bool, err error) {
	defer func() { err = errors.Join(err, bench.Clean()) }()
	list := slices.Concat(measurements(), storedMeasurements(), servedMeasurements())
	byName := map[string]*measurement{}
	for _, m := range list {
		m.best, m.extra = math.Inf(1), map[string]float64{}
		byName[m.name] = m
	}
	watched := term.IsTerminal(int(os.Stderr.Fd()))
	progress := func(round int, name string) {
		if watched {
			fmt.Fprintf(os.Stderr, "\rround %d of %d: %-28s", round+1, rounds, name)
		}
	}
	for round := range rounds {
		for _, m := range list {
			if m.once && round > 0 {
				continue
			}
			progress(round, m.name)
			runtime.GC()
			if err := flag.Set("test.benchtime", m.time(benchtime)); err != nil {
				return false, fmt.Errorf("-benchtime %q: %w", benchtime, err)
			}
			r := testing.Benchmark(m.run)
			if r.N == 0 {
				return false, fmt.Errorf("%s failed", m.name)
			}
			got := float64(r.T.Nanoseconds()) / float64(r.N)
			if m.unit != "" {
				got = r.Extra[m.unit]
			}
			m.best, m.allocs = min(m.best, got), r.AllocsPerOp()
			for unit, v := range r.Extra {
				if before, known := m.extra[unit]; !known || v < before {
					m.extra[unit] = v
				}
			}
		}
	}
	for _, p := range packages {
		if err := measurePackage(p, byName, rounds, benchtime, progress); err != nil {
			return false, err
		}
	}
	if watched {
		fmt.Fprintf(os.Stderr, "\r%60s\r", "")
	}
	fmt.Printf("%s, %s/%s, %d cores, best of %d rounds\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), rounds)
	all = table(claims(), byName)
	fmt.Print("\nThe store on disk:\n\n")
	all = table(storedClaims(), byName) && all
	fmt.Print("\nThe server:\n\n")
	all = table(servedClaims(), byName) && all
	fmt.Print("\nPlugin processes:\n\n")
	return table(processClaims(), byName) && all, nil
}

// table prints claims, and says whether all are met.
func table(claims []claim, byName map[string]*measurement) (all bool) {
	fmt.Println("| what | target | measured | |")
	fmt.Println("|---|---|---|---|")
	all = true
	for _, c := range claims {
		shown, met := c.value(byName)
		verdict := "met"
		switch {
		case c.target == "":
			verdict = ""
		case !met:
			verdict, all = "**missed**", false
		}
		fmt.Printf("| %s | %s | %s | %s |\n", c.text, c.target, shown, verdict)
	}
	return all
}

func measurements() []*measurement {
	const perEvent = "ns/event"
	return []*measurement{
		{name: "append, 0 units", run: bench.Append(0)},
		{name: "append, 1 unit", run: bench.Append(1)},
		{name: "append, 64 units", run: bench.Append(64)},
		{name: "append, 12 fold it", run: bench.AppendFolded(12)},
		{name: "snapshot, 1,000", run: bench.Snapshot(1_000)},
		{name: "snapshot, 100,000", run: bench.Snapshot(100_000)},
		{name: "acceptance", run: bench.Acceptance},
		{name: "surface, appends", run: bench.Surface(bench.Nowhere), unit: perEvent},
		{name: "surface, tail", run: bench.Surface(bench.Tail), unit: perEvent},
		{name: "surface, middle", run: bench.Surface(bench.Middle), unit: perEvent},
		{name: "surface, head", run: bench.Surface(bench.Head), unit: perEvent},
		{name: "build todos", run: bench.BuildTodos},
		{name: "build own", run: bench.BuildOwn},
		{name: "build everything", run: bench.BuildEverything},
		{name: "build typed", run: bench.BuildTyped},
		{name: "open", run: bench.Open},
		{name: "heap", run: bench.Heap, unit: "bytes/session"},
	}
}

func claims() []claim {
	return []claim{
		below("append of an event that no unit folds, no unit registered", "append, 0 units", 2*time.Microsecond),
		ratio("the same with 64 registered units, to the same with one", "append, 64 units", "append, 1 unit", 1.1),
		{"allocations of an append with 64 units, beyond those with one", "0", func(m map[string]*measurement) (string, bool) {
			more := m["append, 64 units"].allocs - m["append, 1 unit"].allocs
			return fmt.Sprintf("%d (of %d)", more, m["append, 64 units"].allocs), more <= 0
		}},
		below("append of an event that 12 units fold", "append, 12 fold it", 0),
		below("snapshot of 12 units, 1,000 events", "snapshot, 1,000", 10*time.Microsecond),
		below("snapshot of 12 units, 100,000 events", "snapshot, 100,000", 10*time.Microsecond),
		below("acceptance of a `todo/write` of ten items", "acceptance", 5*time.Microsecond),
		below("surface: 100,000 appends, each", "surface, appends", 50*time.Nanosecond),
		below("surface of 100,000 nodes: a replace of 50 every 100, at the tail, per event", "surface, tail", 200*time.Nanosecond),
		below("the same in the middle", "surface, middle", 200*time.Nanosecond),
		below("the same at the head", "surface, head", 200*time.Nanosecond),
		below("building a `todos` cell over 100,000 events, 1 % its own: starts of turns, lists of ten", "build todos", 0),
		ratio("the same, to a unit written with the SDK that folds everything, from the same store", "build todos", "build typed", 1.0/20),
		ratio("one counting fold over that 1 %, to the same fold over everything", "build own", "build everything", 1.0/20),
		below("the counting fold over everything: no decoding at all", "build everything", 0),
		below("opening a session of 100,000 events and reading its four values", "open", 0),
		{"heap of a live session of 100 events, its log and four cells included", "", func(m map[string]*measurement) (string, bool) {
			return fmt.Sprintf("%.1f KB", m["heap"].best/1000), true
		}},
	}
}

// below is a claim on a time; a limit of 0 claims nothing.
func below(text, name string, limit time.Duration) claim {
	target := ""
	if limit > 0 {
		target = "< " + show(float64(limit.Nanoseconds()))
	}
	return claim{text, target, func(m map[string]*measurement) (string, bool) {
		return show(m[name].best), m[name].best < float64(limit.Nanoseconds())
	}}
}

// ratio is a claim on how one measurement compares with another.
func ratio(text, name, to string, limit float64) claim {
	return claim{text, "≤ " + showRatio(limit), func(m map[string]*measurement) (string, bool) {
		got := m[name].best / m[to].best
		return showRatio(got), got <= limit
	}}
}

func showRatio(r float64) string {
	if r < 0.5 {
		return fmt.Sprintf("1/%.0f", 1/r)
	}
	return fmt.Sprintf("%.2f", r)
}

func show(ns float64) string {
	switch {
	case ns < 1000:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", ns), ".0") + " ns"
	case ns < 1e6:
		return strings.TrimSuffix(fmt.Sprintf("%.2f", ns/1e3), ".00") + " µs"
	default:
		return fmt.Sprintf("%.2f ms", ns/1e6)
	}
}
