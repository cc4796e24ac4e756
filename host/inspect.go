package host

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host/config"
	"github.com/foldhost/foldhost/host/discover"
	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/host/launch"
	"github.com/foldhost/foldhost/internal/conform"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/unit"
)

// InspectOptions say how to look at one plugin file.
type InspectOptions struct {
	// Config is what an operator says about it, under the name of the file; nil is nothing.
	Config *config.File
	// Preset is the preset whose config it gets; empty is its own config.
	Preset string
	// SocketDir is that of PluginOptions.
	SocketDir string
	// Logger gets what the plugin writes; nil discards.
	Logger *slog.Logger
}

// Inspection is what there is to know about a plugin file.
type Inspection struct {
	// Plugin has the facts of the file, and what it said about itself as far as it came. State is PluginStopped.
	Plugin
	// Format is what the file is, such as "linux/amd64".
	Format string
	// Protocol is the version that was negotiated, 0 when it did not get so far. Took is how long the start took.
	Protocol int
	Took     time.Duration

	// broke is why it was of no more use after it had come up; nil when it was until it was stopped.
	broke error
}

// Inspect starts a plugin apart from any host, asks it what it is, configures it, asks what it offers and whether it serves, and stops it. The error says why it would not
// start, usually a *launch.StartError, or why it did not stay up; the inspection then says how far it came. Of a preset it is also *UnknownPresetError or
// *NotInPresetError.
func Inspect(ctx context.Context, path string, o InspectOptions) (*Inspection, error) {
	in, err := inspect(ctx, path, o, nil)
	if err == nil {
		err = in.broke
	}
	return in, err
}

// inspect calls use while the plugin is up.
func inspect(ctx context.Context, path string, o InspectOptions, use func(*life.Life, *Inspection)) (*Inspection, error) {
	name := discover.Name(path)
	in := &Inspection{Plugin: Plugin{Name: name, Path: path, State: PluginStopped}}
	if abs, err := filepath.Abs(path); err == nil {
		in.Path = abs
	}
	settings := &config.File{}
	if o.Config != nil {
		settings = o.Config
	}
	spec := specOf(name, in.Path, settings.Plugins[name])
	if o.Preset != "" {
		var err error
		if spec.Config, spec.ConfigPlace, err = presetConfig(settings, o.Preset, name); err != nil {
			return in, err
		}
	}
	file, err := launch.Inspect(path)
	if err != nil {
		return in, &launch.StartError{Plugin: name, File: in.Path, Phase: launch.PhaseFile, Err: err, Hint: remedyOf(err)}
	}
	in.Format, in.Warnings = file.Format.String(), file.Warnings
	if sum, err := file.Sum(ctx); err == nil {
		in.Digest = hex.EncodeToString(sum[:])
	}
	file.Close()
	launcher, err := launch.New(launch.Options{Logger: quiet(o.Logger), SocketDir: o.SocketDir})
	if err != nil {
		return in, err
	}
	defer launcher.Close()
	began := time.Now()
	var broke atomic.Pointer[error]
	l, err := life.Start(ctx, life.By(launcher), spec, life.Options{Generation: 1, HostVersion: Version(), Described: in.describe,
		Broken: func(why error, _ bool) { broke.Store(&why) }})
	if err != nil {
		in.LastError = err.Error()
		return in, err
	}
	in.Took, in.Protocol, in.Pid = time.Since(began), l.Process.Version(), l.Process.Pid()
	in.offers(l)
	if use != nil {
		use(l, in)
	}
	if why := broke.Load(); why != nil {
		in.broke, in.LastError = *why, (*why).Error()
	}
	l.End(ctx, "it was only looked at")
	in.Tail = l.Process.Tail()
	return in, ctx.Err()
}

func remedyOf(err error) string {
	var f *launch.FileError
	if errors.As(err, &f) {
		return f.Remedy
	}
	return ""
}

// offers notes what a plugin registers, held against a registry of its own.
func (in *Inspection) offers(l *life.Life) {
	r := registry.New(registry.Options{})
	defer r.Close()
	for _, def := range l.First.Units {
		if _, err := r.Register(registry.Registrant{Plugin: in.Name}, def); err != nil {
			in.Refused = append(in.Refused, RefusedOffer{"unit", def.Key, err})
			continue
		}
		in.Units = append(in.Units, PluginUnit{Key: def.Key, StateVersion: def.StateVersion, Events: def.Events, StateSchema: def.StateSchema, ViewSchema: def.ViewSchema, ConfigBound: def.ConfigBound})
	}
	for i := range l.First.Tools {
		in.Tools = append(in.Tools, toolOf(&l.First.Tools[i]))
	}
	for _, refused := range l.First.Refused {
		in.Refused = append(in.Refused, RefusedOffer(refused))
	}
}

// Check is one question that Validate asks.
type Check struct {
	// Name is "file", "start", "describe", "configure", "register", "health", "offers" or "laws".
	Name string
	// State is "ok", "failed" or "skipped".
	State string
	// Detail says what was found; for a failure what is wrong and what to do.
	Detail string
}

// Report is what Validate found about one plugin.
type Report struct {
	*Inspection
	Checks []Check
	// Err is why it would not load; nil when it would.
	Err error
}

