package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// describe is what a person reads on stderr.
func describe(err error) string {
	if errors.Is(err, context.Canceled) {
		return "interrupted; nothing was left half done"
	}
	return err.Error()
}

// named is an error that names the file, unless it does so already.
func named(file string, err error) error {
	if file == "-" {
		file = "standard input"
	}
	if strings.Contains(err.Error(), file) {
		return err
	}
	return fmt.Errorf("%s: %w", file, err)
}
