package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foldhost/foldhost/pluginproto"
)

// HasHost says whether the process was started as a plugin.
func HasHost() bool { return os.Getenv(pluginproto.CookieKey) == pluginproto.CookieValue }

// Process is this process as a plugin's. Take makes it.
type Process struct {
	// stdout is where the handshake goes, and nothing else. Everybody else's standard output is standard error.
	stdout *os.File
	stderr *os.File
	socket *socket
	Logger hclog.Logger
}

// Take takes standard output away from everybody, so that no print can break the handshake, watches the lifeline, and sends the logs
// of the standard library to standard error as JSON. It is the first thing that a plugin process does.
func Take() (*Process, error) {
	p := &Process{stderr: os.Stderr, socket: &socket{}}
	if os.Getenv(pluginproto.LifelineEnv) == pluginproto.LifelineStdin {
		go p.socket.watch(os.Stdin, func() { os.Exit(0) })
	}
	stdout, err := takeStdout()
	if err != nil {
		return nil, fmt.Errorf("take standard output: %w", err)
	}
	p.stdout, os.Stdout = stdout, os.Stderr
	// The host filters; it keeps levels.
	p.Logger = hclog.New(&hclog.LoggerOptions{JSONFormat: true, Level: hclog.Debug, Output: p.stderr})
	slog.SetDefault(slog.New(slog.NewJSONHandler(p.stderr, &slog.HandlerOptions{Level: slog.LevelDebug})))
	return p, nil
}

// stopTimeout is how long a plugin's own goroutines are waited for after the host asked the process to exit. The host has drained
// before, so that nothing should run; it kills after two seconds.
const stopTimeout = time.Second

// Serve serves until the host asks the process to exit, or is gone. The error says why serving did not begin.
func (p *Process) Serve(s *Service) error {
	if err := p.socket.relay(p.stdout); err != nil {
		return err
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  pluginproto.Handshake(),
		VersionedPlugins: pluginproto.Sets(s),
		// go-plugin's own lines are of no use to anybody but its authors.
		Logger: hclog.New(&hclog.LoggerOptions{Name: "go-plugin", JSONFormat: true, Level: hclog.Warn, Output: p.stderr}),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return pluginproto.NewServer(append(opts, Interceptors(p.Logger, p.before())...))
		},
	})
	if !p.socket.said() {
		return errors.New("serving did not begin; the line before says why")
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		p.Logger.Warn("the plugin stopped with work unfinished", "reason", err.Error())
	}
	return nil
}

// before runs before each call.
func (p *Process) before() func(method string) {
	// go-plugin points os.Stdout and os.Stderr at pipes of its own right before it accepts calls, and whoever prints then waits for
	// the host to read them. With the first call that is done with.
	settle := sync.OnceFunc(func() {
		os.Stdout, os.Stderr = p.stderr, p.stderr
		// What the plugin starts is no plugin.
		os.Unsetenv(pluginproto.CookieKey)
		os.Unsetenv(pluginproto.LifelineEnv)
	})
	return func(method string) {
		settle()
		if method == pluginproto.ShutdownMethod {
			p.socket.asked.Store(true)
		}
	}
}

// Interceptors turn panics of the handlers into errors, and call before ahead of each call.
func Interceptors(logger hclog.Logger, before func(method string)) []grpc.ServerOption {
	// contain must be deferred directly: recover works nowhere else.
	contain := func(method string, err *error) {
		if v := recover(); v != nil {
			logger.Error("a call panicked", "method", method, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			*err = status.Errorf(codes.Internal, "the plugin panicked in %s: %.512s", method, fmt.Sprint(v))
		}
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
			defer contain(info.FullMethod, &err)
			before(info.FullMethod)
			return next(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
			defer contain(info.FullMethod, &err)
			before(info.FullMethod)
			return next(srv, stream)
		}),
	}
}
