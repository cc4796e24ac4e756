package api

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"slices"
	"strings"
	"time"
)

// Profiles are served by hand: net/http/pprof serves them to everybody who reaches the default mux of the program, as soon as it is imported.

// What a profile over time takes when nobody says how long, and at most. A trace of a busy server has some megabytes a second.
const (
	defaultProfile = 30
	defaultTrace   = 1
	maxProfile     = 300
	maxTrace       = 30
)

// octets is what pprof and trace read.
const octets = "application/octet-stream"

// listProfiles names what can be had, a line each.
func (c *call) listProfiles() error {
	if q := c.query(); q.err != nil {
		return q.err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "profile\ta profile of the CPU over ?seconds=%d\ntrace\ta trace of execution over ?seconds=%d\n", defaultProfile, defaultTrace)
	profiles := pprof.Profiles()
	slices.SortFunc(profiles, func(a, b *pprof.Profile) int { return strings.Compare(a.Name(), b.Name()) })
	for _, p := range profiles {
		fmt.Fprintf(&out, "%s\t%d entries; ?debug=1 is text\n", p.Name(), p.Count())
	}
	c.begin(http.StatusOK, "text/plain; charset=utf-8")
	c.write(out.Bytes())
	return nil
}

// profile answers with one of them.
func (c *call) profile() error {
	name := c.r.PathValue("profile")
	switch name {
	case "profile":
		return c.over(defaultProfile, maxProfile, pprof.StartCPUProfile, pprof.StopCPUProfile)
	case "trace":
		return c.over(defaultTrace, maxTrace, trace.Start, trace.Stop)
	}
	q := c.query("debug", "gc")
	debug, collect := q.integer("debug", 0, 0, 2), q.integer("gc", 0, 0, 1) > 0
	if q.err != nil {
		return q.err
	}
	p := pprof.Lookup(name)
	if p == nil {
		return &Problem{Status: http.StatusNotFound, Code: CodeNotFound, Detail: fmt.Sprintf("there is no profile %q: /debug/pprof lists those that there are", name)}
	}
	kind := octets
	if debug > 0 {
		kind = "text/plain; charset=utf-8"
	}
	if collect && name == "heap" {
		runtime.GC()
	}
	// As a whole before it is sent: some profiles are written while the world stands still.
	var out bytes.Buffer
	if err := p.WriteTo(&out, int(debug)); err != nil {
		return err
	}
	c.begin(http.StatusOK, kind)
	c.write(out.Bytes())
	return nil
}

// over answers with what is recorded over some time, or until the caller leaves or the server stops. There is one of a kind at a time.
func (c *call) over(otherwise, most int64, start func(io.Writer) error, stop func()) error {
	q := c.query("seconds")
	seconds := q.integer("seconds", otherwise, 1, most)
	if q.err != nil {
		return q.err
	}
	if c.api.stopping() {
		return stopping()
	}
	if c.r.Method == http.MethodHead {
		c.begin(http.StatusOK, octets)
		return nil
	}
	var out bytes.Buffer
	if err := start(&out); err != nil {
		return &Problem{Status: http.StatusServiceUnavailable, Code: CodeOverloaded, Detail: "somebody else is recording one already: try again when that has ended"}
	}
	timer := time.NewTimer(time.Duration(seconds) * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.api.stopped:
	case <-c.r.Context().Done():
	}
	stop()
	c.begin(http.StatusOK, octets)
	c.write(out.Bytes())
	return nil
}
