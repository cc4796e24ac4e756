package pluginproto

import (
	"context"
	"errors"
	"slices"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
)

// Version1 is the first version of the protocol. A version changes when a peer of the one before would misunderstand; adding
// fields or calls does not change it.
const Version1 = 1

// Versions are the protocol versions that this code speaks, oldest first.
func Versions() []int { return []int{Version1} }

// What the environment of a plugin process carries beyond go-plugin's own variables.
const (
	// CookieKey and CookieValue tell a program that it was started as a plugin. No secret and no protection: it is what lets a
	// plugin that is started by hand say so.
	CookieKey   = "FOLDHOST_PLUGIN"
	CookieValue = "4f1c6a0e-fold-unit-view-9d27b3a58c10"
	// LifelineEnv is LifelineStdin when standard input is a lifeline: nothing is ever written to it, and when it ends, the host
	// has ended and the plugin must end too.
	LifelineEnv   = "FOLDHOST_LIFELINE"
	LifelineStdin = "stdin"
	// SocketDirEnv is go-plugin's: the directory in which the plugin must make its socket.
	SocketDirEnv = plugin.EnvUnixSocketDir
	// VersionsEnv is go-plugin's: the protocol versions that the host speaks, separated by commas.
	VersionsEnv = "PLUGIN_PROTOCOL_VERSIONS"
)

// ServiceName is the name of the service in a go-plugin set, and HealthService that under which health is asked for.
const (
	ServiceName   = "foldhost"
	HealthService = plugin.GRPCServiceName
)

// ShutdownMethod is go-plugin's call that asks a plugin to exit. Request and response are empty messages.
const ShutdownMethod = "/plugin.GRPCController/Shutdown"

// StdioMethod is go-plugin's call that streams GoPluginStdio; the request is empty. A Go plugin that prints blocks when nobody
// reads it.
const StdioMethod = "/plugin.GRPCStdio/StreamStdio"

// Handshake is what both sides give to go-plugin.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{MagicCookieKey: CookieKey, MagicCookieValue: CookieValue}
}

// Sets are the plugin sets by protocol version that both sides give to go-plugin. impl serves in a plugin; a host gives nil and
// gets a PluginClient when it dispenses ServiceName. The map is new on each call, since go-plugin writes to it.
func Sets(impl PluginServer) map[int]plugin.PluginSet {
	sets := map[int]plugin.PluginSet{}
	for _, v := range Versions() {
		sets[v] = plugin.PluginSet{ServiceName: &service{impl: impl}}
	}
	return sets
}

// NewServer makes the gRPC server of a plugin with the limits of the protocol. It fits go-plugin's ServeConfig.GRPCServer.
func NewServer(opts []grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(slices.Clip(opts),
		grpc.MaxRecvMsgSize(MaxMessageBytes),
		grpc.MaxSendMsgSize(MaxMessageBytes))...)
}

// CallOptions are those of a host's connection: the limits of the protocol.
func CallOptions() []grpc.CallOption {
	return []grpc.CallOption{grpc.MaxCallRecvMsgSize(MaxMessageBytes), grpc.MaxCallSendMsgSize(MaxMessageBytes)}
}

// service wires the Plugin service into go-plugin.
type service struct {
	plugin.NetRPCUnsupportedPlugin
	impl PluginServer
}

func (s *service) GRPCServer(_ *plugin.GRPCBroker, srv *grpc.Server) error {
	if s.impl == nil {
		return errors.New("pluginproto: Sets was given no implementation to serve")
	}
	RegisterPluginServer(srv, s.impl)
	return nil
}

func (s *service) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return NewPluginClient(conn), nil
}
