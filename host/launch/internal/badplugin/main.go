// Badplugin is a plugin that misbehaves on command: the environment variable BADPLUGIN says how it starts, and the name of a tool
// what it does then. The tests of the launcher hold every kind of damage that a process can do in it.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/foldhost/foldhost/pluginproto"
)

func init() {
	if os.Getenv("BADPLUGIN") == "panic-in-init" {
		panic("the plugin panics in init")
	}
}

func main() {
	mode := os.Getenv("BADPLUGIN")
	if mode != "no-lifeline" {
		go func() {
			io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
	}
	if start, ok := starts[mode]; ok {
		start()
	}
	if rest, ok := strings.CutPrefix(mode, "say "); ok { // "say 1|7|unix|SOCKET|grpc"
		fmt.Println(strings.ReplaceAll(rest, "SOCKET", filepath.Join(os.Getenv(pluginproto.SocketDirEnv), "s")))
		select {}
	}
	serve()
}

// starts are the ways not to start.
var starts = map[string]func(){
	"print-first": func() { fmt.Println("hello from init"); fmt.Println("and more") },
	"exit-3": func() {
		fmt.Fprintln(os.Stderr, "cannot open config")
		os.Exit(3)
	},
	"exit-0":  func() { os.Exit(0) },
	"hang":    func() { select {} },
	"no-line": func() { fmt.Print("a line without an end"); os.Exit(4) },
	"flood": func() {
		buf := make([]byte, 1<<16)
		for {
			os.Stdout.Write(buf)
		}
	},
	"binary": func() { os.Stdout.Write([]byte("\x00\xff\x1b[2J|\n")); select {} },
	"close-stdout": func() {
		fmt.Fprintln(os.Stderr, "closing stdout")
		os.Stdout.Close()
		select {}
	},
	"wrong-cookie": func() {
		plugin.Serve(&plugin.ServeConfig{
			HandshakeConfig: plugin.HandshakeConfig{MagicCookieKey: "OTHER", MagicCookieValue: "x", ProtocolVersion: 1},
			Plugins:         plugin.PluginSet{}, GRPCServer: plugin.DefaultGRPCServer,
		})
	},
	"kill-9":           func() { signalSelf("KILL"); select {} },
	"term":             func() { signalSelf("TERM"); select {} },
	"accept-and-close": func() { listen(func(c net.Conn) { c.Close() }) },
	"accept-and-hang":  func() { listen(func(net.Conn) {}) },
	"accept-and-exit":  func() { listen(func(net.Conn) { fmt.Fprintln(os.Stderr, "last words"); os.Exit(6) }) },
	"accept-and-talk": func() {
		listen(func(c net.Conn) { io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n"); io.Copy(io.Discard, c) })
	},
	"not-serving":   func() { bare(grpc_health_v1.HealthCheckResponse_NOT_SERVING) },
	"bare-and-stay": func() { bare(grpc_health_v1.HealthCheckResponse_SERVING) },
	"bare":          func() { bare(grpc_health_v1.HealthCheckResponse_SERVING) },
}

// announce prints the handshake of a socket in the directory that the host made.
func announce() net.Listener {
	path := filepath.Join(os.Getenv(pluginproto.SocketDirEnv), "s")
	lis, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	fmt.Printf("1|%d|unix|%s|grpc\n", pluginproto.Version1, path)
	return lis
}

func listen(with func(net.Conn)) {
	lis := announce()
	for {
		c, err := lis.Accept()
		if err != nil {
			panic(err)
		}
		go with(c)
	}
}

// bare serves without go-plugin, as a plugin in another language does: the protocol, health, and nothing else.
func bare(status grpc_health_v1.HealthCheckResponse_ServingStatus) {
	srv := pluginproto.NewServer(nil)
	h := health.NewServer()
	h.SetServingStatus(pluginproto.HealthService, status)
	grpc_health_v1.RegisterHealthServer(srv, h)
	pluginproto.RegisterPluginServer(srv, &server{stop: srv.Stop})
	srv.Serve(announce())
	if os.Getenv("BADPLUGIN") == "bare-and-stay" {
		select {}
	}
	os.Exit(0)
}

func serve() {
	s := &server{stop: func() { os.Exit(0) }}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  pluginproto.Handshake(),
		VersionedPlugins: pluginproto.Sets(s),
		Logger:           hclog.NewNullLogger(),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			srv := pluginproto.NewServer(opts)
			s.stop = srv.Stop
			return srv
		},
	})
	if os.Getenv("BADPLUGIN") == "ignore-shutdown" {
		select {}
	}
}

