package main

import (
	"fmt"

	"github.com/foldhost/foldhost/internal/bench"
)

func servedMeasurements() []*measurement {
	return []*measurement{
		{name: "served append, one", run: bench.ServedAppend(1, 0), unit: "p50-ns", steady: true},
		{name: "served append, now and then", run: bench.ServedAppend(1, bench.NowAndThen), unit: "p50-ns", steady: true},
		{name: "served append, 64", run: bench.ServedAppend(64, 0), steady: true},
		{name: "called append, one", run: bench.CalledAppend(1, 0), unit: "p50-ns", steady: true},
		{name: "called append, now and then", run: bench.CalledAppend(1, bench.NowAndThen), unit: "p50-ns", steady: true},
		{name: "called append, 64", run: bench.CalledAppend(64, 0), steady: true},
		{name: "bare append, one", run: bench.BareAppend(1), unit: "p50-ns", steady: true},
		{name: "barest append, one", run: bench.BarestAppend, unit: "p50-ns", steady: true},
		{name: "bare append, 64", run: bench.BareAppend(64), steady: true},
		{name: "served history", run: bench.ServedHistory, unit: "p50-ns"},
		{name: "fan-out", run: bench.FanOut(0), unit: "p50-ms"},
		{name: "fan-out, values", run: bench.FanOut(1), unit: "p50-ms"},
		{name: "fan-out, many", run: bench.FanOutMany, unit: "p50-ms"},
		{name: "fan-out, bare", run: bench.BareFanOut, unit: "p50-ms"},
		{name: "idle streams", run: bench.IdleStreams, unit: "bytes/stream", once: true},
		{name: "idle streams, bare", run: bench.BareIdleStreams, unit: "bytes/stream", once: true},
		{name: "no stalled stream", run: bench.BesideStalled(0), unit: "append-p99-ms"},
		{name: "one stalled stream", run: bench.BesideStalled(1), unit: "append-p99-ms"},
	}
}

// servedClaims are the lines of the table of the server.
func servedClaims() []claim {
	// to compares a metric of two measurements.
	to := func(text, name, than, metric string, limit float64, show func(float64) string) claim {
		return claim{text, "≤ " + showRatio(limit), func(m map[string]*measurement) (string, bool) {
			v, w := m[name].extra[metric], m[than].extra[metric]
			return fmt.Sprintf("%s (%s to %s)", showRatio(v/w), show(v), show(w)), v/w <= limit
		}}
	}
	ms := func(v float64) string { return fmt.Sprintf("%.1f ms", v) }
	below := func(text, name string, limit float64) claim {
		return claim{text, fmt.Sprintf("< %v ms", limit), func(m map[string]*measurement) (string, bool) {
			return ms(m[name].extra["p50-ms"]), m[name].extra["p50-ms"] < limit
		}}
	}
	return []claim{
		times("appends over HTTP from 64 connections to 64 sessions, to the same through the Go API", 0.5, "served append, 64", "called append, 64"),
		{"the same, to a bare handler of net/http that makes the same appends", "", func(m map[string]*measurement) (string, bool) {
			return fmt.Sprintf("%.2f times", m["bare append, 64"].best/m["served append, 64"].best), true
		}},
		to("one append after the other over HTTP, p50, to the same through the Go API", "served append, one", "called append, one", "p50-ns", 1.5, show),
		{"the same, to a bare handler that makes the same appends", "", func(m map[string]*measurement) (string, bool) {
			return showRatio(m["served append, one"].best / m["bare append, one"].best), true
		}},
		{"what one append after the other takes over TCP without HTTP, p50, to the same through the Go API", "", func(m map[string]*measurement) (string, bool) {
			return showRatio(m["barest append, one"].best / m["called append, one"].best), true
		}},
		to(fmt.Sprintf("one append every %s over HTTP, p50, to the same through the Go API", bench.NowAndThen), "served append, now and then", "called append, now and then", "p50-ns", 1.5, show),
		{"the last page of the history of a cold session of 100,000 events, with values, p50", "< 15 ms", func(m map[string]*measurement) (string, bool) {
			return show(m["served history"].best), m["served history"].best < 15e6
		}},
		below("1,000 streams of one session that gets 20 events a second: until an event has come to all, p50", "fan-out", 50),
		to("the same, to a bare handler that writes frames made before to as many", "fan-out", "fan-out, bare", "p50-ms", 1.3, ms),
		below("the same with a value that each event changes", "fan-out, values", 50),
		{"200 streams, each of the same 20 sessions, one of which gets 20 events a second: until an event has come to all, p50", "", func(m map[string]*measurement) (string, bool) {
			return ms(m["fan-out, many"].best), true
		}},
		to("memory of an idle stream, 5,000 of them, to that of a bare handler", "idle streams", "idle streams, bare", "bytes/stream", 1.5, func(v float64) string { return fmt.Sprintf("%.1f KiB", v/1024) }),
		to("50 streams at 1,000 events a second and one that reads nothing: an append, p99, to the same without that one", "one stalled stream", "no stalled stream", "append-p99-ms", 1.5, ms),
		to("the same: an event at a stream, p99", "one stalled stream", "no stalled stream", "stream-p99-ms", 1.5, ms),
		{"the same: by how much 3,000 events make the heap grow", "≤ 1 MiB", func(m map[string]*measurement) (string, bool) {
			v := m["one stalled stream"].extra["KiB"]
			return fmt.Sprintf("%.2f MiB", v/1024), v <= 1024
		}},
	}
}
