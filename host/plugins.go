package host

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foldhost/foldhost/host/config"
	"github.com/foldhost/foldhost/host/discover"
	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/host/internal/supervise"
	"github.com/foldhost/foldhost/host/launch"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/session"
)

// PluginOptions say which plugin processes a host keeps up. The zero value is the default directory without any configuration.
type PluginOptions struct {
	// Dir is where plugins lie; empty is what the config says, or ./plugins. A directory that somebody named must be there.
	Dir string
	// Config is what an operator says; nil is nothing.
	Config *config.File
	// SocketDir is where sockets lie while plugins start; empty picks one.
	SocketDir string
	// CacheDir keeps what plugins say about themselves, by the digest of their files, so that their event types are guarded from the first moment of
	// the next start and also while a plugin does not come up. Empty keeps nothing beyond this host.
	CacheDir string
	// HealthEvery is how often each process is asked whether it serves; 0 is 10 s.
	HealthEvery time.Duration

	// frank is life.Spec.Frank of all of them.
	frank bool
}

// plugins are the plugin processes of one host and what is known of them all together.
//
// The list of plugins does not change once the host is open. mu orders the making of the tables, which are immutable and swapped
// whole, so that an append and a call read them without a lock.
type plugins struct {
	logger   *slog.Logger
	launcher *launch.Launcher
	// list are the instances by name; of one plugin that of the default set comes first.
	list []*instance
	// idle are plugins of the default set that are listed and not started.
	idle []Plugin
	// presets are those of the configuration; nil where there is none.
	presets map[string]*preset
	passed  []discover.Passed
	// warnings are what an operator should change, by plugin.
	warnings map[string][]string
	removed  func()

	mu sync.Mutex
	// resident are the plugins that run in this process, in the order in which they came. Guarded by mu.
	resident []supervise.Status
	// told are the presets of stored sessions that there are not. Guarded by mu.
	told   map[string]bool
	tables atomic.Pointer[tables]
}

// newPlugins finds the plugins and makes them, without starting any.
func newPlugins(o PluginOptions, logger *slog.Logger) (*plugins, []planned, error) {
	file := o.Config
	if file == nil {
		file = &config.File{}
	}
	dir, named := cmp.Or(o.Dir, file.PluginDir), true
	if dir == "" {
		dir, named = config.DefaultPluginDir, false
	}
	found, passed, err := discover.Dir(dir, named)
	if err != nil {
		return nil, nil, err
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs // Whoever reads what is missing may be elsewhere.
	}
	p := &plugins{logger: logger, passed: passed, warnings: map[string][]string{}, told: map[string]bool{}}
	paths := map[string]string{}
	for _, f := range found {
		paths[f.Name] = f.Path
		p.warnings[f.Name] = f.Warnings
	}
	for name, c := range file.Plugins {
		if c.Command != "" {
			paths[name] = c.Command
			delete(p.warnings, name)
		} else if _, is := paths[name]; !is {
			idle := missing(name, "the configuration names it", dir, passed)
			if c.Disabled {
				idle.State, idle.Reason = PluginDisabled, ""
			}
			p.idle = append(p.idle, idle)
		}
	}
	var specs []planned
	for name, path := range paths {
		c := file.Plugins[name]
		if c.Disabled {
			p.idle = append(p.idle, Plugin{Name: name, Path: path, State: PluginDisabled})
			continue
		}
		specs = append(specs, planned{Spec: specOf(name, path, c), by: registry.Registrant{Plugin: name}, standard: true})
	}
	specs, p.presets = planPresets(file, specs, func(place, name string) Plugin {
		if path, is := paths[name]; is || file.Plugins[name].Disabled {
			return Plugin{Name: name, Path: path, State: PluginMissing, Reason: fmt.Sprintf("%s names it, and plugins.%s.disabled switches it off", place, name)}
		}
		return missing(name, place+" names it", dir, passed)
	})
	return p, specs, nil
}

// missing is a plugin that somebody names and that is not in the directory.
func missing(name, named, dir string, passed []discover.Passed) Plugin {
	p := Plugin{Name: name, State: PluginMissing, Reason: fmt.Sprintf("%s, and there is no such plugin in %s", named, dir)}
	for _, skipped := range passed {
		if skipped.Name == name {
			p.Path, p.Reason = skipped.Path, fmt.Sprintf("%s: %s", skipped.Path, skipped.Reason)
			if skipped.Remedy != "" {
				p.Reason += "; " + skipped.Remedy
			}
		}
	}
	return p
}

