package config

import (
	"fmt"
	"strings"
)

// Error is a file that is refused, with everything that is wrong with it, in the order of the file.
type Error struct {
	File     string
	Problems []Problem
}

// Problem is one thing that is wrong. Line and Column count from 1; they are 0 where there is no place.
type Problem struct {
	Line, Column int
	// Path is the place in the file's terms, such as "plugins.todo.timeouts.start".
	Path string
	// Reason says what is wrong and what to do.
	Reason string
}

func (p Problem) String() string {
	if p.Path == "" {
		return p.Reason
	}
	return p.Path + ": " + p.Reason
}

// Error gives one line for each problem, in the form that editors jump to.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
		b.WriteString(p.String())
	}
	return b.String()
}

// ReadError is a file that could not be read at all.
type ReadError struct {
	File string
	Err  error
}

func (e *ReadError) Error() string { return fmt.Sprintf("read the configuration: %v", e.Err) }
func (e *ReadError) Unwrap() error { return e.Err }
