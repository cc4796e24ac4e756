package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
		Long: "serve keeps sessions in a data directory, folds them through the plugins, and serves both over HTTP on this machine.\n" +
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
	cmd.Flags().StringVar(&s.listen, "listen", "", "address, of this machine alone (default what the configuration says, or "+config.DefaultListen+"; $FOLDHOST_LISTEN)")
	cmd.Flags().StringVar(&s.durability, "durability", "", "full: what is acknowledged is on disk; relaxed: power loss may take the last moments (default full; $FOLDHOST_DURABILITY)")
	return cmd
}

// server is what serve was told.
type server struct {
	plugins pluginFlags
	dataFlag
	listen, durability string
}

func (s *server) run(ctx context.Context, stdout io.Writer) (err error) {
	plugins, err := s.plugins.options()
	if err != nil {
		return err
	}
	file := plugins.Config
	if tokens := cmp.Or(os.Getenv("FOLDHOST_TOKEN_FILE"), file.TokenFile); tokens != "" {
		return fmt.Errorf("there is a token file, %s, and this version cannot ask for tokens yet: take it out of the configuration to serve this machine without", tokens)
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
	if err := api.CheckAddress(ctx, address); err != nil {
		return err
	}
	// The store before the port: whoever starts a second host in a directory is to hear of the first one, and not that its port is taken.
	store, err := sqlite.Open(ctx, data, sqlite.Options{Durability: durability, Logger: logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	listener, err := api.Listen(ctx, address)
	if err != nil {
		return err
	}
	defer listener.Close()
	url := "http://" + listener.Addr().String()
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
	a := api.New(api.Options{Host: h, Store: servedStore{store}, Logger: logger})
	defer a.Close()
	if err := render.Serving(stdout, url, data); err != nil {
		return err
	}
	return a.Serve(ctx, listener)
}
