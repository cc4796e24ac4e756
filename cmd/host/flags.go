package main

import (
	"cmp"
	"log/slog"
	"os"

	"github.com/spf13/pflag"

	"github.com/foldhost/foldhost/cmd/host/internal/logs"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
)

// pluginFlags are the flags of every command that starts plugins. Flags win over the environment, which wins over the file.
type pluginFlags struct {
	config, dir string
	verbose     bool
}

func (f *pluginFlags) register(to *pflag.FlagSet) {
	to.StringVar(&f.config, "config", "", "configuration file (default ./"+config.DefaultName+" if there is one; $FOLDHOST_CONFIG)")
	to.StringVar(&f.dir, "plugins", "", "directory of plugins (default what the configuration says, or "+config.DefaultPluginDir+"; $FOLDHOST_PLUGIN_DIR)")
	to.BoolVarP(&f.verbose, "verbose", "v", false, "show on stderr what plugins write")
}

// options reads the configuration.
func (f *pluginFlags) options() (*host.PluginOptions, error) {
	file, err := config.Load(cmp.Or(f.config, os.Getenv("FOLDHOST_CONFIG")))
	if err != nil {
		return nil, err
	}
	return &host.PluginOptions{Config: file, Dir: cmp.Or(f.dir, os.Getenv("FOLDHOST_PLUGIN_DIR"))}, nil
}

// logger writes to stderr when somebody asked for it; what matters otherwise stands in errors and lists.
func (f *pluginFlags) logger() *slog.Logger {
	if !f.verbose {
		return slog.New(slog.DiscardHandler)
	}
	return logs.New(os.Stderr, logs.Options{Format: "text", Level: "debug"})
}
