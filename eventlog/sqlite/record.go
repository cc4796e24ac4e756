package sqlite

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/eventlog"
)

// castagnoli is the polynomial that processors compute by themselves: some gigabytes a second.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is a CRC-32C over what a record means. The lengths are part of it, so that nothing can move from one field into the next. It is kept as a signed
// number, which SQLite stores in four bytes.
type checksum struct {
	crc uint32
	buf [8]byte
}

func (c *checksum) number(n int64) {
	binary.LittleEndian.PutUint64(c.buf[:], uint64(n))
	c.crc = crc32.Update(c.crc, castagnoli, c.buf[:])
}

func (c *checksum) bytes(b []byte) {
	n := int64(len(b))
	if b == nil {
		n = -1 // absent is not empty
	}
	c.number(n)
	c.crc = crc32.Update(c.crc, castagnoli, b)
}

func (c *checksum) text(s string) {
	c.number(int64(len(s)))
	var buf [64]byte
	for len(s) > 0 {
		n := copy(buf[:], s)
		c.crc = crc32.Update(c.crc, castagnoli, buf[:n])
		s = s[n:]
	}
}

func (c *checksum) sum() int64 { return int64(int32(c.crc)) }

// eventSum covers all of a stored event but its position.
func eventSum(log int64, ev *event.Event, extra []byte) int64 {
	var c checksum
	c.number(log)
	c.number(ev.Seq)
	c.number(ev.Time)
	c.text(ev.Type)
	c.bytes(ev.Data)
	c.bytes(extra)
	return c.sum()
}

// appendExtra encodes what few events have: a surface operation, sources, the ignorable mark. It is nil for an event that has none of them, and otherwise one JSON
// object with the keys that these fields have in a log.
func appendExtra(dst []byte, ev *event.Event) []byte {
	if ev.Op.Kind == event.OpNone && ev.Sources == nil && !ev.Ignorable {
		return nil
	}
	dst = append(dst, '{')
	key := func(name string) {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), name...), '"', ':')
	}
	switch ev.Op.Kind {
	case event.OpAppend:
		key("surfaceOp")
		dst = append(dst, `"append"`...)
	case event.OpReplace:
		key("surfaceOp")
		dst = append(dst, `{"op":"replace","start":`...)
		dst = strconv.AppendInt(dst, ev.Op.Start, 10)
		dst = append(dst, `,"end":`...)
		dst = strconv.AppendInt(dst, ev.Op.End, 10)
		dst = append(dst, '}')
	}
	if ev.Sources != nil {
		key("sourceEventSeqs")
		dst = append(dst, '[')
		for i, seq := range ev.Sources {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, seq, 10)
		}
		dst = append(dst, ']')
	}
	if ev.Ignorable {
		key("ignorable")
		dst = append(dst, "true"...)
	}
	return append(dst, '}')
}

// decodeExtra reads what appendExtra wrote.
func decodeExtra(raw []byte, ev *event.Event) error {
	if raw == nil {
		return nil
	}
	fault := ""
	if err := event.CheckLossless(raw, "$"); err != nil {
		return err
	}
	isObject := event.Members(raw, func(name string, value json.RawMessage) bool {
		switch name {
		case "surfaceOp":
			ev.Op, fault = event.DecodeSurfaceOp(value)
		case "sourceEventSeqs":
			ev.Sources, fault = event.DecodeSources(value)
		case "ignorable":
			if ev.Ignorable = string(value) == "true"; !ev.Ignorable {
				fault = "ignorable is not true"
			}
		default:
			fault = fmt.Sprintf("there is a key %q", name)
		}
		return fault == ""
	})
	if !isObject {
		fault = "it is no object"
	}
	if fault != "" {
		return fmt.Errorf("its surface fields cannot be read: %s", fault)
	}
	return nil
}

// logSum covers what is fixed about a log.
func logSum(n int64, id, incarnation string, header []byte, firstLive int64) int64 {
	var c checksum
	c.number(n)
	c.text(id)
	c.text(incarnation)
	c.bytes(header)
	c.number(firstLive)
	return c.sum()
}

// headSum covers what changes with each commit of a log.
func headSum(log, seq, position, updated int64) int64 {
	var c checksum
	c.number(log)
	c.number(seq)
	c.number(position)
	c.number(updated)
	return c.sum()
}

// rowSum covers a checkpoint row.
func rowSum(log int64, r *eventlog.Row) int64 {
	var c checksum
	c.number(log)
	c.text(r.Key)
	c.number(r.Cut)
	c.number(r.Seq)
	c.bytes(r.Data)
	return c.sum()
}
