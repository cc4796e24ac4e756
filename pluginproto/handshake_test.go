package pluginproto

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

func TestEveryVersionHasASetThatBothSidesCanUse(t *testing.T) {
	sets := Sets(UnimplementedPluginServer{})
	for _, v := range Versions() {
		p, ok := sets[v][ServiceName].(plugin.GRPCPlugin)
		if !ok {
			t.Fatalf("version %d has no gRPC service %q", v, ServiceName)
		}
		if err := p.GRPCServer(nil, grpc.NewServer()); err != nil {
			t.Errorf("version %d cannot be served: %v", v, err)
		}
	}
	if len(sets) != len(Versions()) {
		t.Errorf("%d sets for %d versions", len(sets), len(Versions()))
	}
	host := Sets(nil)[Version1][ServiceName].(plugin.GRPCPlugin)
	if err := host.GRPCServer(nil, grpc.NewServer()); err == nil {
		t.Error("a set without an implementation was served")
	}
}

// sized answers a call with as many bytes as it was asked for by the length of the tool's name.
type sized struct {
	UnimplementedPluginServer
	answer int
}

func (s sized) CallTool(context.Context, *CallToolRequest) (*CallToolResponse, error) {
	return &CallToolResponse{Outcome: &CallToolResponse_Success{Success: &ToolSuccess{Value: make([]byte, s.answer)}}}, nil
}

func TestMessagesAreBoundedInBothDirections(t *testing.T) {
	// A message is its payload and a few bytes for the fields around it.
	const fits, tooLarge = MaxMessageBytes - 64, MaxMessageBytes + 1
	for _, tt := range []struct {
		name         string
		down, answer int
		want         codes.Code
	}{
		{"the largest down", fits, 0, codes.OK},
		{"the largest up", 0, fits, codes.OK},
		{"one too large down", tooLarge, 0, codes.ResourceExhausted},
		{"one too large up", 0, tooLarge, codes.ResourceExhausted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lis := bufconn.Listen(1 << 20)
			srv := NewServer(nil)
			RegisterPluginServer(srv, sized{answer: tt.answer})
			served := make(chan error, 1)
			go func() { served <- srv.Serve(lis) }()
			defer func() {
				srv.Stop()
				if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
					t.Error(err)
				}
			}()
			conn, err := grpc.NewClient("passthrough:bufconn",
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return lis.DialContext(ctx) }),
				grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(CallOptions()...))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, err = NewPluginClient(conn).CallTool(t.Context(), &CallToolRequest{Arguments: make([]byte, tt.down)})
			if got := status.Code(err); got != tt.want {
				t.Errorf("got %v (%v), want %v", got, err, tt.want)
			}
		})
	}
}
