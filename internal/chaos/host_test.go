//go:build unix

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/eventlog/sqlite"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
	"github.com/foldhost/foldhost/session"
)

// What tells a child what to do, in its environment.
const (
	envDir     = "CHAOS_DIR" // its data; set in a child alone
	envListen  = "CHAOS_LISTEN"
	envPlugins = "CHAOS_PLUGINS"
)

// ready is what a child says once it listens and its plugins serve.
const ready = "ready\n"

// heartbeat is that of streams: short, so that a connection on which nothing comes is soon given up.
const heartbeat = 200 * time.Millisecond

// child is a host that serves until it is told to end, or killed.
func child() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	store, err := sqlite.Open(ctx, os.Getenv(envDir), sqlite.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	h, err := host.Open(host.Options{Store: store, Logger: logger,
		// Sessions go cold and come back.
		Session: session.Options{IdleAfter: 300 * time.Millisecond},
		Plugins: &host.PluginOptions{Dir: os.Getenv(envPlugins), Config: &config.File{Plugins: map[string]config.Plugin{"todo": {Config: json.RawMessage(`{"allowParallelInProgress":true}`)}}}},
	})
	if err != nil {
		return err
	}
	defer h.Close()
	l, err := net.Listen("tcp", os.Getenv(envListen))
	if err != nil {
		return err
	}
	if err := h.WaitPlugins(ctx); err != nil {
		return err
	}
	a := api.New(api.Options{Host: h, Logger: logger, Heartbeat: heartbeat, WriteTimeout: 2 * time.Second})
	defer a.Close()
	os.Stdout.WriteString(ready)
	return a.Serve(ctx, l)
}

// backend is the host as the harness has it: a process, of which there is another one from time to time. It belongs to the goroutine of the test.
type backend struct {
	t                     *testing.T
	dir, plugins, address string
	process               *exec.Cmd
	client                *client.Client
	said                  bytes.Buffer
	saying                sync.Mutex
	kills, stops          int
}

func newBackend(t *testing.T, plugins string) *backend {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	b := &backend{t: t, dir: filepath.Join(t.TempDir(), "data"), plugins: plugins, address: address}
	if b.client, err = client.New(client.Options{URL: "http://" + address}); err != nil {
		t.Fatal(err)
	}
	b.start()
	t.Cleanup(func() {
		b.client.Close()
		b.end(syscall.SIGTERM)
	})
	return b
}

// Write takes what a child says.
func (b *backend) Write(p []byte) (int, error) {
	b.saying.Lock()
	defer b.saying.Unlock()
	return b.said.Write(p)
}

func (b *backend) start() {
	b.t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^$")
	c.Env = append(os.Environ(), envDir+"="+b.dir, envListen+"="+b.address, envPlugins+"="+b.plugins)
	c.Stderr = b
	out, err := c.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.process = c
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != ready {
		b.t.Fatalf("the host does not come up: %q, %v\n%s", line, err, b.words())
	}
}

// words are what its processes have said.
func (b *backend) words() string {
	b.saying.Lock()
	defer b.saying.Unlock()
	return b.said.String()
}

// end ends the process, and waits for it.
func (b *backend) end(s syscall.Signal) {
	b.t.Helper()
	if err := b.process.Process.Signal(s); err != nil {
		b.t.Errorf("the host has ended by itself: %v\n%s", err, b.words())
	}
	err := b.process.Wait()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed && s == syscall.SIGTERM && exit.ExitCode() != 0 {
		b.t.Errorf("the host was told to end: %v\n%s", err, b.words())
	}
}

// again ends the host and starts it again.
func (b *backend) again(s syscall.Signal) {
	if s == syscall.SIGKILL {
		b.kills++
	} else {
		b.stops++
	}
	b.end(s)
	b.start()
}

// killPlugin kills the process of a plugin; false says that there is none at the moment.
func (b *backend) killPlugin(ctx context.Context, name string) bool {
	all, err := b.client.Plugins(ctx)
	if err != nil {
		return false
	}
	for _, p := range all {
		if p.Name == name && p.PID > 0 {
			return syscall.Kill(int(p.PID), syscall.SIGKILL) == nil
		}
	}
	return false
}

// build builds the plugins that ship.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"todo", "title", "tokenusage", "imagelimits"} {
		out, err := exec.Command("go", "build", "-o", filepath.Join(dir, name), "github.com/foldhost/foldhost/plugins/"+name).CombinedOutput()
		if err != nil {
			t.Fatalf("build %s: %v\n%s", name, err, out)
		}
	}
	return dir
}
