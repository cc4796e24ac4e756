package launch

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/foldhost/foldhost/pluginproto"
)

// Process is a plugin process that runs, or ran, and the connection to it. Safe for concurrent use.
type Process struct {
	launcher *Launcher
	spec     Spec
	logger   *slog.Logger
	format   Format
	tail     tail
	// stdout gets what comes there after the handshake.
	stdout io.WriteCloser

	run   *run
	child *child
	conn  *grpc.ClientConn
	// alive ends with the process.
	alive context.Context
	die   context.CancelFunc
	// gone is closed when nothing is left: process, connection, goroutines.
	gone chan struct{}

	// helpers are the goroutines that read go-plugin's stdio stream and that stop the process. mu guards stopping, which is set when
	// the process is being stopped or is gone and no helper may start any more.
	helpers  sync.WaitGroup
	mu       sync.Mutex
	stopping bool
}

func newProcess(l *Launcher, spec Spec) *Process {
	p := &Process{launcher: l, spec: spec, logger: l.logger.With("plugin", spec.Plugin), gone: make(chan struct{})}
	if spec.Presets != "" {
		p.logger = p.logger.With("presets", spec.Presets)
	}
	p.stdout = p.output("stdout")
	p.alive, p.die = context.WithCancel(context.Background())
	return p
}

// output makes a writer that logs what is written to it, line by line.
func (p *Process) output(stream string) io.WriteCloser {
	log := &outputLog{logger: p.logger, stream: stream, now: time.Now}
	return &loggedLines{lines{emit: log.line}, log}
}

type loggedLines struct {
	lines
	log *outputLog
}

func (l *loggedLines) Close() error {
	l.lines.Close()
	l.log.close()
	return nil
}

// pipeBuffer is how much of a pipe is read at once. Every idle plugin holds two buffers.
const pipeBuffer = 8 << 10

// readStderr reads until the pipe ends or is given up.
func (p *Process) readStderr(f *os.File) {
	log := p.output("stderr")
	both := io.MultiWriter(&p.tail, log)
	buf := make([]byte, pipeBuffer)
	for {
		n, err := f.Read(buf)
		both.Write(buf[:n])
		if err != nil {
			break
		}
	}
	log.Close()
}

// Client makes the calls of the protocol. A unary call whose context has no deadline gets 10 s. When the process
// is gone calls fail with codes.Unavailable; Exited and Exit say why.
func (p *Process) Client() pluginproto.PluginClient { return pluginproto.NewPluginClient(p.conn) }

// Version is the protocol version that was negotiated.
func (p *Process) Version() int { return p.run.hs.version }

// Pid is the process's number, for people.
func (p *Process) Pid() int { return p.child.pid() }

// Tail is the end of what the process wrote to stderr, at most 64 KiB, made fit for terminals.
func (p *Process) Tail() string { return p.tail.String() }

// Exited is closed when the process has ended and its output is read. Then Exit says how.
func (p *Process) Exited() <-chan struct{} { return p.child.exited }

// Exit says how the process ended. It waits for that.
func (p *Process) Exit() Exit {
	<-p.child.exited
	return p.child.exit
}

// Health asks the plugin whether it serves. It is right to end the process when that fails: Kill. The error is a *NotServingError or a gRPC
// status.
func (p *Process) Health(ctx context.Context) error {
	answer, err := grpc_health_v1.NewHealthClient(p.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: pluginproto.HealthService})
	switch status.Code(err) {
	case codes.OK:
	case codes.NotFound, codes.Unimplemented:
		// What the health protocol says of a service that nobody has set, and what gRPC says where it is not served at all.
		return &NotServingError{Status: grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN.String()}
	default:
		return err
	}
	if s := answer.GetStatus(); s != grpc_health_v1.HealthCheckResponse_SERVING {
		return &NotServingError{Status: s.String()}
	}
	return nil
}

// NotServingError is a plugin that answers its health check, and not with SERVING.
type NotServingError struct {
	// Status is what it says of itself in the words of the health protocol: NOT_SERVING, UNKNOWN, or SERVICE_UNKNOWN, which also stands for a
	// plugin that serves no health at all.
	Status string
}

