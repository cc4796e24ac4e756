package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/foldhost/foldhost/api"
	"github.com/foldhost/foldhost/cmd/host/internal/render"
	"github.com/foldhost/foldhost/eventlog/sqlite"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
)

// pluginGrace is how long plugins are asked to end before they are killed; a plugin has less by itself.
const pluginGrace = 15 * time.Second

func serveCommand() *cobra.Command {
	var s server
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve sessions over HTTP",
		Long: "serve keeps sessions in a data directory, folds them through the plugins, and serves both over HTTP.\n" +
			"It ends at the first interrupt or SIGTERM, once what was begun is done; a second one ends it at once, and nothing that\n" +
			"was acknowledged is lost either way. docs/server.md has the calls.",
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
	return cmd
}

// server is what serve was told.
type server struct {
	plugins pluginFlags
	dataFlag
	listen, durability, tokenFile string
}

func (s *server) run(ctx context.Context, stdout io.Writer) (err error) {
	plugins, err := s.plugins.options()
	if err != nil {
		return err
	}
	file := plugins.Config
	var tokens *api.Tokens
	if path := cmp.Or(s.tokenFile, os.Getenv("FOLDHOST_TOKEN_FILE"), file.TokenFile); path != "" {
		if tokens, err = api.ReadTokens(path); err != nil {
			return err
		}
	}
	durability, err := sqlite.ParseDurability(cmp.Or(s.durability, os.Getenv("FOLDHOST_DURABILITY"), file.Durability, sqlite.Full.String()))
	if err != nil {
		return &usageError{err}
	}
	data, err := s.dir(file)
	if err != nil {
		return err
	}
	plugins.CacheDir = filepath.Join(data, "plugin-descriptions")
	level := slog.LevelWarn
	if s.plugins.verbose {
		level = slog.LevelDebug
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))

	address := cmp.Or(s.listen, os.Getenv("FOLDHOST_LISTEN"), file.Listen, config.DefaultListen)
	if err := api.CheckAddress(ctx, address, tokens); err != nil {
		return err
	}
	// The store before the port: whoever starts a second host in a directory is to hear of the first one, and not that its port is taken.
	store, err := sqlite.Open(ctx, data, sqlite.Options{Durability: durability, Logger: logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	listener, err := api.Listen(ctx, address, tokens)
	if err != nil {
		return err
	}
	defer listener.Close()
	url := "http://" + api.HostPort(listener.Addr())
	if !api.Loopback(listener.Addr()) {
		logger.Warn("tokens and sessions go over the network unencrypted, unless a proxy in front of the server has TLS", "address", listener.Addr().String())
	}
	if err := store.Announce(url); err != nil {
		return err
	}
	h, err := host.Open(host.Options{Store: store, Logger: logger, Plugins: plugins})
	if err != nil {
		return err
	}
	defer func() {
		late, cancel := context.WithTimeout(context.Background(), pluginGrace)
		defer cancel()
		err = errors.Join(err, h.CloseWithin(late))
	}()
	a := api.New(api.Options{Host: h, Store: servedStore{store}, Logger: logger, Tokens: tokens, AllowedOrigins: file.AllowedOrigins, Names: namesOf(address, listener.Addr())})
	defer a.Close()
	if err := render.Serving(stdout, url, data, tokens != nil); err != nil {
		return err
	}
	return a.Serve(ctx, listener)
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
