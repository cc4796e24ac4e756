package lifetest

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foldhost/foldhost/host/launch"
	"github.com/foldhost/foldhost/internal/foldwire"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// Plugin is how a process behaves. The zero Plugin is a good one that offers nothing.
type Plugin struct {
	Description *pluginproto.DescribeResponse
	Units       []unit.Definition
	Tools       []*pluginproto.Tool
	// Called is asked in each call, with the name of its method in lower case, and in "batch", "health" and "stop". It may wait, for ctx for
	// example; its error is what the call answers, and for "batch" how the fold stream ends. nil lets everything pass.
	Called func(ctx context.Context, p *Process, call string) error
	// Problems refuse the config.
	Problems []*pluginproto.ConfigProblem
	// Tool answers calls of tools.
	Tool func(context.Context, *pluginproto.CallToolRequest) (*pluginproto.CallToolResponse, error)
}

// Process is one process of a plugin. Safe for concurrent use.
type Process struct {
	pluginproto.PluginClient
	Plugin *Plugin
	Spec   launch.Spec
	// Calls counts, by the names that Called hears.
	Calls counts

	pid    int
	exited chan struct{}
	sets   chan *pluginproto.RegistrationSet
	// exit is set when exited is closed.
	dying sync.Once
	exit  launch.Exit

	// ended and folded are closed when the plugin ends its streams.
	ended, folded chan struct{}

	mu sync.Mutex
	// killed are the reasons of Kill, in order.
	killed []string
	tail   string
}

var pids atomic.Int64

// Start makes a process of the plugin.
func Start(plugin *Plugin, spec launch.Spec) *Process {
	return &Process{Plugin: plugin, Spec: spec, pid: int(pids.Add(1)), exited: make(chan struct{}), sets: make(chan *pluginproto.RegistrationSet, 16),
		ended: make(chan struct{}), folded: make(chan struct{})}
}

// Die ends the process with a code, after it wrote last to stderr.
func (p *Process) Die(code int, last string) {
	p.mu.Lock()
	p.tail += last
	p.mu.Unlock()
	p.end(launch.Exit{Code: code})
}

func (p *Process) end(e launch.Exit) {
	p.dying.Do(func() {
		p.exit = e
		close(p.exited)
	})
}

// Offer says that the plugin offers something else from now on.
func (p *Process) Offer(units []unit.Definition, tools []*pluginproto.Tool) {
	p.Send(set(units, tools))
}

// Send sends a set as it is.
func (p *Process) Send(m *pluginproto.RegistrationSet) {
	select {
	case p.sets <- m:
	case <-p.exited:
	}
}

// EndRegistrations ends that stream, EndFold the other. Each once.
func (p *Process) EndRegistrations() { close(p.ended) }
func (p *Process) EndFold()          { close(p.folded) }

// Killed are the reasons for which it was killed.
func (p *Process) Killed() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.killed...)
}

// Alive says whether it runs.
func (p *Process) Alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// The methods of life.Process.

func (p *Process) Client() pluginproto.PluginClient { return p }
func (p *Process) Version() int                     { return 1 }
func (p *Process) Pid() int                         { return p.pid }
func (p *Process) Exited() <-chan struct{}          { return p.exited }
func (p *Process) Tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tail
}
func (p *Process) Exit() launch.Exit {
	<-p.exited
	return p.exit
}
func (p *Process) Health(ctx context.Context) error { return p.called(ctx, "health") }
func (p *Process) Kill(reason string) {
	p.mu.Lock()
	p.killed = append(p.killed, reason)
	p.mu.Unlock()
	p.end(launch.Exit{Code: -1, Signal: "SIGKILL", KilledFor: reason})
}

// Stop ends the process once "stop" was passed, and kills it when ctx ends.
func (p *Process) Stop(ctx context.Context) launch.Exit {
	if err := p.called(ctx, "stop"); err != nil || ctx.Err() != nil {
		p.Kill("")
	}
	p.end(launch.Exit{Expected: true})
	return p.Exit()
}
func (p *Process) Fail(phase launch.Phase, err error) *launch.StartError {
	e := &launch.StartError{Plugin: p.Spec.Plugin, Phase: phase, Err: err, Stderr: p.Tail()}
	if !p.Alive() {
		e.Exit = &p.exit
	}
	return e
}

// called makes one call: what it gives also says when the process or the caller is gone.
func (p *Process) called(ctx context.Context, call string) error {
	p.Calls.add(call)
	if !p.Alive() {
		return errGone()
	}
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	if p.Plugin.Called == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- p.Plugin.Called(ctx, p, call) }()
	select {
	case err := <-answer:
		if !p.Alive() {
			return errGone()
		}
		return err
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-p.exited:
		return errGone()
	}
}

func errGone() error { return status.Error(codes.Unavailable, "the connection is gone") }

// The methods of the protocol.

