// Command wrongplugin is a plugin for the tests of package host: a good one, unless its arguments name ways to misbehave. It speaks the protocol
// directly, so that it can break every rule of it.
//
// It offers the units count, sum and last, which fold "step" events and the "poison" ones, the tools add and stats, and owns "wrong/added".
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/internal/foldwire"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

func main() {
	go lifeline()
	s := &server{modes: map[string]string{}, folding: make(chan struct{}), draining: make(chan struct{})}
	for _, arg := range os.Args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		s.modes[name] = value
	}
	if s.is("evil") {
		fmt.Fprintf(os.Stderr, "%s\n{\"@level\":\"error\",\"@message\":%q,%q:1}\n", evil, "a\x1b[2J", "b\u009b")
	}
	if s.is("evil-greeting") {
		fmt.Println(evil)
		os.Exit(3)
	}
	if file := s.modes["version-file"]; file != "" {
		text, _ := os.ReadFile(file)
		s.modes["version"] = strings.TrimSpace(string(text))
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  pluginproto.Handshake(),
		VersionedPlugins: pluginproto.Sets(s),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return pluginproto.NewServer(append(opts, grpc.UnaryInterceptor(s.health)))
		},
		Logger: hclog.NewNullLogger(),
	})
}

// lifeline ends the process when its host ends.
func lifeline() {
	if os.Getenv(pluginproto.LifelineEnv) != pluginproto.LifelineStdin {
		return
	}
	buf := make([]byte, 1)
	for {
		if _, err := os.Stdin.Read(buf); err != nil {
			os.Exit(0)
		}
	}
}

type server struct {
	pluginproto.UnimplementedPluginServer
	modes      map[string]string
	generation uint64
	// limit is that of the config.
	limit int64
	local *unit.Local

	batches, events, replies, checks atomic.Int64
	// folding is closed by the first batch, draining by Drain.
	folding, draining chan struct{}
}

// dieAt exits at a frame of the fold stream, once: the file that die-once names says that it was done.
func (s *server) dieAt(mode string, frame int64) {
	if s.modes[mode] == strconv.FormatInt(frame, 10) && s.first("die-once") {
		os.Exit(9)
	}
}

// evil steers a terminal that it reaches: title, screen, colour, direction, lines.
const evil = "\x1b]0;owned\a\x1b[2J\u009b31m\u202e\x7fend\r\nfoldhost: all is well"