// OK says that nothing failed.
func (r *Report) OK() bool {
	for _, c := range r.Checks {
		if c.State == "failed" {
			return false
		}
	}
	return true
}

func (r *Report) add(name, state, format string, args ...any) {
	r.Checks = append(r.Checks, Check{name, state, fmt.Sprintf(format, args...)})
}

// phases are the checks up to a plugin that is up, in order.
var phases = []struct {
	name   string
	phases []launch.Phase
}{
	{"file", []launch.Phase{launch.PhaseFile}},
	{"start", []launch.Phase{launch.PhaseExec, launch.PhaseHandshake}},
	{"describe", []launch.Phase{launch.PhaseDescribe}},
	{"configure", []launch.Phase{launch.PhaseConfigure}},
	{"register", []launch.Phase{launch.PhaseRegister}},
	{"health", []launch.Phase{launch.PhaseHealth}},
}

// Validate says whether a plugin would load, and if not why: the file and its architecture, the start and the handshake, the description, the
// config, the registrations with their schemas, and the laws of each unit over the given events; nil is a short session of core types.
// Errors: *UnknownPresetError, *NotInPresetError, that of ctx.
func Validate(ctx context.Context, path string, o InspectOptions, events []event.Event) (*Report, error) {
	r := &Report{}
	over := fmt.Sprintf("%d events", len(events))
	if events == nil {
		events = conform.Sample()
		over = fmt.Sprintf("a sample of %d events", len(events))
	}
	var broken []conform.Violation
	var silent error
	laws := 0
	in, err := inspect(ctx, path, o, func(l *life.Life, in *Inspection) {
		var units []*unit.Compiled
		for _, def := range l.First.Units {
			if c, err := unit.Compile(def); err == nil {
				units = append(units, c)
			}
		}
		laws = len(units)
		broken, silent = conform.Check(ctx, l.Instance, units, events)
	})
	r.Inspection, r.Err = in, err
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if unknown := (*UnknownPresetError)(nil); errors.As(err, &unknown) {
		return r, unknown
	}
	if other := (*NotInPresetError)(nil); errors.As(err, &other) {
		return r, other
	}
	r.started(err)
	if err != nil {
		return r, nil
	}
	for _, refused := range in.Refused {
		r.add("offers", "failed", "%s", refused)
	}
	if len(in.Refused) == 0 {
		r.add("offers", "ok", "%s", offerings(in))
	}
	explained := map[string]bool{}
	for _, v := range broken {
		detail := v.Error()
		if why := conform.Explain(v.Law); why != "" && !explained[v.Law] {
			detail, explained[v.Law] = detail+" ("+v.Law+": "+why+")", true
		}
		r.add("laws", "failed", "%s", detail)
	}
	switch {
	case silent != nil:
		r.add("laws", "failed", "%v", silent)
	case in.broke != nil:
		r.add("laws", "failed", "it was gone at their end: %v", in.broke)
	case laws == 0:
		r.add("laws", "skipped", "it has no units")
	case len(broken) == 0:
		r.add("laws", "ok", "kept over %s", over)
	}
	return r, nil
}

// offerings names what a plugin offers.
func offerings(in *Inspection) string {
	var units, tools []string
	for _, u := range in.Units {
		units = append(units, u.Key)
	}
	for _, t := range in.Tools {
		tools = append(tools, t.Name)
	}
	text := "nothing for now"
	switch {
	case len(units) > 0 && len(tools) > 0:
		text = "units " + strings.Join(units, ", ") + "; tools " + strings.Join(tools, ", ")
	case len(units) > 0:
		text = "units " + strings.Join(units, ", ")
	case len(tools) > 0:
		text = "tools " + strings.Join(tools, ", ")
	}
	return text
}

// started notes how far a start came.
func (r *Report) started(err error) {
	failed := launch.Phase("")
	if err != nil {
		failed = launch.PhaseFile
		var start *launch.StartError
		if errors.As(err, &start) {
			failed = start.Phase
		}
	}
	stopped := false
	for _, p := range phases {
		switch hit := failed != "" && slices.Contains(p.phases, failed); {
		case stopped:
			r.add(p.name, "skipped", "it did not get so far")
		case hit:
			stopped = true
			r.add(p.name, "failed", "%v", err)
		case p.name == "file":
			r.add(p.name, "ok", "%s, sha256 %s", r.Format, r.Digest)
		case p.name == "start" && r.Protocol == 0: // A later step failed, and its error does not say what was negotiated.
			r.add(p.name, "ok", "it runs and speaks the protocol")
		case p.name == "start":
			r.add(p.name, "ok", "protocol version %d", r.Protocol)
		case p.name == "describe":
			r.add(p.name, "ok", "%s", described(r.Inspection))
		case p.name == "configure":
			r.add(p.name, "ok", "it takes its config")
		case p.name == "register":
			r.add(p.name, "ok", "it says what it offers, in time")
		default:
			r.add(p.name, "ok", "it says that it serves")
		}
	}
}

// described is what a plugin says of itself.
func described(in *Inspection) string {
	text := strings.TrimSpace(in.Title + " " + in.Version)
	if len(in.Events) == 0 {
		return text
	}
	var owned []string
	for _, e := range in.Events {
		owned = append(owned, e.Type)
	}
	return text + ", owns " + strings.Join(owned, ", ")
}
