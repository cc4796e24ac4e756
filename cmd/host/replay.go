package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"github.com/foldhost/foldhost/cmd/host/internal/render"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/host"
)

func replayCommand() *cobra.Command {
	var at int64
	var plugins pluginFlags
	asJSON := false
	cmd := &cobra.Command{
		Use:   "replay LOG…",
		Short: "Show what the plugins make of recorded logs",
		Long: "replay accepts each log event by event, folds it through the plugins, each in a process of its own, and prints what\n" +
			"comes out: the values where they change and at the end, the surface, the messages. Nothing is stored. A LOG may be\n" +
			"compressed with zstd and may hold packed rows; \"-\" is standard input. docs/replay.md gives the JSON and the error codes.",
		Example: "  foldhost replay --plugins bin/plugins session.jsonl\n  foldhost replay --config examples/foldhost.yaml --json --at 30 session.jsonl",
		Args:    wrongUsage(replayArgs),
		RunE: func(cmd *cobra.Command, logs []string) error {
			r := replayer{asJSON: asJSON, several: len(logs) > 1, stdin: newInterruptible(cmd.Context(), cmd.InOrStdin()), style: styleOf(cmd.OutOrStdout())}
			if cmd.Flags().Changed("at") {
				r.at = &at
			}
			o, err := plugins.options()
			if err != nil {
				return err
			}
			if r.replayer, err = host.NewReplayer(host.ReplayerOptions{Plugins: o, Logger: plugins.logger()}); err != nil {
				return err
			}
			defer r.replayer.Close()
			times := int64(2) // Read, then folded.
			if !asJSON {
				times = 1 // What is folded is printed as it comes.
			}
			r.progress = newProgress(cmd.ErrOrStderr(), "replaying", times, logs...)
			defer r.progress.end()
			err = r.all(cmd.Context(), logs, cmd.OutOrStdout(), cmd.ErrOrStderr())
			return r.pluginTrouble(cmd.Context(), cmd.ErrOrStderr(), err)
		},
	}
	numberFlag(cmd.Flags(), &at, "at", "", 0, -1, takesSeqOrNone, "stop right after the event of this seq")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a log")
	plugins.register(cmd.Flags())
	return cmd
}

func replayArgs(_ *cobra.Command, logs []string) error {
	stdin := 0
	for _, name := range logs {
		if name == "-" {
			stdin++
		}
	}
	if stdin > 1 {
		return errors.New("standard input can be read only once")
	}
	if len(logs) == 0 {
		return errors.New("name at least one LOG; \"-\" is standard input")
	}
	return nil
}

// replayer is the replay of some logs in one form.
type replayer struct {
	replayer *host.Replayer
	at       *int64
	asJSON   bool
	several  bool
	stdin    io.Reader
	style    render.Style
	progress *progress
}

// replayed is what one log gave, ready to be printed.
type replayed struct {
	out, notes bytes.Buffer
	err        error
}

// all replays logs a few at once and prints them in their order.
func (r *replayer) all(ctx context.Context, logs []string, out, notes io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := 0
	err := ordered(min(4, runtime.GOMAXPROCS(0)), len(logs), func(i int) *replayed {
		var res replayed
		to := io.Writer(&res.out)
		if !r.several {
			to = out // Nothing to keep in order: print as it comes.
		}
		res.err = r.one(ctx, logs[i], to, &res.notes)
		return &res
	}, func(i int, res *replayed) error {
		err := r.print(i, res, out, notes)
		if res.err != nil {
			failed++
		}
		if err != nil {
			cancel()
		}
		return err
	})
	if err != nil {
		return err
	}
	if failed > 0 {
		return &reportedError{fmt.Errorf("%d of %d logs failed", failed, len(logs))}
	}
	return nil
}

