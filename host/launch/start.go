package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foldhost/foldhost/pluginproto"
)

// Start checks the file, runs it, shakes hands and connects. The process that it returns answers on its connection; nothing has
// been asked of it yet. The error is a *StartError, or ErrClosed; nothing is left of the process then.
func (l *Launcher) Start(ctx context.Context, spec Spec) (*Process, error) {
	if !l.enter() {
		return nil, ErrClosed
	}
	defer l.leave()
	spec.Timeouts = spec.Timeouts.withDefaults()
	spec.MTLS = spec.MTLS || runtime.GOOS == "windows"
	ctx, cancel := context.WithTimeout(ctx, spec.Timeouts.Start)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()

	p := newProcess(l, spec)
	file, err := Inspect(spec.Path)
	if err != nil {
		return nil, p.failed(PhaseFile, err)
	}
	defer file.Close()
	p.format = file.Format
	for _, warning := range file.Warnings {
		p.logger.Warn("the plugin's file should be guarded better", "reason", warning)
	}
	path := file.Resolved
	if spec.SHA256 != "" {
		if err := file.verify(ctx, spec.SHA256); err != nil {
			return nil, p.failed(PhaseFile, err)
		}
		var byPath bool
		if path, byPath = file.execPath(); byPath {
			p.logger.Warn("the file was hashed, and is executed by its path: who can replace it in between is not found out", "file", file.Path)
		}
	}
	dir, err := l.sockets.newDir()
	if err != nil {
		return nil, p.failed(PhaseExec, err)
	}
	defer dir.remove()

	creds, err := p.shakeHands(ctx, path, dir.path)
	if err != nil {
		if p.run.process() == nil {
			return nil, p.abandon(PhaseExec, err)
		}
		return nil, p.abandon(PhaseHandshake, err)
	}
	if err := p.connect(ctx, creds); err != nil {
		return nil, p.abandon(PhaseHandshake, err)
	}
	if !l.adopt(p) {
		return nil, p.abandon(PhaseHandshake, ErrClosed)
	}
	go p.watch()
	p.logger.Debug("the plugin process runs", "file", spec.Path, "pid", p.Pid(), "protocolVersion", p.Version())
	return p, nil
}

// shakeHands runs the process and has go-plugin negotiate over its first line. It gives the credentials for the connection.
func (p *Process) shakeHands(ctx context.Context, path, socketDir string) (credentials.TransportCredentials, error) {
	p.run = newRun(handshakeRules{socketDir: socketDir, mtls: p.spec.MTLS}, p.stdout)
	p.run.start = func(env []string) (*child, error) { return p.execute(path, socketDir, env) }
	// One configuration for each attempt: go-plugin writes to it.
	config := &plugin.ClientConfig{
		HandshakeConfig:  pluginproto.Handshake(),
		VersionedPlugins: pluginproto.Sets(nil),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         p.spec.MTLS,
		SkipHostEnv:      true,
		Logger:           hclog.New(&hclog.LoggerOptions{Level: hclog.Off}),
		// Ours ends the process first, and with it go-plugin's waiting.
		StartTimeout:     p.spec.Timeouts.Start + time.Minute,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: socketDir},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, tmpDir string) (runner.Runner, error) {
			os.Remove(tmpDir) // go-plugin's own directory, which would make the path of the socket longer.
			p.run.env = cmd.Env
			return p.run, nil
		},
	}
	started := make(chan error, 1)
	go func() {
		_, err := plugin.NewClient(config).Start()
		p.run.lineWrite.Close() // go-plugin waits for more lines otherwise.
		started <- err
	}()
	var err error
	select {
	case err = <-started:
	case <-ctx.Done():
		p.run.end("it did not shake hands in time")
		if err = <-started; err != nil {
			return nil, fmt.Errorf("the handshake did not come in time: %w", context.Cause(ctx))
		}
	}
	switch {
	case err == nil && config.TLSConfig != nil:
		return credentials.NewTLS(config.TLSConfig), nil
	case err == nil:
		return insecure.NewCredentials(), nil
	}
	if own := p.run.why(); own != nil {
		return nil, own
	}
	return nil, err
}

// execute runs the file on the launcher's thread.
func (p *Process) execute(path, socketDir string, protocol []string) (*child, error) {
	if socketDir != "" {
		protocol = append(protocol, pluginproto.SocketDirEnv+"="+socketDir)
	}
	protocol = append(protocol, pluginproto.LifelineEnv+"="+pluginproto.LifelineStdin)
	return startChild(p.launcher.thread, &exec.Cmd{
		Path: path,
		Args: append([]string{p.spec.Path}, p.spec.Args...),
		Env:  environment(os.Environ(), p.spec.Env, protocol, runtime.GOOS),
	}, p.run.readStdout, p.readStderr)
}

// abandon ends what there is of the process and makes the error. A process that is about to end by itself gets the time to: its exit
// code says more than ours.
func (p *Process) abandon(phase Phase, err error) *StartError {
	if c := p.run.process(); c != nil {
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) && p.run.endsByItself() {
			select {
			case <-c.exited:
			case <-time.After(lastWords):
			}
		}
		c.kill("its start failed")
		<-c.exited
	}
	if p.conn != nil {
		p.conn.Close()
		p.helpers.Wait()
	}
	return p.failed(phase, err)
}

// lastWords is how long a process that has closed its stdout or its connection may take to end: 500 ms, in which a Go program
// writes the stacks of its goroutines.
const lastWords = 500 * time.Millisecond

// failed collects what is known about a failed start.
func (p *Process) failed(phase Phase, err error) *StartError {
	e := &StartError{Plugin: p.spec.Plugin, File: p.spec.Path, Phase: phase, Err: err}
	f := facts{phase: phase, err: err, format: p.format, silent: true}
	if p.run != nil {
		e.Stdout = p.run.said()
		f.silent = e.Stdout == "" && !p.run.shookHands()
		if c := p.run.process(); c != nil {
			select {
			case <-c.exited:
				if c.exit.KilledFor == "" && !c.exit.Expected {
					e.Exit = &c.exit
				}
			default:
			}
		}
	}
	e.Stderr = p.tail.String()
	f.exit = e.Exit
	if phase == PhaseExec {
		f.needs, f.lacks = needed(p.spec.Path, p.format)
		if f.lacks == nil && p.spec.SHA256 != "" && runtime.GOOS == "linux" && !isDir("/proc/self/fd") {
			f.needs, f.lacks = "/proc", fs.ErrNotExist // through which an open file is executed
		}
	}
	e.Hint = hint(f)
	return e
}
