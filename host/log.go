package host

import (
	"context"
	"io"
	"iter"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog/jsonl"
)

// LogOptions say how to read a log.
type LogOptions struct {
	// Strict forgives only a last line without newline; otherwise a torn tail is dropped with a warning.
	Strict bool
	// Stdin is what the path "-" reads.
	Stdin io.Reader
	// Progress hears how many more bytes of the input were read, from time to time; nil for nobody.
	Progress func(more int64)
}

// Log is a log being read, once.
type Log struct {
	*jsonl.Reader
	ctx      context.Context
	progress func(more int64)
	// told is how much Progress has heard of.
	told int64
}

// OpenLog reads the header of the log at path, "-" for standard input. The context ends the reading of events. Errors are those of jsonl.Open:
// *jsonl.ReadError, or *event.IndexError for the header.
func OpenLog(ctx context.Context, path string, o LogOptions) (*Log, error) {
	var r *jsonl.Reader
	var err error
	if path == "-" {
		r, err = jsonl.NewReader(o.Stdin, jsonl.Options{Strict: o.Strict})
	} else {
		r, err = jsonl.Open(path, jsonl.Options{Strict: o.Strict})
	}
	if err != nil {
		return nil, err
	}
	return &Log{Reader: r, ctx: ctx, progress: o.Progress}, nil
}

// Events gives the events in order; see jsonl.Reader.Events.
func (l *Log) Events() iter.Seq2[event.Draft, error] {
	return func(yield func(event.Draft, error) bool) {
		defer l.tell()
		for d, err := range l.Reader.Events() {
			if err == nil {
				err = l.ctx.Err()
			}
			if !yield(d, err) || err != nil {
				return
			}
			l.tell()
		}
	}
}

func (l *Log) tell() {
	if l.progress == nil {
		return
	}
	if done, _ := l.Progress(); done > l.told {
		l.progress(done - l.told)
		l.told = done
	}
}