// first says whether this process is the first for which the mode is on: the file that it names says that there was one.
func (s *server) first(mode string) bool {
	f, err := os.OpenFile(s.modes[mode], os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// is says whether a mode is on.
func (s *server) is(mode string) bool { _, on := s.modes[mode]; return on }

// stumble hangs or exits in a call where a mode says so.
func (s *server) stumble(call string) {
	if s.is("hang-" + call) {
		fmt.Fprintf(os.Stderr, "hanging in %s\n", call)
		select {}
	}
	if s.is("exit-" + call) {
		fmt.Fprintf(os.Stderr, "exiting in %s\n", call)
		os.Exit(3)
	}
	if s.is("panic-" + call) {
		go panic("a panic in " + call)
		select {}
	}
	if s.is("slow-" + call) {
		time.Sleep(300 * time.Millisecond)
	}
}

// health spoils what go-plugin answers to a health check.
func (s *server) health(ctx context.Context, req any, call *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if call.FullMethod == grpc_health_v1.Health_Check_FullMethodName {
		s.stumble("health")
		switch {
		case s.is("no-health"):
			return nil, status.Error(codes.Unimplemented, "no health here")
		case s.is("not-serving"), s.is("not-serving-later") && s.checks.Add(1) > 1:
			return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_NOT_SERVING}, nil
		}
	}
	return handle(ctx, req)
}

func (s *server) Describe(context.Context, *pluginproto.DescribeRequest) (*pluginproto.DescribeResponse, error) {
	s.stumble("describe")
	if file := s.modes["exit-describe-if"]; file != "" {
		if _, err := os.Stat(file); err == nil {
			os.Exit(3)
		}
	}
	d := &pluginproto.DescribeResponse{
		Name: "wrongplugin", Version: "1.2.3", Summary: "a plugin for tests",
		ConfigSchema: []byte(`{"type":"object","properties":{"limit":{"type":"integer"}},"additionalProperties":false}`),
		OwnedEvents:  []*pluginproto.OwnedEvent{{Type: "wrong/added", DataSchema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}},
	}
	if s.is("required-config") {
		d.ConfigSchema = []byte(`{"type":"object","properties":{"limit":{"type":"integer"}},"required":["limit"]}`)
	}
	if s.is("evil") {
		d.Name, d.Version, d.Summary, d.BuiltWith = evil, evil, evil, evil
		d.OwnedEvents[0].Type = evil
	}
	if s.is("evil-describe") {
		return nil, status.Error(codes.Internal, evil)
	}
	if typ := s.modes["owns"]; typ != "" {
		d.OwnedEvents = []*pluginproto.OwnedEvent{{Type: typ}}
	}
	if s.is("bad-config-schema") {
		d.ConfigSchema = []byte(`{"type":12}`)
	}
	return d, nil
}

func (s *server) Configure(_ context.Context, r *pluginproto.ConfigureRequest) (*pluginproto.ConfigureResponse, error) {
	s.stumble("configure")
	s.generation = r.Generation
	s.limit, _ = event.Integer(event.Lookup(r.Config, "limit"))
	var err error
	if s.local, err = unit.NewLocal(s.definitions()...); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if s.is("evil-problem") {
		return &pluginproto.ConfigureResponse{Problems: []*pluginproto.ConfigProblem{{Path: evil, Message: evil}}}, nil
	}
	if s.is("config-problem") {
		return &pluginproto.ConfigureResponse{Problems: []*pluginproto.ConfigProblem{{Path: "$.limit", Message: "is not to its taste"}}}, nil
	}
	return &pluginproto.ConfigureResponse{}, nil
}

func (s *server) Registrations(_ *pluginproto.RegistrationsRequest, out pluginproto.Plugin_RegistrationsServer) error {
	s.stumble("register")
	set := &pluginproto.RegistrationSet{}
	for _, def := range s.definitions() {
		set.Units = append(set.Units, foldwire.Unit(&def))
	}
	if s.is("bad-key") {
		set.Units = append(set.Units, &pluginproto.Unit{Key: "no key!", StateSchema: []byte("{}")})
	}
	if s.is("bad-schema") {
		set.Units = append(set.Units, &pluginproto.Unit{Key: "unsound", StateSchema: []byte(`{"$ref":"file:///etc/passwd"}`)})
	}
	tool := func(name string, reads ...string) {
		set.Tools = append(set.Tools, &pluginproto.Tool{Name: name, Description: "for tests", ArgumentSchema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
			ResultSchema: []byte(`{"type":"object"}`), Reads: reads})
	}
	tool("add", s.key("count"))
	tool("stats")
	if s.is("bad-tool") {
		tool("no tool!")
		tool("reader", "somebody-else")
	}
	if s.is("evil") {
		set.Units = append(set.Units, &pluginproto.Unit{Key: evil, StateSchema: []byte("{}")})
		set.Units[0].EventTypes.Types = append(set.Units[0].EventTypes.Types, evil)
		set.Tools[0].Description = evil
		tool(evil)
	}
	if s.is("never") {
		set.Tools[0].Retry = pluginproto.Retry_RETRY_NEVER
	}
	if s.is("end-register-empty") {
		return nil
	}
	if err := out.Send(set); err != nil {
		return err
	}
	if s.is("end-register") {
		return nil
	}
	switch {
	case s.is("end-register-later"):
		<-s.folding
		return nil
	case s.is("fail-register-later"):
		<-s.folding
		return status.Error(codes.Unavailable, "no more registrations")
	case s.is("end-streams-to-drain"):
		<-s.draining
		return nil
	case s.is("shrink"): // A unit goes as soon as something is folded.
		<-s.folding
		set.Units = set.Units[:1]
		if err := out.Send(set); err != nil {
			return err
		}
	}
	<-out.Context().Done()
	return nil
}

func (s *server) Fold(stream pluginproto.Plugin_FoldServer) error {
	if s.is("end-fold") {
		return nil
	}
	if s.is("bare") {
		return bare(stream)
	}
	if wait, err := time.ParseDuration(s.modes["die-in"]); err == nil {
		time.AfterFunc(wait, func() { panic("a panic in the background") })
	}
	if s.is("mute-once") && s.first("mute-once") {
		return mute(stream)
	}
	var sending sync.Mutex
	var held []*pluginproto.FoldReply
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		s.stumble("fold")
		n := s.batches.Add(1)
		if n == 1 {
			close(s.folding)
		}
		s.dieAt("die-recv", n)
		s.events.Add(int64(len(m.Events)))
		b, err := foldwire.ReadBatch(m)
		if err != nil {
			return err
		}
		if s.is("keep-dropped") {
			b.Drop = nil
		}
		s.local.Submit(context.Background(), b, func(r unit.Reply) {
			sending.Lock()
			defer sending.Unlock()
			var out []*pluginproto.FoldReply
			for reply := range foldwire.Replies(&r, m.Batch, m.Generation) {
				out = append(out, s.spoil(reply, &b)...)
			}
			if s.is("out-of-order") {
				// Answers two by two, the later first, once there are two.
				if held = append(held, out...); len(held) < 2 && len(b.Events) > 0 {
					time.AfterFunc(20*time.Millisecond, func() {
						sending.Lock()
						defer sending.Unlock()
						for _, reply := range held {
							stream.Send(reply)
						}
						held = nil
					})
					return
				}
				out = nil
				for i := len(held) - 1; i >= 0; i-- {
					out = append(out, held[i])
				}
				held = nil
			}
			for _, reply := range out {
				s.dieAt("die-before", s.replies.Add(1))
				if stream.Send(reply) != nil {
					return
				}
				s.dieAt("die-after", s.replies.Load())
			}
		})
	}
}

