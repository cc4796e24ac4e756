package foldwire

import (
	"fmt"
	"iter"
	"strings"

	"github.com/foldhost/foldhost/pluginproto"
	"github.com/foldhost/foldhost/unit"
)

// maxText bounds a message for people: it goes into frames, logs and terminals, and the first lines tell.
const maxText = 4 << 10

// Replies makes the messages that answer a batch, the last one marked. A view or state that no message can carry becomes a fault
// of its cell; the other cells are not touched.
func Replies(r *unit.Reply, number, generation uint64) iter.Seq[*pluginproto.FoldReply] {
	return func(yield func(*pluginproto.FoldReply) bool) {
		p := parts{number: number, generation: generation, yield: yield}
		if r.Err != nil {
			p.room(0)
			p.m.Refused = text(r.Err.Error())
			p.end()
			return
		}
		tooLarge := map[unit.CellID]bool{}
		for _, v := range r.Values {
			if tooLarge[v.Cell] {
				continue
			}
			if len(v.View)+slack > pluginproto.MaxMessageBytes {
				tooLarge[v.Cell] = true
				p.fault(unit.Fault{Cell: v.Cell, Seq: v.Seq, Message: largerThanAMessage("view", len(v.View))})
				continue
			}
			p.room(len(v.View))
			p.m.Values = append(p.m.Values, &pluginproto.CellValue{Cell: uint64(v.Cell), Seq: v.Seq, View: v.View})
		}
		for _, s := range r.States {
			if tooLarge[s.Cell] {
				continue
			}
			if len(s.State)+slack > pluginproto.MaxMessageBytes {
				tooLarge[s.Cell] = true
				p.fault(unit.Fault{Cell: s.Cell, Seq: s.Seq, Message: largerThanAMessage("state", len(s.State))})
				continue
			}
			p.room(len(s.State))
			p.m.States = append(p.m.States, &pluginproto.CellState{Cell: uint64(s.Cell), Seq: s.Seq, State: s.State})
		}
		for _, f := range r.Faults {
			if !tooLarge[f.Cell] {
				p.fault(f)
			}
		}
		p.room(len(r.Unknown) * 10)
		p.m.Unknown = fromIDs(r.Unknown)
		p.end()
	}
}

func largerThanAMessage(what string, size int) string {
	return fmt.Sprintf("the %s has %d bytes; a message carries %d at most", what, size, pluginproto.MaxMessageBytes-slack)
}

// parts fills messages up to the target size.
type parts struct {
	number, generation uint64
	yield              func(*pluginproto.FoldReply) bool
	m                  *pluginproto.FoldReply
	size               int
	stopped            bool
}

// room makes sure that there is a message with room for an entry of n bytes; an empty one always has it.
func (p *parts) room(n int) {
	n += 40 // the fields of the entry, each number at its longest
	if p.m != nil && p.size > 0 && p.size+n > pluginproto.TargetMessageBytes {
		p.send()
	}
	if p.m == nil {
		p.m, p.size = &pluginproto.FoldReply{Batch: p.number, Generation: p.generation}, 0
	}
	p.size += n
}

func (p *parts) fault(f unit.Fault) {
	f.Message = text(f.Message)
	p.room(len(f.Message))
	p.m.Faults = append(p.m.Faults, &pluginproto.CellFault{Cell: uint64(f.Cell), Seq: f.Seq, Message: f.Message})
}

func (p *parts) send() {
	if !p.stopped {
		p.stopped = !p.yield(p.m)
	}
	p.m = nil
}

func (p *parts) end() {
	p.m.Last = true
	p.send()
}

// text makes what a protobuf string can carry of a message for people.
func text(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + " …"
	}
	return strings.ToValidUTF8(s, "�")
}

// MaxAnswerBytes bounds the views and states of one answer: 64 MiB, which is a batch of 512 events each with a view of an
// eighth MiB. A plugin that sends more has its batch played again in smaller parts, where a larger view passes.
const MaxAnswerBytes = 64 << 20

// Answer puts the messages together that answer one batch, and checks that they do: every cell is one that the batch names, the
// values of a cell come in the order of their seqs and each once, and there are no more of them than the batch can give.
type Answer struct {
	reply unit.Reply
	cells []cellSeen
	index map[unit.CellID]int // nil while cells are few
	upTo  int64
	bytes int
	last  bool
}

type cellSeen struct {
	id               unit.CellID
	value            int64 // the seq of its last value, −2 before the first
	faulted, unknown bool
	state            bool
}

// few is how many cells are found faster by looking at each: a session has a dozen units of one plugin at most.
const few = 16

