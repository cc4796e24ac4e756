package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/cmd/host/internal/render"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/discover"
)

func pluginCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Look at plugins: list, restart, inspect, validate, test",
		Args:  wrongUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Help()
			return &usageError{fmt.Errorf("say what to do with plugins, for example: foldhost plugin list")}
		},
	}
	cmd.AddCommand(pluginListCommand(), pluginRestartCommand(), pluginInspectCommand(), pluginValidateCommand(), pluginTestCommand())
	return cmd
}

func pluginListCommand() *cobra.Command {
	var p place
	preset, all := "", false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Say how each plugin stands",
		Long: "list asks the server that owns the data directory, or the one that --url names, how its plugins stand. Where none runs, and with\n" +
			"--plugins or --all, which are about a directory, it starts every plugin of the directory, says how it stands, and stops it again;\n" +
			"it fails too when a file that would be a plugin is refused: it is not safe to run, or cannot be read.",
		Args: wrongUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			directory := all || p.plugins.dir != ""
			if directory && p.url != "" {
				return &usageError{errors.New("--url is about a server, --plugins and --all are about a directory: leave one out")}
			}
			return p.report(cmd.OutOrStdout(), guide(p.listPlugins(cmd, preset, directory, all)))
		},
	}
	p.register(cmd.Flags())
	cmd.Flags().StringVar(&preset, "preset", "", "list the plugins of this preset alone, with the configs that it gives them")
	cmd.Flags().BoolVar(&all, "all", false, "also list the files that are something else than a plugin, with the reasons")
	return cmd
}

// listPlugins lists those of the server, if there is one and no directory is meant, else those of the directory.
func (p *place) listPlugins(cmd *cobra.Command, preset string, directory, all bool) error {
	if !directory {
		server, _, err := p.running(cmd.Context())
		if err != nil {
			return err
		}
		if server != nil {
			defer server.Close()
			plugins, err := server.PresetPlugins(cmd.Context(), preset)
			if err != nil {
				return err
			}
			if err := render.ServedPlugins(cmd.OutOrStdout(), plugins, p.asJSON); err != nil {
				return err
			}
			for i := range plugins {
				if err := standing(plugins[i].Name, host.PluginState(plugins[i].State)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	o, err := p.plugins.options()
	if err != nil {
		return err
	}
	h, err := host.Open(host.Options{Plugins: o, Logger: p.plugins.logger()})
	if err != nil {
		return err
	}
	defer h.CloseWithin(cmd.Context())
	if err := h.WaitPlugins(cmd.Context()); err != nil {
		return err
	}
	plugins := h.Plugins(cmd.Context())
	if preset != "" {
		if plugins, err = h.PresetPlugins(cmd.Context(), preset); err != nil {
			return err
		}
	}
	passed := slices.Clone(h.PassedFiles())
	if !all {
		passed = slices.DeleteFunc(passed, func(p discover.Passed) bool { return !p.Refused })
	}
	if err := render.Plugins(cmd.OutOrStdout(), plugins, passed, p.asJSON); err != nil {
		return err
	}
	for i := range plugins {
		if err := standing(plugins[i].Name, plugins[i].State); err != nil {
			return err
		}
	}
	for _, p := range passed {
		off := slices.ContainsFunc(plugins, func(known host.Plugin) bool { return known.Name == p.Name && known.State == host.PluginDisabled })
		if p.Refused && !off {
			return &reportedError{fmt.Errorf("%s is refused", p.Path)}
		}
	}
	return nil
}

// standing is an error, which the list has told already, where a plugin is not as its configuration wants it.
func standing(name string, state host.PluginState) error {
	if state == host.PluginReady || state == host.PluginDisabled {
		return nil
	}
	return &reportedError{fmt.Errorf("plugin %s is %s", name, state)}
}

func pluginRestartCommand() *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use:   "restart NAME",
		Short: "Have a running server bring up a new process of a plugin",
		Long: "restart asks the server that owns the data directory, or the one that --url names, for a new process of a plugin: after its file was\n" +
			"replaced, or to start a plugin again that is parked. The process before serves until the new one is ready, and goes on if it does not\n" +
			"come up. That is not waited for: foldhost plugin list says how it went.",
		Example: "  go build -o new ./cmd/goal && mv new plugins/goal && foldhost plugin restart goal",
		Args:    wrongUsage(exactly("NAME")),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.report(cmd.OutOrStdout(), guide(p.restartPlugin(cmd, args[0])))
		},
	}
	p.register(cmd.Flags())
	for _, name := range []string{"plugins", "verbose"} { // Taken, as by the other commands, and without a use: nothing is started here.
		cmd.Flags().MarkHidden(name)
	}
	return cmd
}

func (p *place) restartPlugin(cmd *cobra.Command, name string) error {
	server, dir, err := p.running(cmd.Context())
	if err != nil {
		return err
	}
	if server == nil {
		return &noServerError{dir}
	}
	defer server.Close()
	plugin, err := server.RestartPlugin(cmd.Context(), name)
	if said, is := errors.AsType[*client.Error](err); is && said.Code == client.CodeNotFound {
		return &guidedError{err, "foldhost plugin list shows which there are"}
	}
	if err != nil {
		return err
	}
	if p.asJSON {
		return (&task{out: cmd.OutOrStdout()}).print(plugin)
	}
	render.Printf(cmd.OutOrStdout(), "%s: a new process was asked for; foldhost plugin list says how it went\n", plugin.Name)
	return nil
}

func pluginInspectCommand() *cobra.Command {
	var flags pluginFlags
	preset, asJSON := "", false
	cmd := &cobra.Command{
		Use:   "inspect PATH",
		Short: "Start one plugin and show everything that it says about itself",
		Args:  wrongUsage(exactly("PATH")),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := flags.inspecting(preset)
			if err != nil {
				return err
			}
			in, err := host.Inspect(cmd.Context(), args[0], o)
			return errors.Join(render.Inspection(cmd.OutOrStdout(), in, asJSON), err)
		},
	}
	flags.register(cmd.Flags())
	presetFlag(cmd, &preset)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func pluginValidateCommand() *cobra.Command {
	var flags pluginFlags
	preset, asJSON := "", false
	cmd := &cobra.Command{
		Use:   "validate PATH|DIR",
		Short: "Say whether plugins would load, and if not why",
		Long: "validate checks the file and its architecture, the handshake, the description, the config, the registrations with\n" +
			"their schemas, and the laws that every unit must keep, over a short sample session.",
		Args: wrongUsage(exactly("PATH or DIR")),
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.judge(cmd, args[0], preset, nil, asJSON)
		},
	}
	flags.register(cmd.Flags())
	presetFlag(cmd, &preset)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a plugin")
	return cmd
}