// pluginTrouble says what is wrong with the plugins, which is a failure of its own. err is that of the replays.
func (r *replayer) pluginTrouble(ctx context.Context, notes io.Writer, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	troubled, all := 0, r.replayer.Host().Plugins(ctx)
	for _, p := range all {
		if err != nil && p.Reason == "" {
			continue // The log was refused before this one was up, which is no fault of it.
		}
		if p.State != host.PluginReady && p.State != host.PluginDisabled {
			troubled++
			render.Printf(notes, "foldhost: plugin %s\n", render.Trouble(&p))
		}
		for _, refused := range p.Refused {
			troubled++
			render.Printf(notes, "foldhost: plugin %s: refused %v\n", p.Name, refused)
		}
	}
	// A file that would be a plugin and is not safe to run is as much of a failure as one that does not start, unless it stands above by its name.
	for _, p := range r.replayer.Host().PassedFiles() {
		if p.Refused && !slices.ContainsFunc(all, func(known host.Plugin) bool { return known.Name == p.Name }) {
			troubled++
			render.Printf(notes, "foldhost: not started: %s\n", render.Passed(p))
		}
	}
	if len(all) == 0 && troubled == 0 && err == nil {
		render.Printf(notes, "foldhost: there are no plugins, so there are no values; name their directory with --plugins\n")
	}
	if err == nil && troubled > 0 {
		err = &reportedError{fmt.Errorf("plugins are in trouble")}
	}
	return err
}

// print prints what one log gave. Only what ends the command is an error.
func (r *replayer) print(i int, res *replayed, out, notes io.Writer) error {
	if errors.Is(res.err, context.Canceled) {
		return res.err
	}
	r.progress.clear()
	if res.notes.Len() > 0 {
		if _, err := notes.Write(res.notes.Bytes()); err != nil {
			return err
		}
	}
	if !r.asJSON && r.several && i > 0 && res.out.Len() > 0 {
		render.Printf(out, "\n")
	}
	_, err := out.Write(res.out.Bytes())
	return err
}

// one replays one log to out. The error says that it failed, and has been put where its reader looks for it.
func (r *replayer) one(ctx context.Context, name string, out, notes io.Writer) error {
	people := render.NewReplay(out, r.style, name)
	res, err := r.fold(ctx, name, people, notes)
	if errors.Is(err, context.Canceled) {
		return err
	}
	if r.asJSON {
		file := ""
		if r.several {
			file = name
		}
		var failed error
		if err != nil {
			_, failed = out.Write(host.RefusalOf(err).AppendJSON(nil, file))
		} else {
			failed = res.WriteJSON(out, file)
		}
		if failed == nil {
			_, failed = out.Write([]byte{'\n'})
		}
		if failed != nil {
			return failed
		}
	} else {
		if err != nil {
			complain(notes, named(name, true, err))
			return errors.Join(err, people.Flush())
		}
		if err := people.End(res); err != nil {
			return err
		}
	}
	if err == nil && len(res.Unavailable) > 0 {
		err = fmt.Errorf("%d units failed", len(res.Unavailable))
	}
	return err
}

func (r *replayer) fold(ctx context.Context, name string, people *render.Replay, notes io.Writer) (*host.Result, error) {
	log, err := host.OpenLog(ctx, name, host.LogOptions{Strict: true, Stdin: r.stdin, Progress: r.progress.add})
	if err != nil {
		return nil, err
	}
	defer log.Close()
	o := host.ReplayOptions{Header: log.Header(), Events: log.Events(), At: r.at}
	if r.asJSON {
		_, size := log.Progress()
		told := int64(0)
		o.Progress = func(reached, events int64) {
			done := int64(float64(size) * float64(reached+1) / float64(max(events, 1)))
			r.progress.add(done - told)
			told = done
		}
	} else {
		o.Watch = watcher{people, r.progress}
	}
	if preset := o.Header.AgentPreset; preset != nil && r.replayer.Host().CheckPreset(*preset) != nil {
		render.Printf(notes, "foldhost: %s: warning: it has the preset %q, which the configuration does not have; the default set folds it\n", name, *preset)
	}
	res, err := r.replayer.Replay(ctx, o)
	for _, w := range log.Warnings() {
		render.Printf(notes, "foldhost: %s: warning: %s\n", name, w)
	}
	return res, err
}

// watcher takes the bar away before the first line is printed.
type watcher struct {
	*render.Replay
	bar *progress
}

func (w watcher) Accepted(h event.Header, events int64) error {
	w.bar.clear()
	return w.Replay.Accepted(h, events)
}