// guardSessions begins to look at every append.
func (p *plugins) guardSessions(sessions *session.Set) {
	p.changed()
	p.removed = sessions.AddGuard(p.guard)
}

// specOf says how to start a plugin.
func specOf(name, path string, c config.Plugin) life.Spec {
	t := c.Timeouts
	s := life.Spec{
		Spec: launch.Spec{Plugin: name, Path: path, Args: c.Args, Env: c.Env, MTLS: c.MTLS,
			Timeouts: launch.Timeouts{Start: t.Start, Drain: t.Drain, Exit: t.Exit}},
		Config: c.Config,
		Limits: life.Limits{Describe: t.Describe, Configure: t.Configure, Register: t.Register, Batch: t.Batch, Tool: t.Tool, Health: t.Health},
	}
	if c.MemoryLimit > 0 {
		// What a Go program keeps to by itself; the plugin's own variables win.
		s.Env = append([]string{"GOMEMLIMIT=" + strconv.FormatInt(c.MemoryLimit, 10)}, s.Env...)
	}
	return s
}

// boundBatches lets no plugin have more than most for a batch; 0 bounds nothing.
func boundBatches(specs []planned, most time.Duration) {
	for i := range specs {
		if l := &specs[i].Limits; most > 0 && (l.Batch <= 0 || l.Batch > most) {
			l.Batch = most
		}
	}
}

// start brings all plugins up, each on its own.
func (p *plugins) start(specs []planned, o PluginOptions, r *registry.Registry) error {
	var err error
	if p.launcher, err = launch.New(launch.Options{Logger: p.logger, SocketDir: o.SocketDir}); err != nil {
		return err
	}
	deps := supervise.Deps{Launch: life.By(p.launcher), Registry: r, Logger: p.logger, Version: Version(), Ledger: &supervise.Ledger{}, Files: &supervise.Files{Dir: o.CacheDir},
		Generation: &atomic.Uint64{}, Changed: p.changed, Released: p.released, HealthEvery: o.HealthEvery}
	p.warnOfAbsent()
	for name, preset := range p.presets {
		r.SetMembers(name, preset.members)
		for _, m := range preset.missing {
			p.logger.Warn("a preset serves without one of its plugins", "preset", name, "plugin", m.Name, "reason", m.Reason)
		}
	}
	for _, spec := range specs {
		spec.Frank = o.frank
		p.list = append(p.list, &instance{supervise.New(deps, spec.by, spec.Spec), spec})
	}
	p.changed()
	for _, one := range p.list {
		one.Start()
	}
	return nil
}

// warnOfAbsent logs what an operator may take for a plugin that serves: one that the configuration names and that is not there, and a file that is refused.
func (p *plugins) warnOfAbsent() {
	named := map[string]bool{}
	for _, one := range p.idle {
		if one.State == PluginMissing {
			named[one.Name] = true
			p.logger.Warn("a plugin of the configuration is missing", "plugin", one.Name, "reason", one.Reason)
		}
	}
	for _, f := range p.passed {
		if f.Refused && !named[f.Name] {
			p.logger.Warn("a file in the plugin directory is refused, and the host goes on without it", "plugin", f.Name, "reason", fmt.Sprintf("%s: %s; %s", f.Path, f.Reason, f.Remedy))
		}
	}
}

// changed makes the tables anew.
func (p *plugins) changed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changedLocked()
}

// changedLocked is changed with mu held.
func (p *plugins) changedLocked() { p.tables.Store(p.newTables()) }

// released lets every plugin try again what it was refused.
func (p *plugins) released() {
	for _, one := range p.list {
		one.Retry()
	}
}

// poisoned is what the registry says when one event of one session ended a process.
func (p *plugins) poisoned(by registry.Registrant) {
	for _, one := range p.list {
		if one.Registrant() == by {
			one.Forgive()
		}
	}
}

// wait waits until the first start of every plugin has ended.
func (p *plugins) wait(ctx context.Context) error {
	for _, one := range p.list {
		select {
		case <-one.Tried():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// stop stops all plugins at once: each is asked, waited for, killed.
func (p *plugins) stop(ctx context.Context) {
	if p.removed != nil {
		p.removed()
	}
	var all sync.WaitGroup
	for _, one := range p.list {
		all.Go(func() { one.Stop(ctx) })
	}
	all.Wait()
	if p.launcher != nil {
		p.launcher.Close()
	}
}

// find gives the instances of a plugin.
func (p *plugins) find(name string) (all []*instance) {
	for _, one := range p.list {
		if one.Registrant().Plugin == name {
			all = append(all, one)
		}
	}
	return all
}
