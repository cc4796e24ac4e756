package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// levelTrace stands below slog's levels, as hclog's and logrus's trace do.
const levelTrace = slog.LevelDebug - 4

// entry is one line of a plugin's output as the host's log gets it.
type entry struct {
	level   slog.Level
	message string
	fields  []slog.Attr
}

// maxFields bounds what one JSON line adds to a log record. No logger's own line has as many.
const maxFields = 32

// parseStderr reads one line: JSON as hclog, slog, zap and logrus write it, with its level; anything else is text at info.
// It takes any bytes.
func parseStderr(line []byte) entry {
	plain := entry{level: slog.LevelInfo, message: printable(string(line))}
	if len(line) == 0 || line[0] != '{' {
		return plain
	}
	var obj map[string]json.RawMessage
	if json.Unmarshal(line, &obj) != nil {
		return plain
	}
	// hclog writes @message, slog and zap and logrus msg, zerolog message.
	message, hasMessage := take(obj, "@message", "msg", "message")
	level, hasLevel := take(obj, "@level", "level")
	if !hasMessage && !hasLevel {
		return plain
	}
	e := entry{level: levelOf(level), message: message}
	if !hasMessage {
		e.message = plain.message
		return e
	}
	// The host's record has a time of its own.
	for _, key := range []string{"@timestamp", "time", "ts"} {
		delete(obj, key)
	}
	keys := make([]string, 0, len(obj))
	for key := range obj {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys[:min(len(keys), maxFields)] {
		e.fields = append(e.fields, slog.String(printable(key), textOf(obj[key])))
	}
	return e
}

// take removes the first of the keys that is there. A value that is not a string counts with its JSON.
func take(obj map[string]json.RawMessage, keys ...string) (value string, ok bool) {
	for _, key := range keys {
		if raw, there := obj[key]; there {
			delete(obj, key)
			return textOf(raw), true
		}
	}
	return "", false
}

func textOf(raw json.RawMessage) string {
	var s string
	if bytes.HasPrefix(raw, []byte{'"'}) && json.Unmarshal(raw, &s) == nil {
		return printable(s)
	}
	return printable(string(raw))
}

// levelOf reads a level's name in any case, and slog's form with an offset ("ERROR+2"). What it does not know is info.
func levelOf(name string) slog.Level {
	switch strings.ToLower(name) {
	case "trace":
		return levelTrace
	case "warning":
		return slog.LevelWarn
	case "err", "fatal", "panic", "dpanic", "critical":
		return slog.LevelError
	}
	var level slog.Level
	if level.UnmarshalText([]byte(name)) != nil {
		return slog.LevelInfo
	}
	return level
}

// maxLinesPerSecond bounds what one plugin puts into the host's log. A plugin that logs at debug stays far below it; one that
// writes in a loop would fill a disk. What is left out is counted in the log, and stands in the tail.
const maxLinesPerSecond = 1000

// outputLog writes lines of output to the host's log. Not for concurrent use.
type outputLog struct {
	logger *slog.Logger
	stream string // "stderr" or "stdout"
	now    func() time.Time

	second  int64
	written int
	dropped int
}

func (o *outputLog) line(line []byte, cut int) {
	if len(line) == 0 && cut == 0 {
		return
	}
	if second := o.now().Unix(); second != o.second {
		o.close()
		o.second, o.written = second, 0
	}
	if o.written++; o.written > maxLinesPerSecond {
		o.dropped++
		return
	}
	e := entry{level: slog.LevelInfo}
	switch {
	case cut > 0:
		e.message = printable(string(line)) + fmt.Sprintf(" … (%d bytes left out)", cut)
	case o.stream == "stdout":
		e.message = printable(string(line))
	default:
		e = parseStderr(line)
	}
	attrs := []slog.Attr{slog.String("stream", o.stream)}
	if len(e.fields) > 0 {
		attrs = append(attrs, slog.Attr{Key: "fields", Value: slog.GroupValue(e.fields...)})
	}
	o.logger.LogAttrs(context.Background(), e.level, e.message, attrs...)
}

// close says what was left out.
func (o *outputLog) close() {
	if o.dropped > 0 {
		o.logger.Warn("lines of the plugin's output were left out of the log: it writes too many",
			"stream", o.stream, "lines", o.dropped, "limitPerSecond", maxLinesPerSecond)
		o.dropped = 0
	}
}
