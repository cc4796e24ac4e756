package sdk

import (
	"encoding/json"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/foldhost/foldhost/event"
)

// exactly is encoding/json but for one thing: keys are matched as they are written. encoding/json takes {"Todos":…} for a field todos,
// and then a fold in Go and one in another language differ over the same log. It is also twice as fast.
var exactly = jsonv2.JoinOptions(
	jsonv1.DefaultOptionsV1(),
	jsonv2.MatchCaseInsensitiveNames(false),
	// The module has a Number of its own and would take this one for a string.
	jsonv2.WithUnmarshalers(jsonv2.UnmarshalFunc(func(raw []byte, n *json.Number) error { return json.Unmarshal(raw, n) })),
)

// decode reads JSON into what into points to. Keys that are no field's are ignored; lone surrogates become U+FFFD, since a Go string
// cannot hold them.
func decode(raw []byte, into any) error { return jsonv2.Unmarshal(raw, into, exactly) }

// pathIn writes a place in raw, as the decoder gives it ("todos.2.content"), as a path below prefix ("$.data.todos[2].content").
func pathIn(raw json.RawMessage, place, prefix string) string {
	if place == "" {
		return prefix
	}
	path := prefix
	for step := range strings.SplitSeq(place, ".") {
		if i, err := strconv.Atoi(step); err == nil && len(raw) > 0 && raw[0] == '[' {
			path += "[" + step + "]"
			raw = elementOf(raw, i)
			continue
		}
		path += event.PathKey(step)
		raw = event.Lookup(raw, step)
	}
	return path
}

func elementOf(raw json.RawMessage, at int) (found json.RawMessage) {
	event.Elements(raw, func(elem json.RawMessage) bool {
		if at == 0 {
			found = elem
		}
		at--
		return at >= 0
	})
	return found
}
