package sdk

import (
	"encoding/json"

	"github.com/foldhost/foldhost/event"
)

// Event is one committed entry of a session's log: its type, its seq (the index in the log), its time in milliseconds since
// the epoch, and its data as JSON. It is shared with others: change nothing in it.
type Event = event.Event

// Lookup returns the member of a JSON object by a path of keys as it stands, or nil when it is not there. It is for handlers
// that see many events and want few: it decodes nothing.
func Lookup(data json.RawMessage, path ...string) json.RawMessage {
	return event.Lookup(data, path...)
}

// Integer reads a JSON number that is an integer and fits a double exactly, in any spelling (1, 1.0, 1e0).
func Integer(raw json.RawMessage) (n int64, ok bool) { return event.Integer(raw) }
