package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/foldhost/foldhost/cmd/host/internal/render"
	"github.com/foldhost/foldhost/eventlog/jsonl"
	"github.com/foldhost/foldhost/host"
)

func importCommand() *cobra.Command {
	c := converter{verb: "imported"}
	cmd := c.command("import IN OUT", "Read a log from elsewhere, check it and write it one event a line",
		"import accepts the log IN event by event and writes it to OUT. A torn tail, as a writer that died can leave it, is dropped with\n"+
			"a warning; everything else that is wrong refuses the log. \"-\" is standard input or output.",
		"  foldhost import session.jsonl.zst session.jsonl")
	cmd.Flags().BoolVar(&c.strict, "strict", false, "forgive only a last line without newline")
	return cmd
}

func exportCommand() *cobra.Command {
	c := converter{verb: "exported", strict: true, packs: true}
	return c.command("export IN OUT", "Check a log and write it with runs of chunks packed",
		"export accepts the log IN event by event and writes it to OUT, with runs of chunks packed into rows. Importing an export gives the same\n"+
			"events again. \"-\" is standard input or output.",
		"  foldhost export session.jsonl session.jsonl.zst")
}

// converter is import or export.
type converter struct {
	verb string
	// packs is what happens without --pack and --no-pack.
	strict, packs   bool
	pack, noPack    bool
	compress        string
	replace, asJSON bool
	stdin           io.Reader
	stdout, stderr  io.Writer
}

func (c *converter) command(use, short, long, example string) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
		Args: wrongUsage(exactly("IN", "OUT")),
		RunE: func(cmd *cobra.Command, args []string) error {
			c.stdin, c.stdout, c.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			return c.run(cmd.Context(), args[0], args[1])
		},
	}
	cmd.Flags().BoolVar(&c.pack, "pack", false, "pack runs of three and more chunks into rows")
	cmd.Flags().BoolVar(&c.noPack, "no-pack", false, "write one event a line")
	cmd.Flags().StringVar(&c.compress, "compress", "", "none or zstd; without it the extension of OUT decides")
	cmd.Flags().BoolVar(&c.replace, "force", false, "overwrite OUT")
	cmd.Flags().BoolVar(&c.asJSON, "json", false, "report in JSON")
	return cmd
}

func (c *converter) run(ctx context.Context, in, out string) error {
	if c.pack && c.noPack {
		return &usageError{errors.New("--pack and --no-pack exclude each other")}
	}
	if in == "" || out == "" {
		return &usageError{errors.New("IN and OUT must not be empty; \"-\" is standard input or output")}
	}
	compression, err := compressionOf(c.compress, out)
	if err != nil {
		return &usageError{err}
	}
	bar := newProgress(c.stderr, "reading", 1, in)
	done, err := host.Convert(ctx, host.ConvertOptions{
		In: in, Out: out, Stdin: newInterruptible(ctx, c.stdin), Stdout: c.stdout,
		Strict: c.strict, Progress: bar.add, Replace: c.replace,
		Write: jsonl.WriterOptions{Verbatim: !c.pack && (c.noPack || !c.packs), Compression: compression},
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
		render.Printf(c.stderr, "foldhost: %s: warning: %s\n", in, w)
	}
	if err != nil {
		return named(in, c.strict, err)
	}
	if out == "-" {
		out = "standard output"
	}
	return render.Printf(report, "%s %d events to %s in %d lines\n", c.verb, done.Events, out, done.Lines)
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
