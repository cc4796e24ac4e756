package surface

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/foldhost/foldhost/event"
)

var errNoReader = errors.New("the manager was made without a reader of events")

// checkRewrite applies the rule for a tool/result that replaces: exactly one node, a tool/result, the same but for the
// inner content of its result block.
func (m *Manager) checkRewrite(d *event.Draft, from, to place) error {
	if from != to {
		return fault(event.ToolResultRewrite, "rewrite-of-several", "$.surfaceOp",
			"a tool/result that replaces must rewrite exactly one current node")
	}
	seq := m.nodes.blocks[from.block].seqs[from.index]
	var old event.Event
	err := errNoReader
	if m.read != nil {
		old, err = m.read(seq)
	}
	if err != nil {
		return fmt.Errorf("planning event %d: reading event %d, which it replaces: %w", d.Seq, seq, err)
	}
	if old.Type != event.ToolResult {
		return fault(event.ToolResultRewrite, "rewrite-of-other-type", "$.surfaceOp.start",
			fmt.Sprintf("a tool/result that replaces must target a current tool/result, and event %d is not one", seq))
	}
	if !event.Equal(Frame(old.Data), Frame(d.Data)) {
		return fault(event.ToolResultRewrite, "rewrite-beyond-content", "$.data",
			fmt.Sprintf("a tool/result that replaces may change only content: the inner content of its result block; the rest must equal event %d", seq))
	}
	return nil
}

// Frame is the data of a tool/result with null in the place of the inner content of its result block: what a rewrite must
// leave as it is. An EventReader may give an event with its Frame for its data, so that whoever follows a long log need not
// keep what is most of it.
func Frame(data json.RawMessage) json.RawMessage {
	return appendWithout(nil, data, "message", "content", eachElement, "content")
}

// eachElement in a path means all elements of an array.
const eachElement = "[]"

// appendWithout appends raw with null in the place of the member at path, where it is there.
func appendWithout(dst []byte, raw json.RawMessage, path ...string) []byte {
	if len(path) == 0 {
		return append(dst, "null"...)
	}
	start, first := len(dst), true
	next := func() {
		if !first {
			dst = append(dst, ',')
		}
		first = false
	}
	is := false
	if path[0] == eachElement {
		dst = append(dst, '[')
		is = event.Elements(raw, func(elem json.RawMessage) bool {
			next()
			dst = appendWithout(dst, elem, path[1:]...)
			return true
		})
		dst = append(dst, ']')
	} else {
		dst = append(dst, '{')
		is = event.Members(raw, func(key string, value json.RawMessage) bool {
			next()
			dst = append(event.AppendString(dst, key), ':')
			if key == path[0] {
				dst = appendWithout(dst, value, path[1:]...)
			} else {
				dst = append(dst, value...)
			}
			return true
		})
		dst = append(dst, '}')
	}
	if !is {
		return append(dst[:start], raw...)
	}
	return dst
}
