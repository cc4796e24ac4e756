package life

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/foldhost/foldhost/host/internal/remote"
	"github.com/foldhost/foldhost/host/launch"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// Spec says what to bring up.
type Spec struct {
	launch.Spec
	// Config is JSON, nil for none. ConfigPlace is where it stands in the configuration, such as presets.single.todo.config, for errors; empty calls it $.
	Config      json.RawMessage
	ConfigPlace string
	Limits      Limits
	// Frank says that whoever reads values may know what the process wrote to stderr before it ended, and the files of this machine: who replays a log runs the plugin as well.
	// Elsewhere they are for those who administer the host.
	Frank bool
}

// Limits are deadlines; zero is the default.
type Limits struct {
	// Describe, Configure and Register bound one answer each. 5 s: each takes a millisecond, and what takes longer is stuck. Configure has
	// 10 s, since a plugin may open files then.
	Describe, Configure, Register time.Duration
	// Batch bounds the answer to a batch, 10 s; Tool a call of a tool, 30 s; Health a check, 5 s.
	Batch, Tool, Health time.Duration
}

func (l Limits) withDefaults() Limits {
	set := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	set(&l.Describe, 5*time.Second)
	set(&l.Configure, 10*time.Second)
	set(&l.Register, 5*time.Second)
	set(&l.Batch, 10*time.Second)
	set(&l.Tool, 30*time.Second)
	set(&l.Health, 5*time.Second)
	return l
}

// Options of a start.
type Options struct {
	// Generation names the process among all of the host; HostVersion is for messages to people.
	Generation  uint64
	HostVersion string
	// Known is the description of the same file from before, nil to ask.
	Known *Description
	// Broken is called once if the process that was up, and was not asked to end, turns out to be of no more use: it ended, broke the protocol, or did
	// not answer in time. It is killed by then, and what was in flight is answered afterwards. busy says that it had something to do. It must not block.
	Broken func(why error, busy bool)
	// Held leaves batches where they are until Life.Instance.Begin.
	Held bool
	// Described is called as soon as the plugin has said what it is; nil for nobody.
	Described func(*Description)
}

// Life is one process that is up.
type Life struct {
	Process     Process
	Description *Description
	Instance    *remote.Instance
	Generation  uint64
	// First is what it offered at its start.
	First *Set

	spec   Spec
	limits Limits
	client pluginproto.PluginClient
	sets   chan *Set
	// ctx ends with the life.
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	broken func(error, bool)
	// up is set when Start has succeeded: before that its error says what happened.
	up atomic.Bool
	// brokeBy is why the process is of no more use, ending that it was asked to end: what its streams do then means nothing.
	brokeBy atomic.Pointer[error]
	ending  atomic.Bool
}

// Start brings a process up. The error is a *launch.StartError, launch.ErrClosed, or that of ctx; nothing is left of the process then.
func Start(ctx context.Context, begin Launch, spec Spec, o Options) (*Life, error) {
	p, err := begin(ctx, spec.Spec)
	if err != nil {
		return nil, err
	}
	l := &Life{Process: p, Generation: o.Generation, spec: spec, limits: spec.Limits.withDefaults(), client: p.Client(), sets: make(chan *Set, 1), broken: o.Broken}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	for _, step := range []struct {
		phase launch.Phase
		limit time.Duration
		do    func(context.Context, Options) error
	}{
		{launch.PhaseDescribe, l.limits.Describe, l.describe},
		{launch.PhaseConfigure, l.limits.Configure, l.configure},
		{launch.PhaseRegister, l.limits.Register, l.register},
		{launch.PhaseHealth, l.limits.Health, l.healthy},
	} {
		bounded, cancel := context.WithTimeout(ctx, step.limit)
		err := step.do(bounded, o)
		cancel()
		if ctx.Err() != nil { // Whoever gave up knows it by that.
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, l.fail(step.phase, plain(err))
		}
	}
	l.up.Store(true)
	if l.brokeBy.Load() != nil { // Before anybody was told that it was up.
		return nil, l.fail(launch.PhaseHealth, errors.New("it ended in the moment in which it was up"))
	}
	return l, nil
}

// fail ends a start. A stream that the plugin has ended, which kills it, is the reason of whatever failed after that.
func (l *Life) fail(phase launch.Phase, err error) error {
	var broken *remote.BrokenError
	if why := l.brokeBy.Load(); why != nil && errors.As(*why, &broken) {
		phase, err = launch.PhaseRegister, broken
	}
	// What is known of the process counts as it was before the host ended it.
	failed := l.Process.Fail(phase, err)
	l.Kill("its start failed")
	l.End(context.Background(), "its start failed")
	return failed
}