func (e *NotServingError) Error() string {
	if e.Status == grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN.String() {
		return fmt.Sprintf("it serves no grpc.health.v1.Health for the service %q, which the protocol asks for", pluginproto.HealthService)
	}
	return "it says of its health that it is " + e.Status
}

// Kill ends the process and all of its group at once. reason says why, for Exit and the log. It does not wait.
func (p *Process) Kill(reason string) { p.child.kill(reason) }

// Stop ends the process: it is asked to drain and to exit, then told by SIGTERM, then killed, each with its deadline. When ctx ends it
// is killed at once. Stop returns when nothing is left of it. Several may call it.
func (p *Process) Stop(ctx context.Context) Exit {
	p.child.expect()
	p.mu.Lock()
	if !p.stopping {
		p.stopping = true
		p.helpers.Go(p.askToStop)
	}
	p.mu.Unlock()
	select {
	case <-p.gone:
	case <-ctx.Done():
		p.child.kill("")
		<-p.gone
	}
	return p.child.exit
}

// shutdownAnswer bounds go-plugin's Shutdown: a plugin that has just answered Drain answers it at once.
const shutdownAnswer = time.Second

func (p *Process) askToStop() {
	ctx, cancel := context.WithTimeout(p.alive, p.spec.Timeouts.Drain)
	_, err := p.Client().Drain(ctx, &pluginproto.DrainRequest{})
	cancel()
	if code := status.Code(err); code == codes.OK || code == codes.Unimplemented {
		ctx, cancel := context.WithTimeout(p.alive, shutdownAnswer)
		// The answer may be cut off by the end of the server, so that an error says nothing.
		p.conn.Invoke(ctx, pluginproto.ShutdownMethod, &emptypb.Empty{}, &emptypb.Empty{})
		cancel()
		p.child.stdin.Close()
		if p.endsWithin(p.spec.Timeouts.Exit) {
			return
		}
	} else if code != codes.Unavailable && p.alive.Err() == nil { // One that ends by itself meanwhile, as after a config that it refuses, has nothing to drain.
		p.logger.Warn("the plugin did not drain", "error", err)
	}
	p.child.terminate()
	if !p.endsWithin(p.spec.Timeouts.Exit) {
		p.logger.Warn("the plugin did not end when asked, and is killed")
		p.child.kill("")
	}
}

func (p *Process) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.child.exited:
		return true
	case <-timer.C:
		return false
	}
}

// watch ends the process when its connection breaks, and cleans up when it ends.
func (p *Process) watch() {
	if p.conn.GetState() == connectivity.Ready {
		p.conn.WaitForStateChange(p.alive, connectivity.Ready)
	}
	// A process that ends breaks its connection first.
	if p.alive.Err() == nil && !p.endsWithin(p.spec.Timeouts.Exit) && !p.expected() {
		p.child.kill("its connection broke and it did not end")
	}
	<-p.child.exited
	exit := p.child.exit
	level := slog.LevelWarn
	if exit.Expected {
		level = slog.LevelInfo
	}
	p.logger.Log(context.Background(), level, "the plugin process ended", "exit", exit.String(), "expected", exit.Expected)
	p.conn.Close()
	p.mu.Lock()
	p.stopping = true
	p.mu.Unlock()
	p.helpers.Wait()
	p.launcher.forget(p)
	close(p.gone)
}

func (p *Process) expected() bool {
	p.child.mu.Lock()
	defer p.child.mu.Unlock()
	return p.child.expected
}

// Fail makes the error of a start that failed in a phase after Start, with all that is known of the process. It waits a moment for
// the exit of a process whose connection is broken. The process is the caller's to stop.
func (p *Process) Fail(phase Phase, err error) *StartError {
	if p.conn.GetState() != connectivity.Ready || status.Code(err) == codes.Unavailable {
		p.endsWithin(lastWords)
	}
	return p.failed(phase, err)
}
