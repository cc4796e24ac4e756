package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/cmd/host/internal/render"
	"github.com/foldhost/foldhost/eventlog/jsonl"
	"github.com/foldhost/foldhost/eventlog/sqlite"
)

func storeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "store",
		Short: "Look after a data directory: stats, check, backup, restore, salvage",
		Long: "stats, check and backup talk to the server that owns the data directory, or open it when nobody does. restore and salvage\n" +
			"need it free.",
		Args: wrongUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.Help()
			return &usageError{fmt.Errorf("say what to do with the store, for example: foldhost store stats")}
		},
	}
	cmd.AddCommand(storeStatsCommand(), storeCheckCommand(), storeBackupCommand(), storeRestoreCommand(), storeSalvageCommand())
	return cmd
}

func storeStatsCommand() *cobra.Command {
	var p place
	cmd := &cobra.Command{Use: "stats", Short: "Say how large the store is, and what it has done since it was opened", Args: cobra.NoArgs}
	return p.command(cmd, need{}, func(ctx context.Context, t *task) error {
		s, err := t.StoreStats(ctx)
		if err != nil {
			return err
		}
		if p.asJSON {
			return t.print(s)
		}
		return render.StoreStats(t.out, &s)
	})
}

func storeCheckCommand() *cobra.Command {
	var p place
	var o client.CheckOptions
	cmd := &cobra.Command{
		Use: "check", Short: "Look at everything in the store and say what is damaged", Args: cobra.NoArgs,
		Long: "check reads every log, event and row and folds every surface, also while a server uses them, and repairs nothing. Exit code 1 says\n" +
			"that something is damaged.",
	}
	cmd.Flags().BoolVar(&o.Pages, "pages", false, "also have the engine check the structure of the whole file; what is written meanwhile waits in memory and in the WAL")
	cmd.Flags().BoolVar(&o.Values, "values", false, "also have every unit fold every session from zero, and compare rows and values with that")
	return p.command(cmd, need{valuesFlag: "values"}, func(ctx context.Context, t *task) error {
		bar := newSteps(t.notes, "checking", manyLogs)
		report, err := t.CheckStore(ctx, o, bar.at)
		bar.end()
		if err != nil {
			return err
		}
		if p.asJSON {
			err = t.print(report)
		} else {
			err = render.CheckReport(t.out, &report)
		}
		if err == nil && !p.asJSON && len(report.Problems) > 0 {
			err = render.Printf(t.notes, "restore a backup, or save what is whole with foldhost store salvage; docs/commands.md says how\n")
		}
		if err == nil && len(report.Problems) > 0 {
			err = &reportedError{errors.New("the store is damaged")}
		}
		return err
	})
}

func storeBackupCommand() *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use: "backup FILE", Short: "Copy the store to a new file, also while it is in use", Args: exactly("FILE"),
		Long: "backup writes one state of the store to FILE, which appears when it is whole and on disk. An existing file is kept. A server writes it\n" +
			"itself, so the file lies on its machine. foldhost store restore makes a store of it again.",
	}
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if p.url != "" && !filepath.IsAbs(args[0]) {
			return &usageError{fmt.Errorf("FILE is %q: with --url it is a path of the server's machine, and so an absolute one", args[0])}
		}
		if args[0] == "" {
			return &usageError{errors.New("FILE is empty")}
		}
		return nil
	}
	return p.command(cmd, need{}, func(ctx context.Context, t *task) error {
		path, err := filepath.Abs(t.args[0])
		if err != nil {
			return err
		}
		bar := newSteps(t.notes, "copying pages", manyPages)
		b, err := t.BackupStore(ctx, path, bar.at)
		bar.end()
		if err != nil {
			return err
		}
		if p.asJSON {
			return t.print(b)
		}
		return render.Printf(t.out, "copied the store to %s, %s\n", b.Path, render.Bytes(b.Bytes))
	})
}

// offline is a command that needs the directory free.
type offline struct {
	dataFlag
	config string
	asJSON bool
}

func (o *offline) command(cmd *cobra.Command, run func(cmd *cobra.Command, args []string, dir string) error) *cobra.Command {
	cmd.Args = wrongUsage(cmd.Args)
	o.register(cmd.Flags())
	cmd.Flags().StringVar(&o.config, "config", "", "configuration file (default ./foldhost.yaml if there is one; $FOLDHOST_CONFIG)")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "print JSON, a line each")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := func() error {
			plugins, err := (&pluginFlags{config: o.config}).options()
			if err != nil {
				return err
			}
			dir, err := o.dir(plugins.Config)
			if err != nil {
				return err
			}
			return guideOffline(run(cmd, args, dir))
		}()
		return (&place{asJSON: o.asJSON}).report(cmd.OutOrStdout(), err)
	}
	return cmd
}

// guideOffline adds the way out.
func guideOffline(err error) error {
	var target *sqlite.TargetError
	var no *noStoreError
	switch {
	case errors.As(err, &target) && errors.Is(err, fs.ErrExist):
		return &guidedError{err, "a store is restored into a directory without one: name another with --data, or move that one away"}
	case errors.As(err, &no):
		return &guidedError{err, "nothing was salvaged; --data or $FOLDHOST_DATA names another directory"}
	}
	return err
}

