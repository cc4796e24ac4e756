package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/foldhost/foldhost/client"
	"github.com/foldhost/foldhost/cmd/host/internal/render"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/jsonl"
	"github.com/foldhost/foldhost/host"
)

func importCommand() *cobra.Command {
	c := converter{verb: "imported"}
	cmd := c.command("import LOG | IN OUT", "Take a log into the store, or check it and write it one event a line",
		"import LOG makes a session of the log in the store, whole or not at all. import IN OUT writes it to the file OUT instead. Either accepts it event by event. A torn tail, as\n"+
			"a writer that died can leave it, is dropped with a warning; everything else that is wrong refuses the log. \"-\" is standard input or output.",
		"  foldhost import session.jsonl.zst --id again\n  foldhost import session.jsonl.zst session.jsonl")
	cmd.Flags().BoolVar(&c.strict, "strict", false, "forgive only a last line without newline")
	cmd.Flags().StringVar(&c.id, "id", "", "another id for the session than the one in the log; with one argument alone")
	cmd.Args = wrongUsage(oneOf(map[int]string{1: "LOG", 2: "IN and OUT"}))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.stdin, c.stdout, c.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
		if len(args) == 1 {
			return c.take(cmd, args[0])
		}
		if err := c.unused(cmd, "it writes a file: name LOG alone to import into the store", "id", "data", "url", "token-file", "plugins", "config", "verbose"); err != nil {
			return err
		}
		return c.run(cmd.Context(), args[0], args[1])
	}
	return cmd
}

func exportCommand() *cobra.Command {
	c := converter{verb: "exported", strict: true, packs: true}
	cmd := c.command("export --session ID [OUT] | IN OUT", "Write a stored session, or check a log and write it, with runs of chunks packed",
		"export --session ID writes a session of the store to the file OUT, or to standard output. export IN OUT accepts the log IN event by event and\n"+
			"writes it to OUT. Runs of chunks are packed into rows. Importing an export gives the same events again. \"-\" is standard input or output.",
		"  foldhost export --session first first.jsonl.zst\n  foldhost export session.jsonl session.jsonl.zst")
	cmd.Flags().StringVar(&c.session, "session", "", "the session of the store to write")
	cmd.Args = wrongUsage(func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("session") {
			return oneOf(map[int]string{0: "nothing", 1: "OUT"})(cmd, args)
		}
		return exactly("IN", "OUT")(cmd, args)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c.stdin, c.stdout, c.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
		if cmd.Flags().Changed("session") {
			return c.give(cmd, append(args, "-")[0])
		}
		if err := c.unused(cmd, "it reads a file: name a session with --session", "data", "url", "token-file", "plugins", "config", "verbose"); err != nil {
			return err
		}
		return c.run(cmd.Context(), args[0], args[1])
	}
	return cmd
}

// converter is import or export.
type converter struct {
	place
	verb string
	// packs is what happens without --pack and --no-pack.
	strict, packs  bool
	pack, noPack   bool
	compress       string
	replace        bool
	id, session    string
	stdin          io.Reader
	stdout, stderr io.Writer
}

func (c *converter) command(use, short, long, example string) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Example: example}
	cmd.Flags().BoolVar(&c.pack, "pack", false, "pack runs of three and more chunks into rows")
	cmd.Flags().BoolVar(&c.noPack, "no-pack", false, "write one event a line")
	cmd.Flags().StringVar(&c.compress, "compress", "", "none or zstd; without it the extension of OUT decides")
	cmd.Flags().BoolVar(&c.replace, "force", false, "overwrite OUT")
	c.place.register(cmd.Flags())
	return cmd
}

// unused refuses flags that have no meaning in this form of a command.
func (c *converter) unused(cmd *cobra.Command, why string, names ...string) error {
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			return &usageError{fmt.Errorf("--%s has no meaning here: %s", name, why)}
		}
	}
	return nil
}

// take imports a log into the store.
func (c *converter) take(cmd *cobra.Command, name string) error {
	if err := c.unused(cmd, "the store decides how it keeps a log", "pack", "no-pack", "compress", "force"); err != nil {
		return err
	}
	if name == "" {
		return &usageError{errors.New("LOG must not be empty; \"-\" is standard input")}
	}
	var taken client.Imported
	err := func() error {
		in, shut, err := c.input(cmd.Context(), name)
		if err != nil {
			return err
		}
		defer shut()
		return c.at(cmd, nil, need{make: true}, func(ctx context.Context, t *task) (err error) {
			bar := newProgress(c.stderr, "importing", 1, name)
			defer bar.end()
			buffered := bufio.NewReaderSize(&counted{in, bar}, 64<<10)
			head, _ := buffered.Peek(len(zstdMagic))
			taken, err = t.Import(ctx, buffered, client.ImportOptions{ID: c.id, Strict: c.strict, Zstd: string(head) == zstdMagic})
			var said *client.Error
			if errors.As(err, &said) && said.Code == client.CodeSessionConflict {
				err = &guidedError{err, "--id gives it another id"}
			}
			return err
		})
	}()
	var usage *usageError
	switch {
	case errors.Is(err, context.Canceled), errors.As(err, &usage):
		return err
	case err != nil && c.asJSON:
		text, failed := event.Encode(struct {
			Imported bool    `json:"imported"`
			Error    failure `json:"error"`
		}{false, importFailure(err)})
		if failed != nil {
			return err
		}
		c.stdout.Write(append(text, '\n'))
		return &reportedError{err}
	case err != nil:
		return named(name, c.strict, err)
	case c.asJSON:
		warnings := append([]string{}, taken.Warnings...)
		return (&task{out: c.stdout}).print(struct {
			Imported bool           `json:"imported"`
			Session  client.Session `json:"session"`
			Warnings []string       `json:"warnings"`
		}{true, taken.Session, warnings})
	}
	for _, w := range taken.Warnings {
		render.Printf(c.stderr, "foldhost: %s: warning: %s\n", name, w)
	}
	return render.Printf(c.stdout, "imported %s as session %s\n", render.Count(taken.Seq, "event"), taken.Header.ID)
}

