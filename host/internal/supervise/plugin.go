package supervise

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/foldhost/foldhost/host/internal/life"
	"github.com/foldhost/foldhost/host/internal/restart"
	"github.com/foldhost/foldhost/host/launch"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/unit"
)

// Deps are what all plugins of a host share.
type Deps struct {
	Launch   life.Launch
	Registry *registry.Registry
	Logger   *slog.Logger
	Version  string
	Ledger   *Ledger
	Files    *Files
	// Generation names processes.
	Generation *atomic.Uint64
	// Changed is called after something that others build on has changed: a description, units, tools. It must not wait for the plugin.
	Changed func()
	// Released is called after a plugin gave keys back: one that was refused them may try again. It must not wait for the plugin.
	Released func()
	// HealthEvery is how often a process is asked whether it serves; 0 is 10 s.
	HealthEvery time.Duration
}

// healthEvery: a plugin that stopped answering and has nothing to fold is found out within 15 s; one that has is found out by its deadlines.
const healthEvery = 10 * time.Second

// Plugin is one plugin that is kept up. Safe for concurrent use.
type Plugin struct {
	d    Deps
	spec life.Spec
	by   registry.Registrant

	ctx   context.Context
	stop  context.CancelFunc
	ended chan struct{}
	// tried is closed when the first start has ended, well or not.
	tried     chan struct{}
	triedOnce sync.Once
	// again asks for another process, recount for another look at the failures, retry for another try of what was refused. One place each.
	again, recount, retry chan struct{}
	// aside counts what runs beside run: processes that another has taken over from, being stopped, and the reading and writing of descriptions.
	aside sync.WaitGroup
	// stopping bounds the stop of the process: when it ends, the process is killed.
	stopping context.Context
	kill     context.CancelFunc

	// regs are the registrations by key, offer what they were made of, and conflicted says that some were refused for what another plugin
	// holds. They belong to run.
	regs       map[string]*registration
	offer      *life.Set
	conflicted bool

	mu      sync.Mutex
	status  Status
	current *life.Life
	// file is what current was started from.
	file *fileFacts
	// serving says that the process is not known to have failed. moved is closed and made anew with each change of status.
	serving bool
	moved   chan struct{}
}

// registration is one unit as it is registered.
type registration struct {
	*registry.Registration
	unit *unit.Compiled
}

// New makes a plugin that is not started.
func New(d Deps, by registry.Registrant, spec life.Spec) *Plugin {
	if spec.Presets != "" {
		d.Logger = d.Logger.With("presets", spec.Presets)
	}
	if d.HealthEvery <= 0 {
		d.HealthEvery = healthEvery
	}
	p := &Plugin{d: d, spec: spec, by: by, ended: make(chan struct{}), tried: make(chan struct{}), again: make(chan struct{}, 1),
		recount: make(chan struct{}, 1), retry: make(chan struct{}, 1), regs: map[string]*registration{}, moved: make(chan struct{})}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.stopping, p.kill = context.WithCancel(context.Background())
	p.status = Status{Name: spec.Plugin, Path: spec.Path, State: Stopped, Since: time.Now()}
	return p
}

// Start begins to keep it up. Called once.
func (p *Plugin) Start() { go p.run() }

// Tried is closed when the first start has ended, well or not.
func (p *Plugin) Tried() <-chan struct{} { return p.tried }

// Stop ends it: the process is asked, waited for and killed, at once when ctx ends. Its registrations are released. More than once is
// harmless. Only for a plugin that was started.
func (p *Plugin) Stop(ctx context.Context) {
	p.stop()
	defer context.AfterFunc(ctx, p.kill)()
	<-p.ended
}

// Restart brings up a new process, which takes over when it is up; a plugin that waits or is parked is started at once. It does not wait.
func (p *Plugin) Restart() {
	p.d.Ledger.do(&p.spec, (*restart.History).Forget)
	poke(p.again)
}