// stderr is the true one; go-plugin replaces os.Stderr.
var stderr, stdout = os.Stderr, os.Stdout

type server struct {
	pluginproto.UnimplementedPluginServer
	stop func()
}

func (s *server) Drain(ctx context.Context, _ *pluginproto.DrainRequest) (*pluginproto.DrainResponse, error) {
	if os.Getenv("BADPLUGIN") == "ignore-drain" {
		select {}
	}
	return &pluginproto.DrainResponse{}, nil
}

// CallTool does what the tool's name says. The result's text is what it has to tell.
func (s *server) CallTool(ctx context.Context, req *pluginproto.CallToolRequest) (*pluginproto.CallToolResponse, error) {
	name, arg, _ := strings.Cut(req.Tool, " ")
	say := func(text string) (*pluginproto.CallToolResponse, error) {
		return &pluginproto.CallToolResponse{Outcome: &pluginproto.CallToolResponse_Success{Success: &pluginproto.ToolSuccess{Text: text}}}, nil
	}
	number := func() int { n, _ := strconv.Atoi(arg); return n }
	switch name {
	case "env":
		return say(strings.Join(os.Environ(), "\n"))
	case "args":
		return say(strings.Join(os.Args, "\n"))
	case "exe":
		return say(executable())
	case "inherited":
		return say(inherited)
	case "stderr":
		stderr.Write(req.Arguments)
	case "stdout":
		stdout.Write(req.Arguments)
	case "print": // through go-plugin's stream
		os.Stdout.Write(req.Arguments)
	case "stderr-flood":
		line := []byte(strings.Repeat("x", 200) + "\n")
		for range number() {
			stderr.Write(line)
		}
	case "answer": // with so many bytes
		return say(strings.Repeat("x", number()))
	case "exit":
		os.Exit(number())
	case "panic":
		panic("in a call")
	case "panic-elsewhere":
		go func() { panic("in a goroutine") }()
		select {}
	case "hang":
		select {}
	case "signal":
		signalSelf(arg)
		select {} // until it arrives
	case "ignore-term":
		ignoreTerm()
	case "join-group":
		if err := joinGroup(); err != nil {
			return nil, err
		}
	case "stop-serving": // and live on
		go s.stop()
		select {}
	case "grandchild", "daemon": // which holds stdin, stdout and stderr, and lives for long; a daemon leaves the group
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "BADPLUGIN=hang-orphan")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.NewFile(0, ""), stdout, stderr
		if name == "daemon" {
			leaveGroup(cmd)
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		return say(strconv.Itoa(cmd.Process.Pid))
	default:
		return nil, fmt.Errorf("no such tool: %s", name)
	}
	return say("")
}

func init() {
	if os.Getenv("BADPLUGIN") == "hang-orphan" {
		time.Sleep(time.Hour)
	}
}

func executable() string {
	// The content tells which file runs, whatever its name.
	return version + " " + os.Args[0]
}

// inherited names what the process was given beyond descriptors 0 to 2.
var inherited = func() string {
	var out []string
	for fd := 3; fd < 64; fd++ {
		if target, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil {
			out = append(out, target)
		}
	}
	return strings.Join(out, "\n")
}()

// version is set by the linker, to tell two builds apart.
var version = "first"
