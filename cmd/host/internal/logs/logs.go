// Package logs writes what the host and its plugins log, through hclog, as lines for people or JSON for programs.
//
// Whatever a record says, it is one record: plugins, callers and logs are full of text of strangers, in which there may be lines that look like ours and what steers terminals.
package logs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/term"
)

// Formats and Levels are the names that there are. Auto is text on a terminal, and else JSON.
var (
	Formats = []string{"auto", "json", "text"}
	Levels  = []string{"trace", "debug", "info", "warn", "error"}
)

// Options of a logger.
type Options struct {
	// Format is one of Formats, Level of Levels; empty is auto, and warn.
	Format, Level string
}

// ChoiceError: there is no such format or level.
type ChoiceError struct {
	What, Got string
	Known     []string
}

func (e *ChoiceError) Error() string {
	return fmt.Sprintf("there is no %s %q: take one of %s", e.What, e.Got, strings.Join(e.Known, ", "))
}

// Check says whether there is what the options ask for. The error is a *ChoiceError.
func (o Options) Check() error {
	switch {
	case o.Format != "" && !slices.Contains(Formats, o.Format):
		return &ChoiceError{"log format", o.Format, Formats}
	case o.Level != "" && !slices.Contains(Levels, o.Level):
		return &ChoiceError{"log level", o.Level, Levels}
	}
	return nil
}

// New makes a logger that writes to w. What the options name and is not there is as if it were not named.
func New(w io.Writer, o Options) *slog.Logger {
	level := hclog.LevelFromString(o.Level)
	if level == hclog.NoLevel {
		level = hclog.Warn
	}
	json := o.Format == "json" || o.Format != "text" && !isTerminal(w)
	sink := hclog.New(&hclog.LoggerOptions{Output: w, Level: level, JSONFormat: json, JSONEscapeDisabled: true, Color: hclog.ColorOff, TimeFormat: "2006-01-02T15:04:05.000Z07:00"})
	return slog.New(&handler{sink: sink, json: json, limit: newLimit()})
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// handler hands records over to hclog.
type handler struct {
	sink  hclog.Logger
	json  bool
	limit *limit
	// about is what With has added, in pairs as hclog takes them; group is before the keys of what comes.
	about []any
	group string
	// of is whom With has named, for the limit.
	of subject
}

// Enabled implements slog.Handler.
func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	return levelOf(level) >= h.sink.GetLevel()
}

// levelOf is hclog's level for one of slog's, which has places between.
func levelOf(level slog.Level) hclog.Level {
	switch {
	case level < slog.LevelDebug:
		return hclog.Trace
	case level < slog.LevelInfo:
		return hclog.Debug
	case level < slog.LevelWarn:
		return hclog.Info
	case level < slog.LevelError:
		return hclog.Warn
	}
	return hclog.Error
}

// Handle implements slog.Handler.
func (h *handler) Handle(_ context.Context, r slog.Record) error {
	args, of := slices.Clip(h.about), h.of
	r.Attrs(func(a slog.Attr) bool {
		args = h.attr(args, h.group, a)
		of.hear(h.group, a)
		return true
	})
	if r.Level >= slog.LevelWarn && !of.output {
		of.message = r.Message
		written, more := h.limit.take(of, r.Time)
		if !written {
			return nil
		}
		args = append(args, more...)
	}
	h.sink.Log(levelOf(r.Level), h.message(r.Message), args...)
	return nil
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	n := *h
	n.about = slices.Clip(h.about)
	for _, a := range attrs {
		n.about = h.attr(n.about, h.group, a)
		n.of.hear(h.group, a)
	}
	return &n
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	n := *h
	if name != "" {
		n.group += name + "."
	}
	return &n
}

// attr adds what an attribute says.
func (h *handler) attr(args []any, group string, a slog.Attr) []any {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			group += a.Key + "."
		}
		for _, one := range v.Group() {
			args = h.attr(args, group, one)
		}
		return args
	}
	if a.Equal(slog.Attr{}) {
		return args
	}
	return append(args, keyOf(group+a.Key), h.value(a.Key, v))
}

// value is what hclog is given: numbers as they are, all else as text that is harmless.
func (h *handler) value(key string, v slog.Value) any {
	switch v.Kind() {
	case slog.KindBool:
		if !h.json {
			return v.String()
		}
		return v.Bool()
	case slog.KindInt64:
		return v.Int64()
	case slog.KindUint64:
		return v.Uint64()
	case slog.KindFloat64:
		if !h.json {
			return v.String()
		}
		return v.Float64()
	}
	// A stack is ours but for the panic in it, and is read by people: hclog gives each of its lines a bar.
	return harmless(v.String(), h.json || key == "stack")
}