// NewAnswer expects the answer to a batch.
func NewAnswer(b *unit.Batch) *Answer {
	a := &Answer{upTo: b.Through, cells: make([]cellSeen, 0, len(b.Cells))}
	for _, o := range b.Open {
		a.expect(o.Cell)
		a.upTo = max(a.upTo, o.Seq)
	}
	for _, id := range b.Cells {
		a.expect(id)
	}
	for _, id := range b.States {
		a.expect(id)
	}
	return a
}

func (a *Answer) expect(id unit.CellID) {
	if a.find(id) != nil {
		return
	}
	a.cells = append(a.cells, cellSeen{id: id, value: -2})
	switch {
	case a.index != nil:
		a.index[id] = len(a.cells) - 1
	case len(a.cells) > few:
		a.index = make(map[unit.CellID]int, 4*few)
		for i := range a.cells {
			a.index[a.cells[i].id] = i
		}
	}
}

func (a *Answer) find(id unit.CellID) *cellSeen {
	if a.index != nil {
		if i, ok := a.index[id]; ok {
			return &a.cells[i]
		}
		return nil
	}
	for i := range a.cells {
		if a.cells[i].id == id {
			return &a.cells[i]
		}
	}
	return nil
}

// Add takes the next message. done says that it was the last one; Reply gives the whole then. After an error, a *ProtocolError, the
// answer is of no further use.
func (a *Answer) Add(m *pluginproto.FoldReply) (done bool, err error) {
	if a.last {
		return false, wrong("last", "a message follows the one that is marked as the last")
	}
	if m.Refused != "" {
		a.last = true
		a.reply = unit.Reply{Err: wrong("refused", "the plugin did not carry the batch out: %s", text(m.Refused))}
		return true, nil
	}
	for i, v := range m.Values {
		c, err := a.entry("values", i, v.GetCell(), v.GetSeq(), v.GetView())
		if err != nil {
			return false, err
		}
		if v.Seq <= c.value {
			return false, wrong("values", "cell %d has a value at %d after the one at %d", v.Cell, v.Seq, c.value)
		}
		c.value = v.Seq
		a.reply.Values = append(a.reply.Values, unit.Value{Cell: c.id, Seq: v.Seq, View: v.View})
	}
	for i, s := range m.States {
		c, err := a.entry("states", i, s.GetCell(), s.GetSeq(), s.GetState())
		if err != nil {
			return false, err
		}
		if c.state {
			return false, wrong("states", "cell %d has its state twice", s.Cell)
		}
		c.state = true
		a.reply.States = append(a.reply.States, unit.StateAt{Cell: c.id, Seq: s.Seq, State: s.State})
	}
	for i, f := range m.Faults {
		c, err := a.entry("faults", i, f.GetCell(), f.GetSeq(), notAbsent)
		if err != nil {
			return false, err
		}
		if c.faulted {
			return false, wrong("faults", "cell %d fails twice", c.id)
		}
		c.faulted = true
		a.reply.Faults = append(a.reply.Faults, unit.Fault{Cell: c.id, Seq: f.GetSeq(), Message: text(f.GetMessage())})
	}
	for i, id := range m.Unknown {
		c, err := a.entry("unknown", i, id, -1, notAbsent)
		if err != nil {
			return false, err
		}
		if c.unknown {
			return false, wrong("unknown", "cell %d is named twice", id)
		}
		c.unknown = true
		a.reply.Unknown = append(a.reply.Unknown, c.id)
	}
	a.last = m.Last
	return m.Last, nil
}

// Reply is the whole answer, once Add has said that it is done. Before, it says that the answer broke off.
func (a *Answer) Reply() unit.Reply {
	if !a.last {
		return unit.Reply{Err: &unit.GoneError{Reason: "the answer broke off"}}
	}
	return a.reply
}

var notAbsent = []byte{0}

// entry checks what all parts of an answer have in common.
func (a *Answer) entry(field string, i int, cell uint64, seq int64, json []byte) (*cellSeen, error) {
	c := a.find(unit.CellID(cell))
	switch {
	case c == nil:
		return nil, wrong(field, "[%d] is for cell %d, which the batch does not name", i, cell)
	case seq < -1 || seq > a.upTo:
		return nil, wrong(field, "[%d] is at %d, and the batch goes from −1 to %d", i, seq, a.upTo)
	case len(json) == 0:
		return nil, wrong(field, "[%d], for cell %d, holds no JSON", i, cell)
	}
	if a.bytes += len(json); a.bytes > MaxAnswerBytes {
		return nil, wrong(field, "the answer to one batch is larger than %d bytes", MaxAnswerBytes)
	}
	return c, nil
}

func wrong(field, format string, args ...any) *ProtocolError {
	return &ProtocolError{"FoldReply", field, fmt.Sprintf(format, args...)}
}
