package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// summer adds the numbers that its events carry up; "bad" is an error, "panic" a panic, and "wait" waits.
type summer struct {
	entered chan string   // gets the session's name where a fold waits
	leave   chan struct{} // lets it go on
}

func (s summer) Init() (unit.State, error) { return 0, nil }

func (s summer) Apply(st unit.State, ev *event.Event) (unit.State, bool, error) {
	switch text := string(ev.Data); text {
	case `"bad"`:
		return nil, false, errors.New("a bad event")
	case `"panic"`:
		panic("a panic")
	case `"wait"`:
		s.entered <- ev.Type
		<-s.leave
		return st.(int) + 1, true, nil
	default:
		var n int
		if err := json.Unmarshal(ev.Data, &n); err != nil {
			return nil, false, err
		}
		return st.(int) + n, n != 0, nil
	}
}

func (s summer) View(st unit.State) (json.RawMessage, error) {
	return json.RawMessage(fmt.Sprint(st)), nil
}
func (s summer) Encode(st unit.State) (json.RawMessage, error) { return s.View(st) }
func (s summer) Decode(raw json.RawMessage) (unit.State, error) {
	var n int
	err := json.Unmarshal(raw, &n)
	return n, err
}

func summing(key string, s summer, types ...string) unit.Definition {
	return unit.Definition{Key: key, StateSchema: json.RawMessage(`{"type":"integer"}`), ViewSchema: json.RawMessage(`{"type":"integer"}`), Events: types, Inline: s}
}

func compile(t testing.TB, defs ...unit.Definition) []*unit.Compiled {
	t.Helper()
	var out []*unit.Compiled
	for _, d := range defs {
		c, err := unit.Compile(d)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

func add(seq int64, typ, data string) event.Event {
	return event.Event{Type: typ, Seq: seq, Data: json.RawMessage(data)}
}

// fixed is an instance whose offer a test changes.
type fixed struct {
	mu      sync.Mutex
	units   []*unit.Compiled
	tools   []unit.Tool
	changed chan struct{}
	stopped bool
}

func (f *fixed) Offer() ([]*unit.Compiled, []unit.Tool, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return f.units, f.tools, f.changed
}

func (f *fixed) offer(units []*unit.Compiled, tools []unit.Tool) {
	f.Offer()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.units, f.tools = units, tools
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fixed) Stop(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	return nil
}

// log is what the service wrote.
type log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *log) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.buf.String(), text)
}

// connect serves a plugin and returns a client of it.
func connect(t *testing.T, p Plugin) (pluginproto.PluginClient, *log) {
	t.Helper()
	out := &log{}
	logger := hclog.New(&hclog.LoggerOptions{Output: out, JSONFormat: true})
	srv := pluginproto.NewServer(Interceptors(logger, func(string) {}))
	pluginproto.RegisterPluginServer(srv, NewService(p, logger))
	lis := bufconn.Listen(1 << 20)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	conn, err := grpc.NewClient("passthrough:bufconn",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(pluginproto.CallOptions()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		srv.Stop()
		<-served
	})
	return pluginproto.NewPluginClient(conn), out
}

// configured serves an instance that takes any config.
func configured(t *testing.T, f *fixed) (pluginproto.PluginClient, *log) {
	t.Helper()
	client, out := connect(t, Plugin{Name: "test", Start: func(json.RawMessage, hclog.Logger) (Instance, []Problem) { return f, nil }})
	if _, err := client.Configure(t.Context(), &pluginproto.ConfigureRequest{}); err != nil {
		t.Fatal(err)
	}
	return client, out
}
