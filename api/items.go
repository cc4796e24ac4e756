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

// items reads the events of a request; at gives the place of one in the body.
func items(list []json.RawMessage, at func(i int) string) ([]session.Item, error) {
	items := make([]session.Item, len(list))
	for i, raw := range list {
		if err := readItem(&items[i], raw, i, at(i)); err != nil {
			return nil, err
		}
	}
	return items, nil
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
