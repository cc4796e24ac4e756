package jsonl

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/foldhost/foldhost/event"
)

// kind is a kind of chunk whose runs are packed.
type kind struct {
	// tag is the type of the row, delta that of the chunk.
	tag, delta string
	// members is the key of the row's list, text the key of the chunk's piece of text.
	members, text string
	// call says that the chunk and the row carry an id, and a name or none.
	call bool
}

var kinds = []*kind{
	{tag: "text-chunks", delta: "text-delta", members: "texts", text: "text"},
	{tag: "reasoning-chunks", delta: "reasoning-delta", members: "texts", text: "text"},
	{tag: "tool-call-chunks", delta: "tool-call-delta", members: "args", text: "argumentsDelta", call: true},
}

// run is what the chunks of a run have in common: JSON tokens as they were written, so that data comes out byte for byte.
type run struct {
	kind              *kind
	turn, step, index []byte
	id, name          []byte // name is nil when there is none
}

func (r *run) same(o *run) bool {
	return r.kind == o.kind && bytes.Equal(r.turn, o.turn) && bytes.Equal(r.step, o.step) && bytes.Equal(r.index, o.index) &&
		bytes.Equal(r.id, o.id) && bytes.Equal(r.name, o.name) // a name has quotes at least, so that none differs from every one
}

// clone lets go of the event that the tokens are pieces of.
func (r *run) clone() run {
	return run{kind: r.kind, turn: bytes.Clone(r.turn), step: bytes.Clone(r.step), index: bytes.Clone(r.index),
		id: bytes.Clone(r.id), name: bytes.Clone(r.name)}
}

// appendData appends the data of one chunk.
func (r *run) appendData(dst, text []byte) []byte {
	dst = append(append(dst, `{"turn":`...), r.turn...)
	dst = append(append(dst, `,"step":`...), r.step...)
	dst = append(append(dst, `,"chunk":{"type":"`...), r.kind.delta...)
	dst = append(append(dst, `","index":`...), r.index...)
	if r.kind.call {
		dst = append(append(dst, `,"id":`...), r.id...)
		if r.name != nil {
			dst = append(append(dst, `,"name":`...), r.name...)
		}
	}
	dst = append(append(append(dst, `,"`...), r.kind.text...), `":`...)
	return append(append(dst, text...), `}}`...)
}

const (
	// maxShared is how many bytes of common tokens a run may have and still be packed, so that no row of ours grows like that: a chunk takes 5 bytes of a
	// row at least, and about 180 and the tokens as an event.
	maxShared = 1000
	// envelopeSize is about what an event has around its data.
	envelopeSize = 80
)

// shared is the length of the tokens in common.
func (r *run) shared() int { return len(r.turn) + len(r.step) + len(r.index) + len(r.id) + len(r.name) }

// size is about that of n chunks whose texts take so many bytes together.
func (r *run) size(n int64, texts int) int64 {
	return n*int64(envelopeSize+r.dataSize(nil)) + int64(texts)
}

// row is a packed run that has been checked.
type row struct {
	run
	seq0, time0 int64
	n           int64 // how many events
	// dt and members are JSON arrays without white space.
	dt, members []byte
	// size is about that of its events.
	size int64
}

// decodeRow reads a packed row. isRow says that its type is the tag of one; then an error says what is wrong with it. text must be
// lossless JSON.
func decodeRow(text []byte) (r *row, isRow bool, err error) {
	tag, _ := event.String(event.Lookup(text, "type"))
	for _, k := range kinds {
		if k.tag != tag {
			continue
		}
		r := &row{run: run{kind: k}}
		if reason := r.decode(text); reason != "" {
			return nil, true, &event.Error{Code: event.EnvelopeInvalid, Rule: "row-malformed",
				Reason: fmt.Sprintf("malformed %s storage row: %s", tag, reason)}
		}
		if r.size = r.run.size(r.n, len(r.members)); r.size > maxGrowth*int64(len(text)) {
			return nil, true, &event.Error{Code: event.TooLarge, Rule: "row-growth",
				Reason: fmt.Sprintf("the %s storage row of %d bytes stands for %d events with %d bytes, which is more than %d times as many; write them one a line",
					tag, len(text), r.n, r.size, maxGrowth)}
		}
		return r, true, nil
	}
	return nil, false, nil
}

