package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/foldhost/foldhost/event"
)

// number is a flag that takes a whole number from least on, to the largest that logs have. What it does not take is wrong usage, found before anything is begun.
type number struct {
	to    *int64
	least int64
	// takes says what it takes, and what that counts, as the end of a sentence.
	takes string
}

// What flags of numbers take.
const (
	takesSeq       = "it is a seq, which counts from 0"
	takesSeqOrNone = "it is a seq, which counts from 0; -1 is the empty log"
	takesLength    = "it is the length of the log, from 0 on"
	takesSome      = "it is a whole number from 1 on"
	takesAny       = "it is a whole number from 0 on"
)

// numberFlag makes a flag of a number, which has the value otherwise without it.
func numberFlag(to *pflag.FlagSet, n *int64, name, shorthand string, otherwise, least int64, takes, usage string) {
	*n = otherwise
	to.VarP(&number{n, least, takes}, name, shorthand, usage)
}

// Set implements pflag.Value.
func (n *number) Set(text string) error {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < n.least || v > event.MaxInteger {
		return errors.New(n.takes)
	}
	*n.to = v
	return nil
}

// String implements pflag.Value; it is what help shows as the default.
func (n *number) String() string {
	if n.to == nil {
		return "0" // pflag asks a zero value whether the default is worth showing.
	}
	return strconv.FormatInt(*n.to, 10)
}

// Type implements pflag.Value; it is what help calls the value.
func (n *number) Type() string { return "int" }

// wrongFlag says what is wrong with a flag as the rest of this program says such things: the flag, what it was given, what it takes.
func wrongFlag(err error) error {
	var wrong *pflag.InvalidValueError
	if !errors.As(err, &wrong) {
		return err
	}
	takes := wrong.Unwrap()
	if wrong.GetFlag().Value.Type() == "bool" {
		takes = errors.New("it is true or false")
	}
	return fmt.Errorf("--%s %q: %w", wrong.GetFlag().Name, wrong.GetValue(), takes)
}