// importFailure says by the codes of replay which rule a log breaks.
func importFailure(err error) failure {
	f := failureOf(err)
	var unread *fs.PathError
	switch {
	case f.Code == string(client.CodeEventInvalid) && f.Reason != "":
		f.Code, f.Reason = f.Reason, ""
	case f.Code == "failed" && errors.As(err, &unread):
		f.Code = host.CodeFileUnreadable
	}
	return f
}

// zstdMagic begins what is compressed.
const zstdMagic = "\x28\xb5\x2f\xfd"

// input opens a log before anything else is done for it.
func (c *converter) input(ctx context.Context, name string) (in io.Reader, shut func() error, err error) {
	if name == "-" {
		return newInterruptible(ctx, c.stdin), func() error { return nil }, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("it is a directory")}
	}
	return f, f.Close, nil
}

// counted tells a bar how much was read.
type counted struct {
	r   io.Reader
	bar *progress
}

func (r *counted) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.bar.add(int64(n))
	return n, err
}

// give exports a session of the store: what the server sends is accepted and written as any log is, so that a part of one is never taken for the whole.
func (c *converter) give(cmd *cobra.Command, out string) error {
	if _, err := c.form(out); err != nil {
		return err
	}
	return c.report(c.stdout, c.at(cmd, nil, need{}, func(ctx context.Context, t *task) error {
		if _, err := t.Get(ctx, c.session); err != nil { // So that an id that there is not is heard of as such.
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		from, to := io.Pipe()
		done := make(chan error, 1)
		go func() {
			err := t.Export(ctx, c.session, to, client.ExportOptions{})
			to.CloseWithError(err)
			done <- err
		}()
		c.stdin = from
		err := c.convert(ctx, "session "+c.session, "-", out)
		cancel()
		from.Close()
		<-done
		return err
	}))
}

func (c *converter) run(ctx context.Context, in, out string) error {
	if in == "" || out == "" {
		return &usageError{errors.New("IN and OUT must not be empty; \"-\" is standard input or output")}
	}
	return c.convert(ctx, in, in, out)
}

// convert writes the log in to out. name is what people know it by.
func (c *converter) convert(ctx context.Context, name, in, out string) error {
	form, err := c.form(out)
	if err != nil {
		return err
	}
	bar := newProgress(c.stderr, "reading", 1, in)
	done, err := host.Convert(ctx, host.ConvertOptions{
		In: in, Out: out, Stdin: newInterruptible(ctx, c.stdin), Stdout: c.stdout,
		Strict: c.strict, Progress: bar.add, Replace: c.replace,
		Write: form,
	})
	bar.end()
	if errors.Is(err, context.Canceled) {
		return err
	}
	// With the log on standard output the report has to go elsewhere.
	report := c.stdout
	if out == "-" {
		report = c.stderr
	}
	if c.asJSON {
		return c.reportJSON(report, done, err)
	}
	for _, w := range done.Warnings {
		render.Printf(c.stderr, "foldhost: %s: warning: %s\n", name, w)
	}
	if err != nil {
		return named(name, c.strict, err)
	}
	if out == "-" {
		out = "standard output"
	}
	return render.Printf(report, "%s %s to %s in %s\n", c.verb, render.Count(int64(done.Events), "event"), out, render.Count(int64(done.Lines), "line"))
}

// form is how out is written, by the flags.
func (c *converter) form(out string) (jsonl.WriterOptions, error) {
	if c.pack && c.noPack {
		return jsonl.WriterOptions{}, &usageError{errors.New("--pack and --no-pack exclude each other")}
	}
	compression, err := compressionOf(c.compress, out)
	if err != nil {
		return jsonl.WriterOptions{}, &usageError{err}
	}
	return jsonl.WriterOptions{Verbatim: !c.pack && (c.noPack || !c.packs), Compression: compression}, nil
}

func (c *converter) reportJSON(w io.Writer, done host.Conversion, err error) error {
	if err != nil {
		text := append([]byte(`{"converted":false,"error":`), host.RefusalOf(err).AppendError(nil)...)
		w.Write(append(text, "}\n"...))
		return &reportedError{err}
	}
	warnings := []string{}
	for _, warning := range done.Warnings {
		warnings = append(warnings, warning.String())
	}
	return json.NewEncoder(w).Encode(struct {
		Converted bool     `json:"converted"`
		Events    int64    `json:"events"`
		Lines     int64    `json:"lines"`
		Warnings  []string `json:"warnings"`
	}{true, done.Events, done.Lines, warnings})
}

// compressionOf is what a flag says, and without one the extension.
func compressionOf(flag, out string) (jsonl.Compression, error) {
	switch c := jsonl.Compression(flag); c {
	case jsonl.None, jsonl.Zstd:
		return c, nil
	case "":
	default:
		return "", fmt.Errorf("--compress %s: it is none or zstd", flag)
	}
	switch filepath.Ext(out) {
	case ".zst", ".zstd":
		return jsonl.Zstd, nil
	}
	return jsonl.None, nil
}
