package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/foldhost/foldhost/event"
	"github.com/foldhost/foldhost/session"
)

// itemFields are what an event of a request may have. Its seq is the log's to give.
var itemFields = []string{"type", "data", "time", "surfaceOp", "sourceEventSeqs", "ignorable"}

// maxItems is how many events one request appends, or creates a session with: 100,000, which leaves each some 160 bytes of a body of 16 MiB. Each takes some hundreds of bytes on its way through the
// session and the store, however small it is, so that a body of nothing but the smallest would take 1 GB.
const maxItems = 100_000

// items reads the events of a request, one after the other: what is wrong with one refuses them all, and what stands behind it costs nothing.
func (o *object) items() (items []session.Item, err error) {
	err = o.each("events", func(i int, raw json.RawMessage) error {
		if i == maxItems {
			return tooMany("events", "$.events", maxItems, "send them in several requests, or as an import")
		}
		items = append(items, session.Item{})
		return readItem(&items[i], raw, i, eventAt(i))
	})
	return items, err
}

// readItem reads one event, the JSON of which has been checked.
func readItem(it *session.Item, raw json.RawMessage, index int, at string) error {
	var fault error
	fail := func(field, detail string) {
		if fault == nil {
			fault = &Problem{Status: http.StatusUnprocessableEntity, Code: CodeEventInvalid, Index: new(int64(index)), Reason: string(event.EnvelopeInvalid),
				Path: "$." + field, Detail: detail}
		}
	}
	typed := false
	isObject := event.Members(raw, func(key string, value json.RawMessage) bool {
		switch key {
		case "type":
			if it.Type, typed = event.String(value); !typed {
				fail("type", "type must be a string")
			}
		case "data":
			it.Data = value
		case "time":
			n, ok := event.Integer(value)
			if !ok {
				fail("time", "time must be an integer of at most 2^53-1 in size, milliseconds since the epoch; leave it out for now")
			}
			it.Time = &n
		case "surfaceOp":
			it.Intent.Op, it.OpFault = event.DecodeSurfaceOp(value)
		case "sourceEventSeqs":
			it.Intent.Sources, it.SourcesFault = event.DecodeSources(value)
		case "ignorable":
			if it.Ignorable = string(value) == "true"; !it.Ignorable {
				fail("ignorable", "ignorable can only be true; leave it out otherwise")
			}
		case "seq":
			fault = bodyInvalid(at+".seq", "an event that is appended has no seq: the log gives it one, and expectedSeq beside a list of events says which it is to be")
		default:
			fault = unknownField(at+event.PathKey(key), itemFields)
		}
		return fault == nil
	})
	switch {
	case !isObject:
		fault = bodyInvalid(at, fmt.Sprintf("an event is an object with %s", listing(itemFields[:2])))
	case fault != nil:
	case !typed:
		fail("type", "type is missing; it must be a string")
	case it.Data == nil:
		fail("data", "data is missing; an event without content carries null")
	}
	return fault
}

// drafts makes a seed of items.
func drafts(items []session.Item, now int64) []event.Draft {
	all := make([]event.Draft, len(items))
	for i := range items {
		it := &items[i]
		all[i] = event.Draft{OpFault: it.OpFault, SourcesFault: it.SourcesFault, Event: event.Event{
			Type: it.Type, Seq: int64(i), Time: now, Data: it.Data, Op: it.Intent.Op, Sources: it.Intent.Sources, Ignorable: it.Ignorable}}
		if it.Time != nil {
			all[i].Time = *it.Time
		}
	}
	return all
}

// same says whether an event in a log is the one that an item asks for. Data is compared byte for byte, white space outside strings aside.
func same(it *session.Item, ev *event.Event) bool {
	data, err := event.Compact(it.Data, "$.data")
	return err == nil && it.Type == ev.Type && string(data) == string(ev.Data) && it.Intent.Op == ev.Op && it.Ignorable == ev.Ignorable &&
		(it.Intent.Sources == nil) == (ev.Sources == nil) && slices.Equal(it.Intent.Sources, ev.Sources) &&
		(it.Time == nil || *it.Time == ev.Time)
}
