package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/cmd/host/internal/logs"
	"github.com/foldhost/foldhost/cmd/host/internal/render"
	"github.com/foldhost/foldhost/eventlog/sqlite"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
	"github.com/foldhost/foldhost/internal/heapfloor"
	"github.com/foldhost/foldhost/metrics"
)

// pluginGrace is how long plugins are asked to end before they are killed; a plugin has less by itself.
const pluginGrace = 15 * time.Second

func serveCommand() *cobra.Command {
	var s server
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve sessions over HTTP",
		Long: "serve keeps sessions in a data directory, folds them through the plugins, and serves both over HTTP.\n" +
			"It ends at the first interrupt or SIGTERM, once what was begun is done; after a second one it has two seconds for that, from\n" +
			"the first one on. Nothing that was acknowledged is lost either way. docs/server.md has the calls.",
		Example: "  foldhost serve\n  foldhost serve --data /var/lib/foldhost --plugins bin/plugins --config foldhost.yaml",
		Args:    wrongUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	s.plugins.register(cmd.Flags())
	s.dataFlag.register(cmd.Flags())
	cmd.Flags().StringVar(&s.tokenFile, "token-file", "", "file of tokens, a line \"TOKEN scope[,scope…]\" each; without one only this machine is served, and asked for nothing ($FOLDHOST_TOKEN_FILE)")
	cmd.Flags().StringVar(&s.listen, "listen", "", "address, of this machine alone unless there are tokens (default what the configuration says, or "+config.DefaultListen+"; $FOLDHOST_LISTEN)")
	cmd.Flags().StringVar(&s.durability, "durability", "", "full: what is acknowledged is on disk; relaxed: power loss may take the last moments (default full; $FOLDHOST_DURABILITY)")
	cmd.Flags().StringVar(&s.tlsCert, "tls-cert", "", "file of the certificate, and of those between it and the root, in PEM: serve HTTPS")
	cmd.Flags().StringVar(&s.tlsKey, "tls-key", "", "file of its key, in PEM")
	cmd.Flags().StringVar(&s.logFormat, "log-format", "", "text or json, on stderr; auto is text on a terminal and else json (default auto; $FOLDHOST_LOG_FORMAT)")
	cmd.Flags().StringVar(&s.logLevel, "log-level", "", "the least that is logged: trace, debug, info, warn or error; -v is debug (default warn; $FOLDHOST_LOG_LEVEL)")
	cmd.Flags().BoolVar(&s.printConfig, "print-config", false, "print what holds and where each value comes from, without secrets, and serve nothing")
	return cmd
}

// server is what serve was told.
type server struct {
	plugins pluginFlags
	dataFlag
	listen, durability, tokenFile, tlsCert, tlsKey, logFormat, logLevel string
	printConfig                                                         bool
}

func (s *server) run(ctx context.Context, stdout io.Writer) (err error) {
	h, err := s.settle()
	if err != nil {
		return err
	}
	if s.printConfig {
		return h.print(stdout)
	}
	durability, err := sqlite.ParseDurability(h.durability)
	if err != nil {
		return &usageError{err}
	}
	if err := (logs.Options{Format: h.logFormat, Level: h.logLevel}).Check(); err != nil {
		return &usageError{err}
	}
	secure, err := h.tls()
	if err != nil {
		return err
	}
	var tokens *api.Tokens
	if h.tokenFile != "" {
		if tokens, err = api.ReadTokens(h.tokenFile); err != nil {
			return err
		}
	}
	h.plugins.CacheDir = filepath.Join(h.data, "plugin-descriptions")
	logger := logs.New(os.Stderr, logs.Options{Format: h.logFormat, Level: h.logLevel})

	defer heapfloor.Set()()
	if err := api.CheckAddress(ctx, h.listen, tokens); err != nil {
		if wrong, ok := errors.AsType[*api.ListenError](err); ok && wrong.Malformed {
			return &usageError{err}
		}
		return err
	}
	// The store before the port: whoever starts a second host in a directory is to hear of the first one, and not that its port is taken.
	store, err := sqlite.Open(ctx, h.data, sqlite.Options{Durability: durability, Logger: logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	listener, err := api.Listen(ctx, h.listen, tokens)
	if err != nil {
		return err
	}
	defer listener.Close()
	url := "http://" + api.HostPort(listener.Addr())
	names := namesOf(h.listen, listener.Addr())
	if secure != nil {
		url = "https://" + api.HostPort(listener.Addr())
		listener = tls.NewListener(listener, secure)
	} else if !api.Loopback(listener.Addr()) {
		logger.Warn("tokens and sessions go over the network unencrypted, unless a proxy in front of the server has TLS: --tls-cert and --tls-key turn it on", "address", listener.Addr().String())
	}
	if err := store.Announce(url); err != nil {
		return err
	}
	folding, err := host.Open(host.Options{Store: store, Logger: logger, Plugins: h.plugins})
	if err != nil {
		return err
	}
	defer func() {
		late, cancel := context.WithTimeout(context.Background(), pluginGrace)
		defer cancel()
		err = errors.Join(err, folding.CloseWithin(late))
	}()
	served := servedStore{store}
	watched := metrics.New(metrics.Options{Host: folding, Store: served.metrics, Logger: logger})
	a := api.New(api.Options{Host: folding, Store: served, Metrics: watched, Logger: logger, Tokens: tokens, AllowedOrigins: h.plugins.Config.AllowedOrigins, Names: names, MaxConnections: connectionsOf(openFiles())})
	defer a.Close()
	watched.Watch(a)
	if err := render.Serving(stdout, url, h.data, tokens != nil); err != nil {
		return err
	}
	return a.Serve(ctx, listener)
}

// connectionsOf is how many connections a server holds that may have so many files open, 0 for any number: all but a quarter, 1,024 at most, which is left to the store and the plugins, whose
// loss would be everybody's.
func connectionsOf(files uint64) int {
	return int(min(files-min(files/4, 1024), 1<<20))
}

// namesOf are the names that a server goes by: the one that it was told to listen on, and that of the machine where others reach it.
func namesOf(address string, at net.Addr) (names []string) {
	if host, _, err := net.SplitHostPort(address); err == nil && host != "" {
		names = append(names, host)
	}
	if machine, err := os.Hostname(); err == nil && !api.Loopback(at) {
		names = append(names, machine)
	}
	return names
}

// tls is how to serve HTTPS, nil for plain HTTP.
func (h *settings) tls() (*tls.Config, error) {
	switch {
	case h.tlsCert == "" && h.tlsKey == "":
		return nil, nil
	case h.tlsCert == "" || h.tlsKey == "":
		return nil, &usageError{errors.New("--tls-cert and --tls-key belong together: name both")}
	}
	pair, err := tls.LoadX509KeyPair(h.tlsCert, h.tlsKey)
	var unread *fs.PathError // It names the one of the two that it is about.
	switch {
	case errors.As(err, &unread):
		return nil, fmt.Errorf("read the certificate and its key: %w", err)
	case err != nil:
		return nil, fmt.Errorf("the certificate %s and its key %s: %w", h.tlsCert, h.tlsKey, err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}