// Retry tries what was refused because of another plugin once more.
func (p *Plugin) Retry() { poke(p.retry) }

// Forgive says that one event of one session was to blame for the last deaths.
func (p *Plugin) Forgive() {
	now := time.Now()
	p.d.Ledger.do(&p.spec, func(h *restart.History) { h.Forgive(now) })
	poke(p.recount)
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Status says how it stands.
func (p *Plugin) Status() Status {
	p.mu.Lock()
	s, l := p.status, p.current
	p.mu.Unlock()
	if l != nil {
		s.Tail = l.Process.Tail()
	}
	return s
}

// Facts is Status without the plugin's output.
func (p *Plugin) Facts() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// Settle waits until a process serves, or until none is tried any more by itself: the plugin is parked, or stopped. It gives how it stands
// then. The error is ctx's.
func (p *Plugin) Settle(ctx context.Context) (Status, error) {
	for {
		p.mu.Lock()
		s, serving, moved := p.status, p.serving, p.moved
		p.mu.Unlock()
		if serving || s.State == Parked || s.State == Stopped {
			return s, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return s, ctx.Err()
		}
	}
}

// Digest hashes the file of the process that serves, where none does the file that would be started, unless that was done before. The error is one of reading
// it, that of ctx, or that the file was replaced before it was hashed.
func (p *Plugin) Digest(ctx context.Context) (string, error) {
	p.mu.Lock()
	file := p.file
	if p.current == nil {
		file = nil
	}
	p.mu.Unlock()
	if file != nil {
		return p.d.Files.digest(ctx, p.spec.Path, file)
	}
	return p.d.Files.Digest(ctx, p.spec.Path)
}

// Registrant is who registers its units.
func (p *Plugin) Registrant() registry.Registrant { return p.by }

// set changes the status.
func (p *Plugin) set(change func(*Status)) {
	p.mu.Lock()
	before := p.status.State
	change(&p.status)
	if p.status.State != before {
		p.status.Since = time.Now()
	}
	p.move()
	p.mu.Unlock()
}

// move wakes those who wait for a change of status. mu is held.
func (p *Plugin) move() {
	close(p.moved)
	p.moved = make(chan struct{})
}

// attempt is one process, or the try to have one. Its failure counts once.
type attempt struct {
	generation uint64
	life       *life.Life
	// file is what it was started from; nil where there was none.
	file *fileFacts
	// over says that its end is wanted: it does not count.
	over atomic.Bool
	// failed says that it was counted.
	failed  atomic.Bool
	counted sync.Once
	// upSince is nil while it is not up.
	upSince atomic.Pointer[time.Time]
}

// run is the plugin's goroutine.
func (p *Plugin) run() {
	defer close(p.ended)
	defer p.finish()
	var next *attempt
	for next != nil || p.ctx.Err() == nil { // A process that is up is ended by serve.
		a := next
		if next = nil; a == nil {
			p.set(func(s *Status) { s.State, s.Reason, s.Until = Starting, "", time.Time{} })
			var err error
			if a, err = p.attempt(); err != nil {
				if p.ctx.Err() != nil {
					return
				}
				p.rest(err, true)
				continue
			}
			p.adopt(a)
		}
		var why error
		if next, why = p.serve(a); next == nil && p.ctx.Err() == nil {
			p.rest(why, false)
		}
	}
}

// attempt brings a process up. Whoever asked for it logs what came of it, together with what that leads to.
func (p *Plugin) attempt() (*attempt, error) {
	facts := p.d.Files.look(p.spec.Path)
	a := &attempt{generation: p.d.Generation.Add(1), file: facts}
	as := variant(&p.spec)
	known := p.d.Files.description(facts, as)
	if len(p.spec.Args) > 0 {
		known = nil // What it is may lie in another file that an argument names, which may have changed. Asking takes a millisecond.
	}
	// While a process serves, it is what it said: another one counts when it takes over.
	describe := func(d *life.Description) {
		p.set(func(s *Status) {
			if p.current == nil {
				s.Description = d
			}
		})
	}
	if known != nil {
		describe(known)
	} else {
		// With each start: the file may not have been there before, or not readable.
		p.aside.Go(p.recall)
	}
	l, err := life.Start(p.ctx, p.d.Launch, p.spec, life.Options{
		Generation:  a.generation,
		HostVersion: p.d.Version,
		Known:       known,
		Held:        true,
		Described: func(d *life.Description) {
			p.d.Files.describe(facts, as, d)
			describe(d)
			p.d.Changed()
			if d != known {
				p.aside.Go(func() { p.keep(d) })
			}
		},
		Broken: func(why error, busy bool) { p.failed(a, why, busy) },
	})
	if err != nil {
		if p.ctx.Err() == nil {
			p.failed(a, err, false)
		}
		a.over.Store(true)
		return nil, err
	}
	a.life = l
	return a, nil
}

// recall takes what is known of the file from before for true until the plugin says something else.
func (p *Plugin) recall() {
	d, err := p.d.Files.recall(p.ctx, &p.spec)
	var file *launch.FileError // what the start says as well
	if err != nil && p.ctx.Err() == nil && !errors.As(err, &file) {
		p.d.Logger.Warn("what a plugin said about itself before could not be looked up; its event types are not guarded until it is up", "plugin", p.spec.Plugin, "error", err)
	}
	if d == nil {
		return
	}
	news := false
	p.set(func(s *Status) {
		if news = s.Description == nil; news {
			s.Description = d
		}
	})
	if news {
		p.d.Changed()
	}
}

func (p *Plugin) keep(d *life.Description) {
	if err := p.d.Files.keep(p.ctx, &p.spec, d); err != nil && p.ctx.Err() == nil {
		p.d.Logger.Warn("what a plugin says about itself could not be kept; it is asked again", "plugin", p.spec.Plugin, "error", err)
	}
}

// failed counts a failure, before anybody else hears of it.
func (p *Plugin) failed(a *attempt, why error, busy bool) {
	if a.over.Load() {
		return
	}
	a.counted.Do(func() {
		a.failed.Store(true)
		now := time.Now()
		f := restart.Failure{At: now, Busy: busy}
		since := a.upSince.Load()
		if since != nil {
			f.Up = now.Sub(*since)
		}
		p.d.Ledger.do(&p.spec, func(h *restart.History) { h.Add(f) })
		var start *launch.StartError
		p.set(func(s *Status) {
			s.LastError = why.Error()
			if since != nil {
				s.Deaths++
			}
			if errors.As(why, &start) && p.current == nil {
				s.Tail = start.Stderr
			}
			if s.Generation == a.generation {
				p.serving = false
			}
		})
	})
}

// serve works with a process until it is gone. next is another one that has taken over or is ready to; otherwise why says what happened.
func (p *Plugin) serve(a *attempt) (next *attempt, why error) {
	l := a.life
	health := newHealth(l, p.d.HealthEvery)
	defer health.stop()
	type started struct {
		a   *attempt
		err error
	}
	var successor chan started
	for {
		select {
		case <-p.ctx.Done():
			a.over.Store(true)
			p.set(func(s *Status) { s.State, p.serving = Draining, false })
			p.release() // Another plugin takes over while this one still answers.
			if successor != nil {
				if s := <-successor; s.a != nil {
					p.retire(s.a)
				}
			}
			l.End(p.stopping, "the plugin is being stopped")
			return nil, nil
		case <-l.Process.Exited():
			exit := l.Process.Exit()
			l.Fail(&unit.GoneError{Reason: l.Obituary()})
			l.Bury(exit.String())
			why := &DiedError{Plugin: p.spec.Plugin, Exit: exit, Stderr: l.Process.Tail()}
			p.failed(a, why, false) // Counted before, unless it broke in the moment in which it came up.
			p.lost(why)
			if successor != nil {
				p.set(func(s *Status) { s.State = Starting })
				s := <-successor
				if s.a != nil {
					p.adopt(s.a)
					return s.a, nil
				}
				if p.ctx.Err() == nil {
					p.d.Logger.Error(notStarted, "plugin", p.spec.Plugin, "error", s.err)
				}
			}
			return nil, why
		case set := <-l.Sets():
			p.register(l, set, false)
		case err := <-health.failed:
			l.Fail(err)
		case <-p.again:
			if successor == nil {
				p.set(func(s *Status) { s.Successor = "" })
				c := make(chan started, 1)
				successor = c
				go func() {
					s, err := p.attempt()
					c <- started{s, err}
				}()
			}
		case s := <-successor:
			successor = nil
			if s.err != nil {
				p.d.Logger.Warn("a plugin's new process did not start; the one before serves on", "plugin", p.spec.Plugin, "error", s.err)
				p.set(func(status *Status) { status.Successor = s.err.Error() })
				continue
			}
			p.adopt(s.a)
			p.retire(a)
			return s.a, nil
		case <-p.retry:
			if p.conflicted {
				p.register(l, p.offer, false)
			}
		case <-p.recount:
		}
	}
}

// retire stops a process that has nothing to do any more.
func (p *Plugin) retire(a *attempt) {
	a.over.Store(true)
	p.aside.Go(func() { a.life.End(p.stopping, "another process has taken over") })
}

// adopt makes a process the one that serves. It begins to fold once all of its units are registered: if it died of the first of them before the
// next is, the next would be given to a process that is dead, and be to blame for that.
func (p *Plugin) adopt(a *attempt) {
	l := a.life
	now := time.Now()
	a.upSince.Store(&now)
	p.register(l, l.First, true)
	l.Instance.Begin()
	p.mu.Lock()
	p.current, p.file, p.serving = l, a.file, !a.failed.Load()
	if p.status.Generation != 0 {
		p.status.Restarts++
	}
	p.status.Pid, p.status.Generation = l.Process.Pid(), l.Generation
	p.status.State, p.status.Reason, p.status.Until = Ready, "", time.Time{}
	p.status.Since, p.status.Description, p.status.Successor = now, l.Description, ""
	p.move()
	p.mu.Unlock()
	p.d.Changed()
	p.triedOnce.Do(func() { close(p.tried) })
	p.d.Logger.Info("a plugin is ready", "plugin", p.spec.Plugin, "version", l.Description.Version, "pid", l.Process.Pid(), "units", len(l.First.Units), "tools", len(l.First.Tools))
}

// lost says that the process is gone and nobody serves now.
func (p *Plugin) lost(why *DiedError) {
	for _, r := range p.regs {
		r.Suspend(registry.Restarting, why.Exit.String())
	}
	p.mu.Lock()
	p.status.Pid, p.status.Tail, p.status.Successor = 0, why.Stderr, ""
	p.current, p.serving = nil, false
	p.move()
	p.mu.Unlock()
	p.d.Changed()
	p.d.Logger.Error("a plugin's process died", "plugin", p.spec.Plugin, "exit", why.Exit.String())
}

// The messages of a start that failed.
const (
	notStarted          = "a plugin did not start"
	notStartedAndParked = "a plugin did not start and is parked; it is tried again when somebody asks for it"
)

// rest waits until the plugin is to be started again: until its backoff is over, or somebody asks. unlogged says that why is a start that failed, of which the log has nothing yet.
func (p *Plugin) rest(why error, unlogged bool) {
	permanent := isPermanent(why)
	for parked := false; ; {
		var d restart.Decision
		random := rand.Float64()
		p.d.Ledger.do(&p.spec, func(h *restart.History) { d = h.Decide(time.Now(), random) })
		d.Park = d.Park || permanent
		var over <-chan time.Time
		var timer *time.Timer
		if d.Park {
			reason := parkReason(why.Error(), permanent, d)
			message := reason
			if !p.spec.Frank {
				message = parkReason(told(why), permanent, d)
			}
			for _, r := range p.regs {
				r.Suspend(registry.Parked, message)
			}
			p.set(func(s *Status) { s.State, s.Reason, s.Until = Parked, reason, time.Time{} })
			switch {
			case parked:
			case unlogged: // The reason holds the error, so that one record is enough.
				record := []any{"plugin", p.spec.Plugin, "reason", reason}
				if config := (*life.ConfigError)(nil); errors.As(why, &config) { // Other errors say it themselves, and asking again is enough for them.
					place := cmp.Or(p.spec.ConfigPlace, "plugins."+p.spec.Plugin+".config")
					record = append(record, "remedy", "correct "+place+" in the configuration, and start the host again")
				}
				p.d.Logger.Error(notStartedAndParked, record...)
			default:
				p.d.Logger.Error("a plugin is parked; it starts again when somebody asks for it", "plugin", p.spec.Plugin, "reason", reason)
			}
			parked, unlogged = true, false
		} else {
			if unlogged {
				p.d.Logger.Error(notStarted, "plugin", p.spec.Plugin, "error", why)
			}
			unlogged = false
			timer = time.NewTimer(time.Until(d.Until))
			over = timer.C
			p.set(func(s *Status) { s.State, s.Reason, s.Until = Backoff, why.Error(), d.Until })
		}
		p.triedOnce.Do(func() { close(p.tried) })
		again := false
		select {
		case <-p.ctx.Done():
			again = true
		case <-over:
			again = true
		case <-p.again:
			again = true
		case <-p.recount:
		}
		if timer != nil {
			timer.Stop()
		}
		if again {
			return
		}
	}
}

// finish is the end of run: nothing of the plugin is left.
func (p *Plugin) finish() {
	p.release()
	p.aside.Wait()
	p.mu.Lock()
	p.current, p.serving = nil, false
	p.status.State, p.status.Since, p.status.Pid = Stopped, time.Now(), 0
	p.status.Reason, p.status.Until, p.status.Successor = "", time.Time{}, ""
	p.status.Units, p.status.Tools = nil, nil
	p.move()
	p.mu.Unlock()
	p.triedOnce.Do(func() { close(p.tried) })
	p.kill()
	p.d.Changed()
}

// release gives back every registration.
func (p *Plugin) release() {
	for key, r := range p.regs {
		r.Release()
		delete(p.regs, key)
	}
	p.d.Released()
}

// isPermanent says whether a start would fail in the same way again, so that trying is of no use until something is changed.
func isPermanent(err error) bool {
	var config *life.ConfigError
	var description *life.DescriptionError
	var file *launch.FileError
	var handshake *launch.HandshakeError
	switch {
	case errors.As(err, &config), errors.As(err, &description):
		return true
	case errors.As(err, &file): // One that cannot be read for another reason than its mode may be a disk's trouble, or too many open files.
		return file.Rule != launch.FileUnreadable || errors.Is(err, fs.ErrPermission)
	case errors.As(err, &handshake):
		return handshake.Rule == "version" || handshake.Rule == "core-version" || handshake.Rule == "protocol"
	}
	var start *launch.StartError
	var sockets *launch.SocketDirError
	if !errors.As(err, &start) || start.Phase != launch.PhaseExec || errors.As(err, &sockets) {
		return false
	}
	// What the system says of a file that it found: its format, its interpreter, what it is given. Too little memory is none of these.
	return slices.ContainsFunc([]error{syscall.ENOEXEC, syscall.ENOENT, syscall.EACCES, syscall.E2BIG, syscall.ELOOP, syscall.EINVAL},
		func(errno error) bool { return errors.Is(err, errno) })
}
