package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/foldhost/foldhost/cmd/host/internal/render"
	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/jsonl"
	"github.com/foldhost/foldhost/host"
	"github.com/foldhost/foldhost/host/config"
)

// Exit codes. 130 is what shells know an interrupted program by.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// usageError is a command line that makes no sense.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// reportedError is a failure that the command has printed itself, in the form that was asked for.
type reportedError struct{ err error }

func (e *reportedError) Error() string { return e.err.Error() }
func (e *reportedError) Unwrap() error { return e.err }

func isReported(err error) bool {
	var r *reportedError
	return errors.As(err, &r)
}

func exitCode(err error) int {
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitFailure
}

// complain tells a person what went wrong: a line for the error, or for each problem of a configuration, and one for the way out.
func complain(w io.Writer, err error) {
	for i, line := range describe(err) {
		if i == 0 {
			line = "foldhost: " + line
		}
		render.Printf(w, "%s\n", line)
	}
}

// describe is what a person reads. An error itself is one line, whatever stands in the names of files that it quotes.
func describe(err error) (lines []string) {
	var guided *guidedError
	var file *config.Error
	switch {
	case errors.Is(err, context.Canceled):
		return []string{"interrupted; nothing was left half done"}
	case errors.As(err, &guided):
		return append(describe(guided.err), guided.way)
	case errors.As(err, &file):
		for _, p := range file.Problems { // In the form that editors jump to.
			lines = append(lines, (&config.Error{File: file.File, Problems: []config.Problem{p}}).Error())
		}
		return lines
	}
	return []string{err.Error()}
}

// guidedError is an error with the way out of it.
type guidedError struct {
	err error
	way string
}

func (e *guidedError) Error() string { return e.err.Error() + "\n" + e.way }
func (e *guidedError) Unwrap() error { return e.err }

// named is an error that names the file, unless it does so already, and the way out where there is one. strict says how the file was read.
func named(file string, strict bool, err error) error {
	if file == "-" {
		file = "standard input"
	}
	var output *host.OutputError
	if !errors.As(err, &output) && !strings.Contains(err.Error(), file) {
		err = fmt.Errorf("%s: %w", file, err)
	}
	if way := wayOut(strict, err); way != "" {
		err = &guidedError{err, way}
	}
	return err
}

// wayOut is what to try, in terms of this program.
func wayOut(strict bool, err error) string {
	var rule *event.Error
	var gap *jsonl.GapError
	switch {
	case errors.Is(err, fs.ErrExist):
		return "--force overwrites it"
	case !strict && errors.As(err, &gap):
		return "a turn ends after it, so this is no torn tail, and nothing is dropped out of the middle of a log"
	case !strict || !errors.As(err, &rule):
		return ""
	}
	switch rule.Code {
	case event.EnvelopeInvalid, event.SeqNotContiguous, event.DataNotLossless:
		return "if its writer died there and no turn ends later, foldhost import without --strict keeps what stands before"
	}
	return ""
}
