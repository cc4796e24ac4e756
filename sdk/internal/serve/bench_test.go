package serve

import (
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/internal/foldwire"
	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// bare answers each batch without folding: what the stream costs by itself.
type bare struct {
	pluginproto.UnimplementedPluginServer
}

func (bare) Fold(stream pluginproto.Plugin_FoldServer) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return nil
		}
		if err := stream.Send(&pluginproto.FoldReply{Batch: m.Batch, Generation: m.Generation, Last: true}); err != nil {
			return err
		}
	}
}

// BenchmarkFoldStream sends batches of 200-byte events of one session with a window of four over a unix socket, both ends in this process.
// "bare" only decodes the messages.
func BenchmarkFoldStream(b *testing.B) {
	counting := compile(b, unit.Definition{Key: "n", StateSchema: json.RawMessage("true"), ViewSchema: json.RawMessage("true"), Inline: counter{}})
	folding := NewService(Plugin{Start: func(json.RawMessage, hclog.Logger) (Instance, []Problem) { return &fixed{units: counting}, nil }}, hclog.NewNullLogger())
	for _, mode := range []unit.Mode{unit.LastOnly, unit.EveryChange} {
		for _, bench := range []struct {
			name string
			impl pluginproto.PluginServer
		}{{"bare", bare{}}, {"folding", folding}} {
			b.Run(fmt.Sprintf("%s, mode %d", bench.name, mode), func(b *testing.B) { stream(b, bench.impl, mode) })
		}
	}
}

const benchEvents = 256

func stream(b *testing.B, impl pluginproto.PluginServer, mode unit.Mode) {
	lis, err := net.Listen("unix", filepath.Join(b.TempDir(), "s"))
	if err != nil {
		b.Fatal(err)
	}
	srv := pluginproto.NewServer(nil)
	pluginproto.RegisterPluginServer(srv, impl)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	conn, err := grpc.NewClient("unix:"+lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(pluginproto.CallOptions()...))
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		conn.Close()
		srv.Stop()
		<-served
	}()
	client := pluginproto.NewPluginClient(conn)
	client.Configure(b.Context(), &pluginproto.ConfigureRequest{})
	s, err := client.Fold(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	first := foldwire.Batch(&unit.Batch{Open: []unit.Open{{Cell: 1, Key: "n", Seq: -1}}, Through: -1}, 0, 1)
	if err := s.Send(first); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Recv(); err != nil {
		b.Fatal(err)
	}
	data := json.RawMessage(fmt.Sprintf(`{"text":"%0180d"}`, 1))
	events := make([]event.Event, benchEvents)
	window := make(chan struct{}, 4)
	received := make(chan error, 1)
	go func() {
		for range b.N {
			for {
				m, err := s.Recv()
				if err != nil {
					received <- err
					return
				}
				if m.Last {
					break
				}
			}
			<-window
		}
		received <- nil
	}()
	b.ReportAllocs()
	b.ResetTimer()
	seq := int64(0)
	for n := range b.N {
		window <- struct{}{}
		for i := range events {
			events[i] = event.Event{Type: "assistant/chunk", Seq: seq, Time: seq, Data: data}
			seq++
		}
		if err := s.Send(foldwire.Batch(&unit.Batch{Cells: []unit.CellID{1}, Events: events, Through: seq - 1, Mode: mode}, uint64(n)+1, 1)); err != nil {
			b.Fatal(err)
		}
	}
	if err := <-received; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N*benchEvents)/b.Elapsed().Seconds(), "events/s")
}

// counter counts events and reads nothing of them.
type counter struct{}

func (counter) Init() (unit.State, error) { return 0, nil }
func (counter) Apply(s unit.State, _ *event.Event) (unit.State, bool, error) {
	return s.(int) + 1, true, nil
}
func (counter) View(s unit.State) (json.RawMessage, error)   { return fmt.Appendf(nil, "%d", s), nil }
func (counter) Encode(s unit.State) (json.RawMessage, error) { return fmt.Appendf(nil, "%d", s), nil }
func (counter) Decode(raw json.RawMessage) (unit.State, error) {
	n, _ := event.Integer(raw)
	return int(n), nil
}

// BenchmarkCellMemory says what a cell costs in the plugin beside its state: one session each, its batch carried out.
func BenchmarkCellMemory(b *testing.B) {
	counting := compile(b, unit.Definition{Key: "n", StateSchema: json.RawMessage("true"), ViewSchema: json.RawMessage("true"), Inline: counter{}})
	const cells = 20000
	for b.Loop() {
		before := heap()
		f := newFolds(b.Context(), func(string) *unit.Compiled { return counting[0] }, func(job, unit.Reply) {})
		for id := unit.CellID(1); id <= cells; id++ {
			f.submit(job{}, unit.Batch{Open: []unit.Open{{Cell: id, Key: "n", Seq: -1}}, Cells: []unit.CellID{id}, Events: []event.Event{add(0, "a", "1")}}, nil)
		}
		f.wait()
		b.ReportMetric(float64(heap()-before)/cells, "B/cell")
		runtime.KeepAlive(f)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
