package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "foldhost",
		Short: "Fold event-sourced sessions into values",
		Long: "foldhost folds the events of a session log into values, through plugins that each run in a process of their own.\n" +
			"It serves sessions over HTTP, works on stored ones (session, import, export), looks after the store, replays recorded logs, and looks\n" +
			"at plugins. docs/commands.md has every command, its JSON and the exit codes.",
		Args:          wrongUsage(cobra.NoArgs),
		Version:       readBuildInfo().String(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Help()
			return &usageError{fmt.Errorf("say what to do, for example: foldhost replay LOG")}
		},
	}
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.Flags().Bool("version", false, "say which foldhost this is") // Without the shorthand that cobra would give it: -v is --verbose elsewhere.
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{fmt.Errorf("%w (see %s --help)", wrongFlag(err), cmd.CommandPath())}
	})
	cmd.AddCommand(serveCommand(), sessionCommand(), storeCommand(), replayCommand(), importCommand(), exportCommand(), pluginCommand(), versionCommand())
	return cmd
}

// exactly asks for one argument for each name.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return fmt.Errorf("it takes %s; arguments given: %d", strings.Join(names, " and "), len(args))
		}
		return nil
	}
}

// oneOf asks for one of some numbers of arguments, each with what they are.
func oneOf(forms map[int]string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if forms[len(args)] != "" {
			return nil
		}
		var takes []string
		for _, n := range slices.Sorted(maps.Keys(forms)) {
			takes = append(takes, forms[n])
		}
		return fmt.Errorf("it takes %s; arguments given: %d", strings.Join(takes, ", or "), len(args))
	}
}

// wrongUsage makes exit code 2 of what a check of the arguments says.
func wrongUsage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &usageError{fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
		}
		return nil
	}
}