// decode reads the fields and returns what is wrong, or nothing. Nothing is given out of a row before all of it was checked.
func (r *row) decode(text []byte) (reason string) {
	compact, err := event.Compact(text, "$")
	if err != nil {
		return err.Error()
	}
	var data json.RawMessage
	event.Members(compact, func(key string, value json.RawMessage) bool {
		ok := true
		switch key {
		case "type":
		case "seq0":
			r.seq0, ok = event.Integer(value)
			ok = ok && r.seq0 >= 0
		case "time0":
			r.time0, ok = event.Integer(value)
		case "data":
			data = value
		default:
			reason = "no such key: " + key
			return false
		}
		if !ok {
			reason = key + " must be an integer of at most 2^53-1, seq0 from 0"
		}
		return ok
	})
	if reason != "" {
		return reason
	}
	// Counting keys is enough, as no key is doubled and none is unknown.
	if n := count(compact); n != 4 {
		return "type, seq0, time0 and data must be there"
	}
	if reason := r.decodeData(data); reason != "" {
		return reason
	}
	return r.checkMembers()
}

func (r *row) decodeData(data json.RawMessage) (reason string) {
	if !event.Members(data, func(key string, value json.RawMessage) bool {
		ok := true
		switch {
		case key == "turn":
			r.turn, ok = value, isNumber(value)
		case key == "step":
			r.step, ok = value, isNumber(value)
		case key == "index":
			r.index, ok = value, isNumber(value)
		case key == "dt":
			r.dt, ok = value, value[0] == '['
		case key == r.kind.members:
			r.members, ok = value, value[0] == '['
		case key == "id" && r.kind.call:
			r.id, ok = value, value[0] == '"'
		case key == "name" && r.kind.call:
			r.name, ok = value, value[0] == '"'
		default:
			reason = "no such key: data." + key
			return false
		}
		if !ok {
			reason = "data." + key + " has the wrong type"
		}
		return ok
	}) {
		return "data must be an object"
	}
	switch {
	case reason != "":
		return reason
	case r.turn == nil || r.step == nil || r.index == nil || r.dt == nil || r.members == nil:
		return "data must have turn, step, index, dt and " + r.kind.members
	case r.kind.call && r.id == nil:
		return "data must have an id"
	}
	return ""
}

// checkMembers checks the lists against each other and every seq and time that comes out.
func (r *row) checkMembers() (reason string) {
	event.Elements(r.members, func(elem json.RawMessage) bool {
		if elem[0] != '"' {
			reason = r.kind.members + " must hold strings"
		}
		r.n++
		return reason == ""
	})
	if reason != "" {
		return reason
	}
	if r.n == 0 {
		return r.kind.members + " is empty"
	}
	gaps, time := int64(0), r.time0
	event.Elements(r.dt, func(elem json.RawMessage) bool {
		dt, ok := event.Integer(elem)
		if !ok {
			reason = "dt must hold integers"
			return false
		}
		gaps++
		if time += dt; !safe(time) {
			reason = "a time leaves the range of 2^53-1"
		}
		return reason == ""
	})
	switch {
	case reason != "":
		return reason
	case gaps != r.n-1:
		return fmt.Sprintf("dt has %d gaps for %d members", gaps, r.n)
	case r.seq0 > event.MaxInteger-(r.n-1):
		return "a seq leaves the range of 2^53-1"
	}
	return ""
}

// expand gives the events of the row until yield has enough. It holds one event at a time, whatever the row's length.
func (r *row) expand(yield func(event.Event) bool) {
	e := event.Event{Type: event.AssistantChunk, Seq: r.seq0, Time: r.time0}
	gaps := r.dt[1 : len(r.dt)-1]
	event.Elements(r.members, func(text json.RawMessage) bool {
		e.Data = r.appendData(make([]byte, 0, r.dataSize(text)), text)
		if !yield(e) {
			return false
		}
		var gap []byte
		gap, gaps, _ = bytes.Cut(gaps, []byte{','})
		dt, _ := event.Integer(gap) // checked; nothing is left behind the last member
		e.Seq, e.Time = e.Seq+1, e.Time+dt
		return true
	})
}

// dataSize is the length of appendData, or a little more.
func (r *run) dataSize(text []byte) int {
	const rest = len(`{"turn":,"step":,"chunk":{"type":"tool-call-delta","index":,"id":,"name":,"argumentsDelta":}}`)
	return rest + r.shared() + len(text)
}

func count(object []byte) (n int) {
	event.Members(object, func(string, json.RawMessage) bool { n++; return true })
	return n
}

func isNumber(value []byte) bool { return value[0] == '-' || '0' <= value[0] && value[0] <= '9' }

func safe(n int64) bool { return -event.MaxInteger <= n && n <= event.MaxInteger }