func storeRestoreCommand() *cobra.Command {
	var o offline
	cmd := &cobra.Command{
		Use: "restore FILE", Short: "Make a store out of a file that backup made", Args: exactly("FILE"),
		Long: "restore makes the store of the data directory, which must not have one, out of a backup. It is another store than the one that was copied:\n" +
			"clients that followed sessions of that one begin anew.",
		Example: "  foldhost store restore /backups/monday.db --data /var/lib/foldhost",
	}
	return o.command(cmd, func(cmd *cobra.Command, args []string, dir string) error {
		if err := sqlite.Restore(cmd.Context(), args[0], dir); err != nil {
			return err
		}
		if o.asJSON {
			return (&task{out: cmd.OutOrStdout()}).print(map[string]string{"restored": dir})
		}
		return render.Printf(cmd.OutOrStdout(), "restored %s\n", dir)
	})
}

// salvaged is what salvage --json prints.
type salvaged struct {
	Whole    int64                 `json:"whole"`
	Cut      int64                 `json:"cut"`
	Events   int64                 `json:"events"`
	Files    []render.SalvagedFile `json:"files"`
	Problems []client.StoreProblem `json:"problems"`
	More     int64                 `json:"more"`
}

func storeSalvageCommand() *cobra.Command {
	var o offline
	pack := false
	cmd := &cobra.Command{
		Use: "salvage DIR", Short: "Write what is whole of a damaged store as logs into a directory", Args: exactly("DIR"),
		Long: "salvage reads what is whole of the store, log by log, changes nothing there, and writes each log to a file of its own in DIR, which must be\n" +
			"empty or missing. foldhost import takes them again. Idempotency keys and values are not saved. Exit code 1 says that the store is damaged,\n" +
			"and what it prints, which logs are not whole; or that nothing could be saved.",
		Example: "  foldhost store salvage saved --data /var/lib/foldhost",
	}
	cmd.Flags().BoolVar(&pack, "pack", false, "pack runs of three and more chunks into rows")
	return o.command(cmd, func(cmd *cobra.Command, args []string, dir string) error {
		to, err := emptyDir(args[0])
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(dir, "foldhost.db")); errors.Is(err, fs.ErrNotExist) {
			return &noStoreError{dir}
		}
		s := salvage{out: cmd.OutOrStdout(), to: to, quiet: o.asJSON, files: []render.SalvagedFile{}, options: jsonl.WriterOptions{Verbatim: !pack}}
		report, err := sqlite.Salvage(cmd.Context(), dir, s.save)
		if err != nil {
			return err
		}
		result := salvaged{report.Whole, report.Cut, report.Events, s.files, []client.StoreProblem{}, report.More}
		for _, p := range report.Problems {
			one := client.StoreProblem{Code: string(p.Code), Session: p.ID, Detail: p.Detail}
			if p.Seq >= 0 {
				one.Seq = &p.Seq
			}
			result.Problems = append(result.Problems, one)
		}
		if o.asJSON {
			err = (&task{out: s.out}).print(result)
		} else {
			err = render.Salvaged(s.out, to, report.Whole, report.Cut, report.Events, result.Problems, report.More)
		}
		if err == nil && len(result.Problems) > 0 {
			err = &reportedError{errors.New("the store is damaged")}
		}
		return err
	})
}

// emptyDir is a directory that has nothing in it, absolute. It is made when the first file is.
func emptyDir(path string) (string, error) {
	if path == "" {
		return "", &usageError{errors.New("DIR is empty")}
	}
	entries, err := os.ReadDir(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", fmt.Errorf("looking into the directory to salvage into: %w", err)
	case len(entries) > 0:
		return "", &guidedError{fmt.Errorf("%s is not empty", path), "name a directory that is, or is not there yet: nothing is overwritten"}
	}
	return filepath.Abs(path)
}

// salvage writes logs into a directory.
type salvage struct {
	out     io.Writer
	to      string
	quiet   bool
	options jsonl.WriterOptions
	files   []render.SalvagedFile
}

func (s *salvage) save(l sqlite.SalvagedLog) error {
	if err := os.MkdirAll(s.to, 0o700); err != nil {
		return err
	}
	file := render.SalvagedFile{Session: l.Header.ID, HeaderLost: l.HeaderLost}
	for n := 1; ; n++ {
		// A header that is lost may have been any, and some systems take two names for one.
		if file.Path = filepath.Join(s.to, l.Header.ID+".jsonl"); n > 1 {
			file.Path = filepath.Join(s.to, fmt.Sprintf("%s~%d.jsonl", l.Header.ID, n))
		}
		if _, err := os.Lstat(file.Path); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	err := jsonl.WriteFile(file.Path, false, func(w io.Writer) error {
		out, err := jsonl.NewWriter(w, l.Header, s.options)
		if err != nil {
			return err
		}
		for ev, err := range l.Events {
			if err == nil {
				err = out.Write(ev)
			}
			if err != nil {
				_ = out.Close() // It frees what it holds, and would say the same again.
				return err
			}
			file.Events++
		}
		return out.Close()
	})
	if err != nil {
		return fmt.Errorf("writing %s: %w", file.Path, err)
	}
	s.files = append(s.files, file)
	if s.quiet {
		return nil
	}
	return render.SavedFile(s.out, &file)
}