// mute takes every batch and answers none.
func mute(stream pluginproto.Plugin_FoldServer) error {
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
}

// bare is what any stream costs: messages are decoded, and answered without having been looked at.
func bare(stream pluginproto.Plugin_FoldServer) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := stream.Send(&pluginproto.FoldReply{Batch: m.Batch, Last: true}); err != nil {
			return err
		}
	}
}

// spoil makes of a reply what a mode says. What is not about batches without events spares them.
func (s *server) spoil(m *pluginproto.FoldReply, b *unit.Batch) []*pluginproto.FoldReply {
	if len(b.Events) == 0 {
		if s.is("mute-openings") && len(b.Cells) == 0 {
			m.Values = nil
		}
		if s.is("mute-states") {
			m.States = nil
		}
		return []*pluginproto.FoldReply{m}
	}
	one := func() *pluginproto.CellValue { return &pluginproto.CellValue{Cell: uint64(b.Cells[0]), Seq: b.Through} }
	switch {
	case s.is("reply-twice"):
		return []*pluginproto.FoldReply{m, m}
	case s.is("reply-generation"):
		m.Generation--
	case s.is("reply-unasked"):
		m.Batch += 100
	case s.is("reply-unknown-cell"):
		m.Values = append(m.Values, &pluginproto.CellValue{Cell: 1 << 40, Seq: b.Through, View: []byte("1")})
	case s.is("reply-huge"):
		v := one()
		v.View = []byte(`"` + strings.Repeat("x", 17<<20) + `"`)
		m.Values = []*pluginproto.CellValue{v}
	case s.is("reply-utf8"):
		m.ProtoReflect().SetUnknown([]byte{8<<3 | 2, 2, 0xff, 0xfe})
	case s.is("reply-refused"):
		m.Refused = "not today"
	case s.is("reply-wrong-value"):
		for _, v := range m.Values {
			v.View = []byte(`"not a number"`)
		}
	case s.is("reply-no-json"):
		for _, v := range m.Values {
			v.View = []byte(`{"open`)
		}
	case s.is("reply-backwards"):
		for _, v := range m.Values {
			v.Seq = b.Through + 5
		}
	}
	return []*pluginproto.FoldReply{m}
}

func (s *server) CallTool(_ context.Context, r *pluginproto.CallToolRequest) (*pluginproto.CallToolResponse, error) {
	s.stumble("tool")
	ok := &pluginproto.ToolSuccess{Text: "done", Value: []byte(`{}`)}
	switch r.Tool {
	case "stats":
		ok.Value = fmt.Appendf(nil, `{"batches":%d,"events":%d,"pid":%d}`, s.batches.Load(), s.events.Load(), os.Getpid())
	case "add":
		n, _ := event.Integer(event.Lookup(r.Arguments, "n"))
		if n < 0 {
			return &pluginproto.CallToolResponse{Outcome: &pluginproto.CallToolResponse_Failure{Failure: &pluginproto.ToolFailure{Message: "n is below zero"}}}, nil
		}
		view := "null"
		if len(r.Values) > 0 {
			view = string(r.Values[0].View)
		}
		ok.Value = fmt.Appendf(nil, `{"seq":%d,"count":%s}`, r.Seq, view)
		ok.Events = []*pluginproto.NewEvent{{Type: "wrong/added", Data: fmt.Appendf(nil, `{"n":%d}`, n)}}
		if typ := s.modes["tool-appends"]; typ != "" {
			ok.Events[0].Type = typ
		}
		if s.is("tool-data") {
			ok.Events[0].Data = []byte(s.modes["tool-data"])
		}
		if s.is("tool-large-data") {
			ok.Events[0].Data = []byte(`{"n":1,"pad":"` + strings.Repeat("x", 5<<20) + `"}`)
		}
		if s.is("tool-bad-data") {
			ok.Events[0].Data = []byte(`{"n":"many"}`)
		}
		if s.is("tool-bad-value") {
			ok.Value = []byte(`[]`)
		}
	}
	return &pluginproto.CallToolResponse{Outcome: &pluginproto.CallToolResponse_Success{Success: ok}}, nil
}

func (s *server) Drain(context.Context, *pluginproto.DrainRequest) (*pluginproto.DrainResponse, error) {
	s.stumble("drain")
	close(s.draining)
	return &pluginproto.DrainResponse{}, nil
}