func (l *Life) describe(ctx context.Context, o Options) error {
	l.Description = o.Known
	if l.Description == nil {
		m, err := l.client.Describe(ctx, &pluginproto.DescribeRequest{})
		if err != nil {
			return err
		}
		if l.Description, err = ReadDescription(m); err != nil {
			return err
		}
	}
	if o.Described != nil {
		o.Described(l.Description)
	}
	return nil
}

func (l *Life) configure(ctx context.Context, o Options) error {
	if err := l.Description.CheckConfig(l.spec.Config); err != nil {
		return placed(err, l.spec.ConfigPlace)
	}
	m, err := l.client.Configure(ctx, &pluginproto.ConfigureRequest{Config: l.spec.Config, Generation: o.Generation, HostVersion: o.HostVersion})
	if err != nil {
		return err
	}
	return placed(configProblems(m), l.spec.ConfigPlace)
}

// register opens the two streams that last as long as the process, and takes the first set.
func (l *Life) register(ctx context.Context, o Options) (err error) {
	// To open a stream is to wait until the plugin takes one more, and the context of these streams has no deadline.
	begun := context.AfterFunc(ctx, l.cancel)
	defer func() {
		if !begun() {
			err = context.Cause(ctx)
		}
	}()
	fold, err := l.client.Fold(l.ctx)
	if err != nil {
		return err
	}
	l.Instance = remote.New(remote.Options{Stream: fold, Cancel: l.cancel, Generation: o.Generation, Deadline: l.limits.Batch, Broken: l.breakDown, Obituary: l.gone, Held: o.Held})
	stream, err := l.client.Registrations(l.ctx, &pluginproto.RegistrationsRequest{})
	if err != nil {
		return err
	}
	first := make(chan *Set, 1)
	failed := make(chan error, 1)
	l.wg.Go(func() {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			failed <- &remote.BrokenError{Reason: "it ended its Registrations stream without having said what it offers", Err: err}
			return
		}
		var set *Set
		if err == nil {
			set, err = l.readSet(m)
		}
		if err != nil {
			failed <- err
			return
		}
		first <- set
		l.follow(stream)
	})
	select {
	case l.First = <-first:
		return nil
	case err := <-failed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// healthy asks once, last: one that would fail its next health check anyway is not called ready before.
func (l *Life) healthy(ctx context.Context, _ Options) error { return l.Check(ctx) }

// How fast a plugin may change what it offers. It is looked at ten times a second at most, and for a tenth of the time, since a large set takes
// a second to check; but never later than after five seconds. Of what comes in between only the latest is looked at, and once 64 KiB of it were passed over, the plugin waits.
const (
	setPause  = 100 * time.Millisecond
	setShare  = 10
	setLatest = 5 * time.Second
	maxUnread = 64 << 10
)

// follow looks at the sets that come later. Only the latest waits.
func (l *Life) follow(stream pluginproto.Plugin_RegistrationsClient) {
	said := make(chan *pluginproto.RegistrationSet, 1)
	l.wg.Go(func() { l.hear(stream, said) })
	for {
		select {
		case m := <-said:
			began := time.Now()
			set, err := l.readSet(m)
			if err != nil {
				l.Instance.Fail(&remote.BrokenError{Reason: err.Error(), Err: err})
				return
			}
			select {
			case <-l.sets:
			default:
			}
			l.sets <- set // There is room: nobody else puts anything there.
			timer := time.NewTimer(min(max(setPause, setShare*time.Since(began)), setLatest))
			select {
			case <-timer.C:
			case <-l.ctx.Done():
				timer.Stop()
			}
		case <-l.ctx.Done():
			return
		}
	}
}

// hear reads the stream of registrations.
func (l *Life) hear(stream pluginproto.Plugin_RegistrationsClient, said chan *pluginproto.RegistrationSet) {
	for unread := 0; ; {
		m, err := stream.Recv()
		if err != nil {
			if err = l.endedRegistrations(err); err != nil {
				l.Instance.Fail(err)
			}
			return
		}
		switch {
		case len(said) == 0:
			unread = 0
		case unread < maxUnread:
			select {
			case old := <-said:
				unread += proto.Size(old)
			default:
			}
		}
		select {
		case said <- m:
		case <-l.ctx.Done():
			return
		}
	}
}

// endedRegistrations says why the stream of registrations ended; nil when that was wanted.
func (l *Life) endedRegistrations(err error) error {
	if l.ending.Load() || l.ctx.Err() != nil {
		return nil
	}
	if why := l.gone(); why != "" {
		return &unit.GoneError{Reason: why}
	}
	const open = "it ended its Registrations stream, which a plugin keeps open"
	if errors.Is(err, io.EOF) {
		return &remote.BrokenError{Reason: open, Err: err}
	}
	if status.Code(err) == codes.ResourceExhausted {
		return &remote.BrokenError{Reason: "in its registrations " + plain(err).Error(), Err: err}
	}
	return &remote.BrokenError{Reason: open + ": " + plain(err).Error(), Err: err}
}

// Sets gives new registrations, always the latest.
func (l *Life) Sets() <-chan *Set { return l.sets }

// breakDown is called by the instance, once.
func (l *Life) breakDown(why error, busy bool) {
	if l.ending.Load() {
		return // It is being stopped, within a time of its own.
	}
	l.brokeBy.Store(&why)
	l.Process.Kill(why.Error())
	if l.broken != nil && l.up.Load() {
		l.broken(l.whole(why), busy)
	}
}

// whole is why it broke for those who administer the host: with the last words of a process that ended by itself.
func (l *Life) whole(why error) error {
	gone, is := errors.AsType[*unit.GoneError](why)
	select {
	case <-l.Process.Exited():
		if exit := l.Process.Exit(); is && gone.Reason == exit.String() {
			return &unit.GoneError{Reason: l.obituary(true)}
		}
	default:
	}
	return why
}

// lastWords is how long an exit is waited for when a stream broke: a process closes its connections as it ends, a moment before that is known.
const lastWords = time.Second

// Obituary says how the process ended; empty when it lives. It is for whoever reads values, see Spec.Frank.
func (l *Life) Obituary() string { return l.obituary(l.spec.Frank) }

// obituary may quote its last words.
func (l *Life) obituary(quote bool) string {
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	select {
	case <-l.Process.Exited():
		exit := l.Process.Exit()
		if last := launch.LastWords(l.Process.Tail()); quote && last != "" && exit.KilledFor == "" {
			return fmt.Sprintf("%s; last on stderr: %q", exit, last)
		}
		return exit.String()
	case <-timer.C:
		return ""
	}
}

// gone is Obituary for when a stream ended: a process that ends takes its streams with it. One that still answers is not waited for.
func (l *Life) gone() string {
	if l.Check(l.ctx) == nil {
		return ""
	}
	return l.Obituary()
}

// Check asks whether the process serves. The error is a *launch.NotServingError, or says that it does not answer.
func (l *Life) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.limits.Health)
	defer cancel()
	return plain(l.Process.Health(ctx))
}