func pluginTestCommand() *cobra.Command {
	var flags pluginFlags
	var log, preset string
	asJSON := false
	cmd := &cobra.Command{
		Use:   "test PATH",
		Short: "Hold a plugin against the laws over a recorded log",
		Long: "test is validate with events: each unit is folded over the log, once more, in two parts at many places, and for the last value\n" +
			"only; every state and value is checked against its schema. It works for plugins in any language. Without --log it is validate.",
		Args: wrongUsage(exactly("PATH")),
		RunE: func(cmd *cobra.Command, args []string) error {
			var events []event.Event
			if log != "" {
				var err error
				if events, err = readEvents(cmd, log); err != nil {
					return err
				}
			}
			return flags.judge(cmd, args[0], preset, events, asJSON)
		},
	}
	flags.register(cmd.Flags())
	presetFlag(cmd, &preset)
	cmd.Flags().StringVar(&log, "log", "", "a recorded session, as replay takes it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// presetFlag makes a flag of the preset whose config a plugin gets.
func presetFlag(cmd *cobra.Command, preset *string) {
	cmd.Flags().StringVar(preset, "preset", "", "give it the config that this preset has for it")
}

// inspecting reads the configuration for looking at one file.
func (f *pluginFlags) inspecting(preset string) (host.InspectOptions, error) {
	o, err := f.options()
	if err != nil {
		return host.InspectOptions{}, err
	}
	return host.InspectOptions{Config: o.Config, Preset: preset, Logger: f.logger()}, nil
}

// judge validates a plugin, or all of a directory; with a preset those that it names.
func (f *pluginFlags) judge(cmd *cobra.Command, path, preset string, events []event.Event, asJSON bool) error {
	o, err := f.inspecting(preset)
	if err != nil {
		return err
	}
	paths := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		found, passed, err := discover.Dir(path, true)
		if err != nil {
			return err
		}
		paths = nil
		for _, p := range found {
			paths = append(paths, p.Path)
		}
		for _, p := range passed {
			if p.Refused {
				paths = append(paths, p.Path)
			}
		}
		if len(paths) == 0 {
			return fmt.Errorf("there are no plugins in %s; foldhost plugin list --all says why each file is none", filepath.Clean(path))
		}
		if named, is := o.Config.Presets[preset]; is {
			paths = slices.DeleteFunc(paths, func(p string) bool { _, has := named[discover.Name(p)]; return !has })
		}
		if len(paths) == 0 {
			return fmt.Errorf("preset %q names none of the plugins in %s", preset, filepath.Clean(path))
		}
	}
	bad := 0
	for _, p := range paths {
		r, err := host.Validate(cmd.Context(), p, o, events)
		if err != nil {
			return err
		}
		if err := render.Report(cmd.OutOrStdout(), r, asJSON); err != nil {
			return err
		}
		if !r.OK() {
			bad++
		}
	}
	if bad > 0 {
		return &reportedError{fmt.Errorf("%d of %d plugins failed", bad, len(paths))}
	}
	return nil
}

// readEvents reads a whole log: the laws need it many times over.
func readEvents(cmd *cobra.Command, name string) (events []event.Event, err error) {
	log, err := host.OpenLog(cmd.Context(), name, host.LogOptions{Strict: true, Stdin: io.Reader(cmd.InOrStdin())})
	if err != nil {
		return nil, err
	}
	defer log.Close()
	for d, err := range log.Events() {
		if err != nil {
			return nil, named(name, true, err)
		}
		events = append(events, d.Event)
	}
	return events, nil
}