func (p *Process) Describe(ctx context.Context, _ *pluginproto.DescribeRequest, _ ...grpc.CallOption) (*pluginproto.DescribeResponse, error) {
	if err := p.called(ctx, "describe"); err != nil {
		return nil, err
	}
	if p.Plugin.Description == nil {
		return &pluginproto.DescribeResponse{Name: "fake", Version: "1"}, nil
	}
	return p.Plugin.Description, nil
}

func (p *Process) Configure(ctx context.Context, _ *pluginproto.ConfigureRequest, _ ...grpc.CallOption) (*pluginproto.ConfigureResponse, error) {
	if err := p.called(ctx, "configure"); err != nil {
		return nil, err
	}
	return &pluginproto.ConfigureResponse{Problems: p.Plugin.Problems}, nil
}

func (p *Process) CallTool(ctx context.Context, m *pluginproto.CallToolRequest, _ ...grpc.CallOption) (*pluginproto.CallToolResponse, error) {
	if err := p.called(ctx, "calltool"); err != nil {
		return nil, err
	}
	return p.Plugin.Tool(ctx, m)
}

func (p *Process) Registrations(ctx context.Context, _ *pluginproto.RegistrationsRequest, _ ...grpc.CallOption) (pluginproto.Plugin_RegistrationsClient, error) {
	if err := p.called(ctx, "registrations"); err != nil {
		return nil, err
	}
	return &registrations{p: p, ctx: ctx}, nil
}

type registrations struct {
	grpc.ClientStream
	p    *Process
	ctx  context.Context
	sent bool
}

func (s *registrations) Recv() (*pluginproto.RegistrationSet, error) {
	if !s.sent {
		s.sent = true
		if err := s.p.called(s.ctx, "set"); err != nil {
			return nil, err
		}
		select {
		case m := <-s.p.sets:
			return m, nil
		default:
			return set(s.p.Plugin.Units, s.p.Plugin.Tools), nil
		}
	}
	select {
	case m := <-s.p.sets:
		return m, nil
	case <-s.p.ended:
		return nil, io.EOF
	case <-s.p.exited:
		return nil, errGone()
	case <-s.ctx.Done():
		return nil, status.FromContextError(s.ctx.Err()).Err()
	}
}

func set(units []unit.Definition, tools []*pluginproto.Tool) *pluginproto.RegistrationSet {
	m := &pluginproto.RegistrationSet{Tools: tools}
	for i := range units {
		m.Units = append(m.Units, foldwire.Unit(&units[i]))
	}
	return m
}

func (p *Process) Fold(ctx context.Context, _ ...grpc.CallOption) (pluginproto.Plugin_FoldClient, error) {
	if err := p.called(ctx, "fold"); err != nil {
		return nil, err
	}
	s := &fold{p: p, ctx: ctx, up: make(chan *pluginproto.FoldReply, 1024), ended: make(chan struct{})}
	s.bench = unit.NewBench(func(key string) *unit.Compiled {
		for _, def := range p.Plugin.Units {
			if def.Key == key {
				c, _ := unit.Compile(def)
				return c
			}
		}
		return nil
	})
	return s, nil
}

// fold answers each batch while it is sent: a plugin that folds in no time, unless Called takes some.
type fold struct {
	grpc.ClientStream
	p     *Process
	ctx   context.Context
	bench *unit.Bench
	up    chan *pluginproto.FoldReply
	over  sync.Once
	ended chan struct{}
	err   error
}

// ErrMute, as what Called says to a "batch", leaves it without an answer.
var ErrMute = errors.New("there is no answer")

func (s *fold) Send(m *pluginproto.FoldBatch) error {
	if err := s.p.called(s.ctx, "batch"); err != nil {
		if s.p.Alive() && s.ctx.Err() == nil && !errors.Is(err, ErrMute) {
			s.over.Do(func() {
				s.err = err
				close(s.ended)
			})
		}
		return nil
	}
	b, err := foldwire.ReadBatch(m)
	if err != nil {
		return err
	}
	reply, err := s.bench.CarryOut(&b, func() error { return s.ctx.Err() })
	if err != nil {
		reply = unit.Reply{Err: err}
	}
	if !s.p.Alive() {
		return nil // It died in the fold.
	}
	for out := range foldwire.Replies(&reply, m.Batch, m.Generation) {
		s.up <- out
	}
	return nil
}

func (s *fold) Recv() (*pluginproto.FoldReply, error) {
	select {
	case m := <-s.up:
		return m, nil
	case <-s.ended:
		return nil, s.err
	case <-s.p.folded:
		return nil, io.EOF
	case <-s.p.exited:
		return nil, errGone()
	case <-s.ctx.Done():
		return nil, status.FromContextError(s.ctx.Err()).Err()
	}
}

// counts counts by name. Safe for concurrent use.
type counts struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counts) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[name]++
}

// Of gives how often it was counted.
func (c *counts) Of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[name]
}

// Hang waits until the caller has given up.
func Hang(ctx context.Context) error {
	<-ctx.Done()
	return status.FromContextError(ctx.Err()).Err()
}

// Sleep waits, unless the caller gives up before.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}