// Kill ends the process at once.
func (l *Life) Kill(reason string) { l.Process.Kill(reason) }

// End ends the process, asking first unless ctx has ended, answers what is in flight, and waits for everything.
func (l *Life) End(ctx context.Context, reason string) launch.Exit {
	l.ending.Store(true)
	exit := l.Process.Stop(ctx)
	l.Bury(reason)
	return exit
}

// Fail says that the process is of no more use, for a reason that its life could not see: it is killed, and Options.Broken is called unless
// it was before. Bury it then.
func (l *Life) Fail(why error) { l.Instance.Fail(why) }

// Bury answers what is in flight and waits for the goroutines, after the process has ended.
func (l *Life) Bury(reason string) {
	if l.Instance != nil {
		l.Instance.Close(reason)
	}
	l.cancel()
	if l.Instance != nil {
		l.Instance.Wait()
	}
	l.wg.Wait()
}

// plain takes gRPC's wrapping off an error.
func plain(err error) error {
	s, ok := status.FromError(err)
	var already *rpcError
	if !ok || s.Code() == codes.OK || errors.As(err, &already) {
		return err
	}
	switch s.Code() {
	case codes.Unavailable:
		return &rpcError{"the connection to it broke", err}
	case codes.DeadlineExceeded:
		return &rpcError{"it did not answer in time", err}
	case codes.ResourceExhausted:
		return &rpcError{"it sent a message that is too large", err}
	case codes.Unimplemented:
		return &rpcError{"it does not have this call: it is no foldhost plugin, or a broken one", err}
	}
	return &rpcError{"it answered with an error: " + line(s.Message()), err}
}

// rpcError is a failed call in words for people.
type rpcError struct {
	text string
	err  error
}

func (e *rpcError) Error() string { return e.text }
func (e *rpcError) Unwrap() error { return e.err }
