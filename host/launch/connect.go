package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/foldhost/foldhost/pluginproto"
)

// connect makes the one connection and waits until it stands.
func (p *Process) connect(ctx context.Context, creds credentials.TransportCredentials) error {
	p.child = p.run.process()
	// A process that ends while it is connected to ends the waiting.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.helpers.Go(func() {
		<-p.child.exited
		cancel(errEnded)
		p.die()
	})
	dial := &oneDial{network: p.run.hs.network, address: p.run.hs.address}
	conn, err := grpc.NewClient("passthrough:///plugin",
		grpc.WithContextDialer(dial.dial),
		grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(pluginproto.CallOptions()...),
		grpc.WithUnaryInterceptor(deadline(callTimeout)),
		grpc.WithIdleTimeout(0), // An idle connection that is closed could not be made again.
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy())
	if err != nil {
		return err
	}
	p.conn = conn
	conn.Connect()
	for {
		switch state := conn.GetState(); state {
		case connectivity.Ready:
			p.helpers.Go(p.readGoPluginStdio)
			return nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			if err := dial.err(); err != nil {
				return fmt.Errorf("connect to the plugin: %w", err)
			}
			return errNoGRPC
		default:
			if !conn.WaitForStateChange(ctx, state) {
				return fmt.Errorf("the plugin announced its address and does not answer there: %w", context.Cause(ctx))
			}
		}
	}
}

var (
	errEnded  = errors.New("the process ended")
	errNoGRPC = errors.New("the plugin accepted the connection and did not speak gRPC on it, or not with the certificates that were exchanged")
	errOver   = errors.New("the connection to the plugin is over")
)

// oneDial dials once. A second connection would be to nobody: the socket is removed once the first one stands, and a plugin whose
// connection broke is ended.
type oneDial struct {
	network, address string

	mu     sync.Mutex
	dialed bool
	failed error
}

func (d *oneDial) dial(ctx context.Context, _ string) (net.Conn, error) {
	d.mu.Lock()
	again := d.dialed
	d.dialed = true
	d.mu.Unlock()
	if again {
		return nil, errOver
	}
	conn, err := new(net.Dialer).DialContext(ctx, d.network, d.address)
	d.mu.Lock()
	d.failed = err
	d.mu.Unlock()
	return conn, err
}

func (d *oneDial) err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// callTimeout bounds a unary call whose context has no deadline: what answers at all does within milliseconds, and who calls a tool, which may take longer, has a deadline.
const callTimeout = 10 * time.Second

// deadline gives a unary call one when its context has none: no call waits for a plugin for ever.
func deadline(timeout time.Duration) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if _, has := ctx.Deadline(); !has {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
}

// readGoPluginStdio reads what a Go plugin prints after it began to serve. Other plugins do not have the call.
func (p *Process) readGoPluginStdio() {
	stream, err := p.conn.NewStream(p.alive, &grpc.StreamDesc{ServerStreams: true}, pluginproto.StdioMethod)
	if err != nil || stream.SendMsg(&emptypb.Empty{}) != nil || stream.CloseSend() != nil {
		return
	}
	stdout, stderr := p.output("stdout"), p.output("stderr")
	defer stdout.Close()
	defer stderr.Close()
	both := io.MultiWriter(&p.tail, stderr)
	for {
		var m pluginproto.GoPluginStdio
		if stream.RecvMsg(&m) != nil {
			return
		}
		switch m.Channel {
		case 1:
			stdout.Write(m.Data)
		case 2:
			both.Write(m.Data)
		}
	}
}
