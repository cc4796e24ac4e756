package host

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry"
	"github.com/foldhost/foldhost/surface"
)

// Result is what a replay of an accepted log gives.
type Result struct {
	Header event.Header
	// Events is how many were replayed, AsOfSeq the seq of the last, −1 for none.
	Events, AsOfSeq int64
	Surface         surface.State
	// Messages are what a model would see, in order.
	Messages []Message
	// Closers are the types of the events that would close an open turn. They were not appended.
	Closers []string
	// Changes are all of them, ordered by seq, then key; none where a Watch has heard them.
	Changes []ReplayChange
	// Values are as of AsOfSeq by key. A key that failed is under Unavailable instead.
	Values      map[string]json.RawMessage
	Unavailable map[string]registry.Unavailable
}

// Message says which message stands on the surface, and whose; both are JSON strings as logged.
type Message struct{ ID, Role json.RawMessage }

// ReplayChange is one change of one value.
type ReplayChange struct {
	Key   string
	Seq   int64
	Value json.RawMessage
}

// pieceBytes is how much of a result is put together before it is written: 64 KiB.
const pieceBytes = 64 << 10

// WriteJSON writes the result as `foldhost replay --json` prints it, without a newline; docs/replay.md gives the shape. file is left out when
// empty. Values are copied byte for byte, keys are sorted. It goes out piece by piece, as the changes of a long log are larger than the log.
// The error is that of w.
func (r *Result) WriteJSON(w io.Writer, file string) error {
	var err error
	flush := func(dst []byte) []byte {
		if err == nil {
			_, err = w.Write(dst)
		}
		return dst[:0]
	}
	piece := func(dst []byte) []byte {
		if len(dst) < pieceBytes {
			return dst
		}
		return flush(dst)
	}
	dst := appendFile([]byte{'{'}, file)
	dst = append(dst, `"accepted":true,"events":`...)
	dst = strconv.AppendInt(dst, r.Events, 10)
	dst = append(dst, `,"asOfSeq":`...)
	dst = strconv.AppendInt(dst, r.AsOfSeq, 10)
	dst = append(dst, `,"surface":{"nodes":`...)
	dst = appendSeqs(dst, r.Surface.Nodes)
	dst = append(dst, `,"replaceGeneration":`...)
	dst = strconv.AppendInt(dst, r.Surface.ReplaceGeneration, 10)
	dst = append(dst, `,"replacements":`...)
	dst = appendList(dst, r.Surface.Replacements, func(dst []byte, p surface.Replacement) []byte {
		dst = strconv.AppendInt(append(dst, `{"seq":`...), p.Seq, 10)
		dst = strconv.AppendInt(append(dst, `,"start":`...), p.Start, 10)
		dst = strconv.AppendInt(append(dst, `,"end":`...), p.End, 10)
		return piece(append(appendSeqs(append(dst, `,"shadowedSeqs":`...), p.ShadowedSeqs), '}'))
	})
	dst = append(dst, `},"messages":`...)
	dst = appendList(dst, r.Messages, func(dst []byte, m Message) []byte {
		dst = append(append(dst, `{"id":`...), m.ID...)
		return piece(append(append(append(dst, `,"role":`...), m.Role...), '}'))
	})
	dst = append(dst, `,"closers":`...)
	dst = appendList(dst, r.Closers, event.AppendString)
	dst = append(dst, `,"changes":`...)
	dst = appendList(dst, r.Changes, func(dst []byte, c ReplayChange) []byte {
		dst = event.AppendString(append(dst, `{"key":`...), c.Key)
		dst = strconv.AppendInt(append(dst, `,"seq":`...), c.Seq, 10)
		return piece(append(append(append(dst, `,"value":`...), c.Value...), '}'))
	})
	dst = append(dst, `,"values":`...)
	dst = appendMap(dst, r.Values, func(dst []byte, v json.RawMessage) []byte { return append(dst, v...) })
	if len(r.Unavailable) > 0 {
		dst = append(dst, `,"unavailable":`...)
		dst = appendMap(dst, r.Unavailable, func(dst []byte, u registry.Unavailable) []byte { return u.AppendJSON(dst) })
	}
	flush(append(dst, '}'))
	return err
}

func appendFile(dst []byte, file string) []byte {
	if file == "" {
		return dst
	}
	return append(event.AppendString(append(dst, `"file":`...), file), ',')
}

func appendSeqs(dst []byte, seqs []int64) []byte {
	return appendList(dst, seqs, func(dst []byte, seq int64) []byte { return strconv.AppendInt(dst, seq, 10) })
}

func appendList[T any](dst []byte, list []T, elem func([]byte, T) []byte) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = elem(dst, v)
	}
	return append(dst, ']')
}

func appendMap[T any](dst []byte, m map[string]T, value func([]byte, T) []byte) []byte {
	dst = append(dst, '{')
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = value(append(event.AppendString(dst, key), ':'), m[key])
	}
	return append(dst, '}')
}
