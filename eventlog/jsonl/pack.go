package jsonl

import (
	"bytes"
	"strconv"

	"github.com/foldhost/foldhost/event"
)

const (
	// minRow is how many chunks make a row; two take less room as they are.
	minRow = 3
	// maxRow is about how long a row gets, 1 MiB: a reader holds a whole row, and its limit is 16 times that. A longer run is
	// several rows.
	maxRow = 1 << 20
)

// packer collects a run of chunks until something comes that does not continue it.
type packer struct {
	run         run
	n           int
	seq0, time0 int64
	seq, time   int64 // of the last chunk
	// first holds the first chunks, in case there will not be enough for a row.
	first [minRow - 1]event.Event
	// dt and members are the lists so far, without brackets.
	dt, members []byte
}

// add takes an event that continues the run or begins one, and says whether it did. An event that is not taken needs the run flushed
// first.
func (p *packer) add(e *event.Event) bool {
	r, text, ok := chunkOf(e)
	if !ok {
		return false
	}
	if p.n == 0 {
		p.run, p.seq0, p.time0 = r.clone(), e.Seq, e.Time
		p.dt, p.members = p.dt[:0], p.members[:0]
	} else {
		dt := e.Time - p.time
		if !p.run.same(&r) || e.Seq != p.seq+1 || !safe(dt) || len(p.dt)+len(p.members)+len(text) > maxRow {
			return false
		}
		if p.n > 1 {
			p.dt = append(p.dt, ',')
		}
		p.dt = strconv.AppendInt(p.dt, dt, 10)
		p.members = append(p.members, ',')
	}
	if p.n < len(p.first) {
		p.first[p.n] = *e
	}
	p.members = append(p.members, text...)
	p.seq, p.time = e.Seq, e.Time
	p.n++
	return true
}

// flush appends what was collected as lines and begins anew.
func (p *packer) flush(dst []byte) []byte {
	if p.n < minRow {
		for i := range p.n {
			dst = append(p.first[i].AppendJSON(dst), '\n')
		}
	} else {
		dst = append(p.appendRow(dst), '\n')
	}
	p.n = 0
	return dst
}

func (p *packer) appendRow(dst []byte) []byte {
	r := &p.run
	dst = append(append(append(dst, `{"type":"`...), r.kind.tag...), `","seq0":`...)
	dst = append(strconv.AppendInt(dst, p.seq0, 10), `,"time0":`...)
	dst = strconv.AppendInt(dst, p.time0, 10)
	dst = append(append(dst, `,"data":{"turn":`...), r.turn...)
	dst = append(append(dst, `,"step":`...), r.step...)
	dst = append(append(dst, `,"index":`...), r.index...)
	dst = append(append(dst, `,"dt":[`...), p.dt...)
	dst = append(append(append(dst, `],"`...), r.kind.members...), `":[`...)
	dst = append(append(dst, p.members...), ']')
	if r.kind.call {
		dst = append(append(dst, `,"id":`...), r.id...)
		if r.name != nil {
			dst = append(append(dst, `,"name":`...), r.name...)
		}
	}
	return append(dst, `}}`...)
}

// chunkOf takes an event apart when it is a chunk in exactly the form that a row gives back, byte for byte; anything else is written
// as it is. The tokens are pieces of the event's data.
func chunkOf(e *event.Event) (r run, text []byte, ok bool) {
	if e.Type != event.AssistantChunk || e.Op.Kind != event.OpNone || e.Sources != nil || e.Ignorable || !safe(e.Time) ||
		e.Seq < 0 || e.Seq > event.MaxInteger {
		return run{}, nil, false
	}
	c := cutter{rest: e.Data}
	c.skip(`{"turn":`)
	r.turn = c.number()
	c.skip(`,"step":`)
	r.step = c.number()
	c.skip(`,"chunk":{"type":"`)
	for _, k := range kinds {
		if rest, found := bytes.CutPrefix(c.rest, []byte(k.delta)); found {
			r.kind, c.rest = k, rest
			break
		}
	}
	if r.kind == nil {
		return run{}, nil, false
	}
	c.skip(`","index":`)
	r.index = c.number()
	if r.kind.call {
		c.skip(`,"id":`)
		r.id = c.text()
		if rest, found := bytes.CutPrefix(c.rest, []byte(`,"name":`)); found {
			c.rest = rest
			r.name = c.text()
		}
	}
	c.skip(`,"`)
	c.skip(r.kind.text)
	c.skip(`":`)
	text = c.text()
	c.skip(`}}`)
	return r, text, !c.failed && len(c.rest) == 0 && r.shared() <= maxShared
}

// cutter takes tokens from valid JSON. After a failure nothing it gives counts.
type cutter struct {
	rest   []byte
	failed bool
}

func (c *cutter) skip(literal string) {
	if len(c.rest) < len(literal) || string(c.rest[:len(literal)]) != literal {
		c.failed = true
		return
	}
	c.rest = c.rest[len(literal):]
}

func (c *cutter) take(n int) []byte {
	token := c.rest[:n:n]
	c.rest = c.rest[n:]
	return token
}

func (c *cutter) number() []byte {
	if len(c.rest) == 0 || !isNumber(c.rest) {
		c.failed = true
		return nil
	}
	end := bytes.IndexByte(c.rest, ',')
	if end < 0 {
		c.failed = true
		return nil
	}
	return c.take(end)
}

func (c *cutter) text() []byte {
	if len(c.rest) == 0 || c.rest[0] != '"' {
		c.failed = true
		return nil
	}
	for i := 1; i < len(c.rest); i++ {
		switch c.rest[i] {
		case '\\':
			i++
		case '"':
			return c.take(i + 1)
		}
	}
	c.failed = true
	return nil
}
