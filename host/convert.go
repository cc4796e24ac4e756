package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/foldhost/foldhost/eventlog"
	"github.com/foldhost/foldhost/eventlog/jsonl"
	"github.com/foldhost/foldhost/host/internal/spool"
)

// ConvertOptions say what to make of a log.
type ConvertOptions struct {
	// In and Out are paths; "-" is Stdin and Stdout.
	In, Out string
	Stdin   io.Reader
	Stdout  io.Writer
	// Strict and Progress are those of LogOptions.
	Strict   bool
	Progress func(more int64)
	// Write says how to write.
	Write jsonl.WriterOptions
	// Replace overwrites what is at Out.
	Replace bool
	// Logger is for those who look for what the error does not say; nil discards.
	Logger *slog.Logger
}

// Conversion is what a conversion did.
type Conversion struct {
	// Events were written in so many Lines, header included.
	Events, Lines int64
	// Warnings say what was dropped of the input.
	Warnings []jsonl.Warning
}

// OutputError: the output could not be written. What was there before is there still. Err says of which file.
type OutputError struct {
	Path string
	Err  error
}

func (e *OutputError) Error() string {
	if errors.Is(e.Err, fs.ErrExist) {
		return fmt.Sprintf("%s exists already: take another name, or have it replaced", e.Path)
	}
	return e.Err.Error()
}

func (e *OutputError) Unwrap() error { return e.Err }

// Convert accepts a log event by event, as an import into a store would, and writes it again. The output is begun only when the whole log was
// accepted: a refused log leaves nothing behind, on standard output neither. Errors are those of OpenLog and of acceptance, and *OutputError. The
// conversion that comes with an error holds the warnings so far.
func Convert(ctx context.Context, o ConvertOptions) (Conversion, error) {
	var done Conversion
	if !o.Replace && o.Out != "-" {
		// Looked at early, so that nobody waits for a long log to hear it; what decides is the look at the end.
		if info, err := os.Lstat(o.Out); err == nil && info.IsDir() {
			return done, &OutputError{Path: o.Out, Err: fmt.Errorf("writing %s: it is a directory", o.Out)}
		} else if err == nil {
			return done, &OutputError{Path: o.Out, Err: fs.ErrExist}
		}
	}
	log, err := OpenLog(ctx, o.In, LogOptions{Strict: o.Strict, Stdin: o.Stdin, Progress: o.Progress})
	if err != nil {
		return done, err
	}
	defer log.Close()
	store := spool.New("")
	defer store.Close()
	h := New(Options{Store: store, Logger: quiet(o.Logger)})
	defer h.Close()
	s, err := h.Sessions().Import(ctx, log.Header(), log.Events())
	done.Warnings = log.Warnings()
	if err != nil {
		return done, err
	}
	write := func(w io.Writer) error {
		out, err := jsonl.NewWriter(w, s.Header(), o.Write)
		if err != nil {
			return err
		}
		for ev, err := range eventlog.Scan(ctx, store, eventlog.Query{Life: eventlog.Life{ID: s.ID()}}) {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				err = out.Write(ev)
			}
			if err != nil {
				_ = out.Close() // It frees what it holds, and would say the same again.
				return err
			}
			done.Events++
		}
		err = out.Close()
		done.Lines = out.Lines()
		return err
	}
	if o.Out == "-" {
		if err := write(o.Stdout); err != nil {
			return done, &OutputError{Path: o.Out, Err: fmt.Errorf("writing to standard output: %w", err)}
		}
		return done, nil
	}
	if err := jsonl.WriteFile(o.Out, o.Replace, write); err != nil {
		return done, &OutputError{Path: o.Out, Err: err}
	}
	return done, nil
}
