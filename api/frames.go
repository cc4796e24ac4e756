package api

import (
	"encoding/json"
	"strconv"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/registry"
)

// Kinds of frames.
const (
	frameSubscribed  = "session/subscribed"
	frameReset       = "session/reset"
	frameBaseline    = "session/baseline"
	frameEvent       = "session/event"
	frameProjection  = "session/projection"
	frameUnavailable = "session/projection-unavailable"
	frameRemoved     = "session/projection-removed"
	frameDeleted     = "session/deleted"
	frameUnknown     = "session/unknown"
)

// mark is the id of a frame that moves the position: "<incarnation>:<seq>", or "<storeId>:<commit position>" on a stream of many sessions. The zero mark is none.
type mark struct {
	life string
	at   int64
}

// frames makes the frames of one session. What it appends never holds a line break where a frame must not have one: JSON escapes them in strings, and nothing is
// sent with white space outside.
type frames struct{ session, incarnation string }

// open begins a frame up to where its own fields follow.
func (f frames) open(dst []byte, kind string) []byte {
	dst = append(append(append(dst, "event: "...), kind...), '\n')
	return f.data(dst, kind)
}

// openAt is open for a frame that moves the position.
func (f frames) openAt(dst []byte, kind string, m mark) []byte {
	if m.life == "" {
		return f.open(dst, kind)
	}
	dst = append(append(append(dst, "event: "...), kind...), "\nid: "...)
	dst = append(append(dst, m.life...), ':')
	return f.data(append(strconv.AppendInt(dst, m.at, 10), '\n'), kind)
}

func (f frames) data(dst []byte, kind string) []byte {
	dst = append(append(append(dst, `data: {"type":"`...), kind...), `","sessionId":`...)
	return event.AppendString(dst, f.session)
}

// shut ends a frame.
func shut(dst []byte) []byte { return append(dst, "}\n\n"...) }

func number(dst []byte, name string, n int64) []byte {
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return strconv.AppendInt(dst, n, 10)
}

func text(dst []byte, name, s string) []byte {
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return event.AppendString(dst, s)
}

func (f frames) subscribed(dst []byte, lastSeq int64, epoch string, heartbeatMs int64) []byte {
	dst = number(f.open(dst, frameSubscribed), "lastSeq", lastSeq)
	dst = text(text(dst, "incarnation", f.incarnation), "epoch", epoch)
	return shut(number(dst, "heartbeatMs", heartbeatMs))
}

func (f frames) reset(dst []byte, reason string) []byte {
	return shut(text(f.open(dst, frameReset), "reason", reason))
}

// baseline is the frame of a block, whose fields stand beside those of the frame; put is that of Block.AppendMembers.
func (f frames) baseline(dst []byte, b *registry.Block, m mark, put func(dst, value []byte) []byte) []byte {
	return shut(b.AppendMembers(append(f.openAt(dst, frameBaseline, m), ','), put))
}

func (f frames) event(dst []byte, ev *event.Event, m mark) []byte {
	dst = append(f.openAt(dst, frameEvent, m), `,"event":`...)
	return shut(ev.AppendJSON(dst))
}

func (f frames) projection(dst []byte, key string, value json.RawMessage, seq, rev int64) []byte {
	dst = append(text(f.open(dst, frameProjection), "key", key), `,"value":`...)
	return shut(number(number(append(dst, value...), "seq", seq), "rev", rev))
}

// change is the frame of a change of the feed, empty for a kind that has none.
func (f frames) change(dst []byte, c *registry.Change) []byte {
	switch c.Kind {
	case registry.KindValue:
		return f.projection(dst, c.Key, c.Value, c.Seq, c.Rev)
	case registry.KindUnavailable:
		return f.unavailable(dst, c.Key, c.Unavailable, c.Rev)
	case registry.KindRemoved:
		return f.removed(dst, c.Key, c.Rev)
	}
	return dst
}

func (f frames) unavailable(dst []byte, key string, u *registry.Unavailable, rev int64) []byte {
	dst = text(text(f.open(dst, frameUnavailable), "key", key), "code", string(u.Code))
	return shut(number(text(number(dst, "seq", u.Seq), "message", u.Message), "rev", rev))
}

func (f frames) removed(dst []byte, key string, rev int64) []byte {
	return shut(number(text(f.open(dst, frameRemoved), "key", key), "rev", rev))
}

func (f frames) deleted(dst []byte) []byte { return shut(f.open(dst, frameDeleted)) }

func (f frames) unknown(dst []byte) []byte { return shut(f.open(dst, frameUnknown)) }
